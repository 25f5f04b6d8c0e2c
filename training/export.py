"""Export a checkpoint to one int8 ONNX file and print its SHA-256.

    python -m training.export --weights checkpoint.pt --out reader-v2.onnx [--float32]

The graph reads one window at a time: ``ids`` and ``segments`` of shape (1, length), no padding.
Linear layers are quantised to 7 bits per channel, which cannot overflow on processors without
VNNI, or to 8 bits in blocks of 128; word vectors to 8 bits per row. The heads stay in float32.
``--float32`` exports the same graph unquantised.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)
from torch import Tensor, nn

from training.model import ReaderNetwork, load_weights

_PRECISE = re.compile(r"/layers\.[012]/(?:o|f1|f2)/")


class WordVectors(nn.Module):
    """Embedding table of int8 with a scale for each row."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-9) / 127
        self.register_buffer("integers", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, ids: Tensor) -> Tensor:
        return self.integers[ids].float() * self.scale[ids]


class OneWindow(nn.Module):
    """The network for a single window without padding."""

    def __init__(self, network: ReaderNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, segments: Tensor) -> tuple[Tensor, ...]:
        network = self.network
        x = network.b.embed(ids, segments)
        for layer in network.b.layers:
            x = layer(x, None)
        pooled = network.pool(torch.cat([x[:, 0], x.mean(1)], -1))
        relevance = network.rel(x)[..., 0]
        return network.ans(pooled)[:, 0], network.nli(pooled), network.span(x), relevance


def export(network: ReaderNetwork, path: Path, *, quantised: bool) -> None:
    network.eval()
    if quantised:
        network.b.w = WordVectors(network.b.w.weight.detach())  # type: ignore[assignment]
    example = torch.randint(0, 1000, (1, 16))
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "float32.onnx"
        torch.onnx.export(
            OneWindow(network),
            (example, torch.zeros_like(example)),
            str(plain),
            input_names=["ids", "segments"],
            output_names=["answers", "support", "span", "relevance"],
            dynamic_axes={name: {1: "length"} for name in ("ids", "segments", "span", "relevance")},
            opset_version=17,
            dynamo=False,
        )
        if quantised:
            _quantise(plain, path)
        else:
            path.write_bytes(plain.read_bytes())
    onnx.checker.check_model(onnx.load(path))


def _quantise(plain: Path, path: Path) -> None:
    """Store matrices as int8; decision 6 says which of them have scales of their own.

    Most matrices have one scale for each column, and the numbers they are multiplied with share
    one scale: fast, but large numbers cost the small ones their precision. In the first layers,
    where later layers multiply that error, both have a scale for every 128 numbers.
    """
    graph = onnx.load(plain)
    constants = {each.name for each in graph.graph.initializer}
    matrices = [
        node.name
        for node in graph.graph.node
        if node.op_type == "MatMul" and node.input[1] in constants
    ]
    precise = [name for name in matrices if _PRECISE.match(name)]
    assert len(precise) == 9, precise
    blocks = DefaultWeightOnlyQuantConfig(
        block_size=128, is_symmetric=True, accuracy_level=4, bits=8
    )
    others = [name for name in matrices if name not in precise]
    quantiser = MatMulNBitsQuantizer(graph, algo_config=blocks, nodes_to_exclude=others)
    quantiser.process()
    half_done = plain.with_name("blocks.onnx")
    onnx.save(quantiser.model.model, half_done)
    quantize_dynamic(
        half_done,
        path,
        op_types_to_quantize=["MatMul"],
        nodes_to_quantize=[name for name in others if name.startswith("/layers.")],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--float32", action="store_true")
    options = parser.parse_args()
    network = ReaderNetwork()
    load_weights(network, options.weights)
    export(network, options.out, quantised=not options.float32)
    content = options.out.read_bytes()
    print(
        f"{options.out}: {len(content) / 1e6:.1f} MB, sha256 {hashlib.sha256(content).hexdigest()}"
    )


if __name__ == "__main__":
    main()
