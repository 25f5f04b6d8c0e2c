"""Quantise the weights of a BERT model to 8 bits.

``tools/make_models.py`` writes the tables: where the arrays are in a package's file (``sources``),
and in which order the quantised ones are kept (``layout``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Floats = NDArray[np.float32]

Table = Mapping[str, Sequence[Any]]

_MOST = {"rows": 127, "columns": 64}  # a word vector is only scaled; a weight: 2 · 255 · 64 < 2¹⁵
# 32 weights of 4 bits: the low halves of the bytes are the first 16, the high ones the others.
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])


def quantise(table: Table, content: bytes) -> bytes:
    """Return the quantised weights, from the content of a package's file."""
    arrays: defaultdict[str, list[Any]] = defaultdict(list)
    for name, kind, offset, shape, scaled in table["sources"]:
        floats = _read(content, kind, offset, shape)
        if scaled == "added":  # to all rows
            arrays[name][0] = arrays[name][0] + floats
        elif scaled:
            if scaled == "columns" and kind == "q4":
                floats = floats.T  # such a matrix has a row per output
            largest = np.abs(floats).max(axis=int(scaled == "rows"), keepdims=True)
            scales = np.maximum(largest / np.float32(_MOST[scaled]), np.float32(1e-9))
            arrays[f"{name}.integers"].append(np.rint(floats / scales).astype(np.int8))
            arrays[f"{name}.scales"].append(scales)
        else:
            arrays[name].append(floats)
    return b"".join(
        np.concatenate(arrays.pop(name)).astype(dtype, order="C", copy=False).tobytes()
        for name, dtype, _ in table["layout"]
    )


def unpack(table: Table, content: bytes) -> dict[str, Array]:
    """Return the arrays of the quantised weights by name."""
    arrays: dict[str, Array] = {}
    position = 0
    for name, dtype, shape in table["layout"]:
        array = np.frombuffer(content, dtype, int(np.prod(shape)), position).reshape(shape)
        arrays[name] = array
        position += array.nbytes
    return arrays


def _read(content: bytes, kind: str, offset: int, shape: list[int]) -> Floats:
    count = int(np.prod(shape))
    if kind == "f4":
        floats = np.frombuffer(content, "<f4", count, offset)
        return floats.astype(np.float32, copy=False).reshape(shape)
    blocks = np.frombuffer(content, _BLOCK, count // 32, offset)
    halves = blocks["halves"]
    weights = np.concatenate([halves & 0x0F, halves >> 4], axis=-1).astype(np.float32)
    scales = blocks["scale"].astype(np.float32)
    result: Floats = ((weights - np.float32(8)) * scales[..., None]).reshape(shape)
    return result
