"""Convert an exported int8 file back to a checkpoint, to continue training from it.

    python -m training.restore --model reader-v2.onnx --out restored.pt

The restored weights have the rounding errors of the int8 file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from training.model import ReaderNetwork

_PREFIX = "network."
_ZERO_POINT = 128  # of 8 bits without a sign
_HEADS = ("pool.0", "ans", "nli", "span", "rel")


def restore(path: Path) -> dict[str, Tensor]:
    """Return the weights by the names that the network gives them."""
    graph = onnx.load(path).graph
    stored = {each.name: torch.tensor(numpy_helper.to_array(each)) for each in graph.initializer}
    shapes = {name: weight.shape for name, weight in ReaderNetwork().state_dict().items()}
    weights = {
        name.removeprefix(_PREFIX): value
        for name, value in stored.items()
        if shapes.get(name.removeprefix(_PREFIX)) == value.shape
    }
    words = stored[f"{_PREFIX}b.w.integers"].float()
    weights["b.w.weight"] = words * stored[f"{_PREFIX}b.w.scale"]
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            name = node.input[1].removesuffix("_quantized")
            integers = stored[node.input[1]].float() - stored[f"{name}_zero_point"].float()
            weights[_name_of(node.name)] = (integers * stored[f"{name}_scale"]).T.contiguous()
        elif node.op_type == "MatMulNBits":
            rows, blocks, size = stored[node.input[1]].shape
            integers = stored[node.input[1]].float() - _ZERO_POINT
            scales = stored[node.input[2]].reshape(rows, blocks, 1)
            weights[_name_of(node.name)] = (integers * scales).reshape(rows, blocks * size)
        elif node.op_type == "MatMul" and node.input[1] in stored:
            weights[_name_of(node.name)] = stored[node.input[1]].T.contiguous()
    if "rel.bias" not in weights:  # reader-v1 has no relevance head
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith("rel.")}
    missing = [
        name
        for name, shape in shapes.items()
        if name not in weights or weights[name].shape != shape
    ]
    assert not missing, missing
    return weights


def _name_of(node: str) -> str:
    """Return the weight's name: b.layers.0.qkv.weight for "/layers.0/qkv/MatMul_quant"."""
    first, second, *_ = node.strip("/").split("/")
    if first.startswith("layers."):
        return f"b.{first}.{second}.weight"
    head = next(name for name in _HEADS if name.split(".")[0] == first)
    return f"{head}.weight"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.save({"network": restore(options.model), "step": 0}, options.out)
    print(f"{options.out}: the weights of {options.model.name}")


if __name__ == "__main__":
    main()
