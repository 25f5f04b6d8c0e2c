"""Weights of a BERT model, quantised to 8 bits, as its graph in ``graphs/`` names them.

The weights of a model are kept in one file: its arrays in the order of the layout, which is in
``graphs/`` too. ``tools/make_graphs.py`` writes graphs and layouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Floats = NDArray[np.float32]

GRAPHS = Path(__file__).with_name("graphs")

_MOST = 127
_MOST_WEIGHT = 64  # 2 · 255 · 64 < 2¹⁵


class BertWeights:
    """Arrays by name; matrices are quantised as they are added."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def add_words(self, parts: Iterable[Floats]) -> None:
        """Add the table of word vectors, with one scale per row."""
        quantised = [_quantise(part, _MOST, axis=1) for part in parts]
        integers, scales = (np.concatenate(arrays) for arrays in zip(*quantised, strict=True))
        self.arrays |= {"words.integers": integers, "words.scales": scales}

    def add_linear(self, name: str, weights: Floats, bias: Floats) -> None:
        self.add_matrix(name, weights)
        self.arrays[f"{name}.bias"] = bias

    def add_matrix(self, name: str, weights: Floats) -> None:
        """Add a matrix (inputs, outputs), with one scale per column."""
        integers, scales = _quantise(weights, _MOST_WEIGHT, axis=0)
        self.arrays |= {f"{name}.integers": integers, f"{name}.scales": scales[0]}

    def add_norm(self, name: str, scale: Floats, bias: Floats) -> None:
        self.arrays |= {f"{name}.scale": scale, f"{name}.bias": bias}


def _quantise(floats: Floats, most: int, *, axis: int) -> tuple[NDArray[np.int8], Floats]:
    scales = np.abs(floats).max(axis=axis, keepdims=True) / np.float32(most)
    scales = np.maximum(scales, np.float32(1e-9))
    return np.rint(floats / scales).astype(np.int8), scales


def pack(model: str, arrays: Mapping[str, Array]) -> bytes:
    """Return the weights file of a model."""
    return b"".join(
        arrays[name].astype(dtype, order="C", copy=False).tobytes()
        for name, dtype, _ in _layout(model)
    )


def unpack(model: str, content: bytes) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    position = 0
    for name, dtype, shape in _layout(model):
        array = np.frombuffer(content, dtype, int(np.prod(shape)), position).reshape(shape)
        arrays[name] = array
        position += array.nbytes
    return arrays


def _layout(model: str) -> list[tuple[str, str, list[int]]]:
    layout: list[tuple[str, str, list[int]]] = json.loads((GRAPHS / f"{model}.json").read_bytes())
    return layout
