"""Build an ONNX graph with 8-bit weights from BERT weights; it embeds windows of equal length.

Activations are quantised per token to unsigned 8 bits, and weights per column to 7 bits. So the
vector of a text does not depend on its batch (onnxruntime's quantiser uses one scale per batch,
so there it does), and no sum overflows the 16 bits in which processors without VNNI accumulate
products: all machines compute the same integers.
Windows of equal length need neither padding nor a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bythebook.providers.embeddings.local.onnx_file import FLOAT, INT64, MICROSOFT, Graph, tensor

Floats = NDArray[np.float32]

_MOST_WEIGHT = 64  # 2 · 255 · 64 < 2¹⁵
_ZERO = 128  # zero point of a signed activation
_ZERO_OF_GELU = 24  # GELU is never below −0.17: most of the range is for positive values
_LEAST_OF_GELU = 0.171


@dataclass(frozen=True, slots=True)
class Linear:
    weights: Floats  # (inputs, outputs)
    bias: Floats


@dataclass(frozen=True, slots=True)
class Norm:
    scale: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Layer:
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    norm: Norm


@dataclass(frozen=True, slots=True)
class Table:
    """Matrix of 8-bit integers with one scale per row."""

    rows: NDArray[np.int8]
    scales: Floats  # (rows, 1)

    @classmethod
    def of(cls, floats: Floats) -> Table:
        scales = np.abs(floats).max(axis=1, keepdims=True) / np.float32(127)
        scales = np.maximum(scales, np.float32(1e-9))
        return cls(np.rint(floats / scales).astype(np.int8), scales)


@dataclass(frozen=True, slots=True)
class Bert:
    words: Table
    positions: Floats  # token type 0, the only one of a single text, is added in
    norm: Norm
    layers: Sequence[Layer]
    heads: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class _Quantised:
    integers: str
    scales: str  # one per token
    zero: str


def to_onnx(bert: Bert) -> bytes:
    """Return a graph that maps ``ids`` (texts, tokens) to the mean of each text's last layer."""
    return _Writer(bert).write()


class _Writer:
    def __init__(self, bert: Bert) -> None:
        self._bert = bert
        self._graph = Graph()
        self._one = self._constant(1.0)
        self._last_axis = self._indices(-1)

    def write(self) -> bytes:
        hidden = self._embed()
        for layer in self._bert.layers:
            hidden = self._layer(layer, hidden)
        mean = self._graph.add("ReduceMean", hidden, self._indices(1), keepdims=0)
        size = self._bert.positions.shape[1]
        return self._graph.to_bytes(
            inputs=[tensor("ids", INT64, "texts", "tokens")],
            outputs=[tensor(mean, FLOAT, "texts", size)],
        )

    def _embed(self) -> str:
        add, constant, bert = self._graph.add, self._graph.constant, self._bert
        rows = add("Cast", add("Gather", constant(bert.words.rows), "ids"), to=FLOAT)
        words = add("Mul", rows, add("Gather", constant(bert.words.scales), "ids"))
        length = add("Slice", add("Shape", "ids"), self._indices(1), self._indices(2))
        positions = add("Slice", constant(bert.positions), self._indices(0), length)
        return add(
            "LayerNormalization",
            add("Add", words, positions),
            constant(bert.norm.scale),
            constant(bert.norm.bias),
            axis=-1,
            epsilon=bert.epsilon,
        )

    def _layer(self, layer: Layer, hidden: str) -> str:
        add, constant = self._graph.add, self._graph.constant
        heads = (layer.query, layer.key, layer.value)
        seen = self._quantise(hidden)
        attended = add(
            "MultiHeadAttention",
            *(self._multiply(seen, each.weights) for each in heads),
            constant(np.concatenate([each.bias for each in heads])),
            domain=MICROSOFT,
            num_heads=self._bert.heads,
        )
        out = self._multiply(self._quantise(attended), layer.out.weights)
        hidden = self._add_and_norm(out, layer.out.bias, hidden, layer.attention_norm)
        up = self._multiply(self._quantise(hidden), layer.up.weights)
        active = add("BiasGelu", up, constant(layer.up.bias), domain=MICROSOFT)
        down = self._multiply(self._quantise_gelu(active), layer.down.weights)
        return self._add_and_norm(down, layer.down.bias, hidden, layer.norm)

    def _quantise(self, value: str) -> _Quantised:
        add = self._graph.add
        most = add("ReduceMax", add("Abs", value), self._last_axis, keepdims=1)
        return self._to_integers(value, most, zero=_ZERO, least=1e-9)

    def _quantise_gelu(self, value: str) -> _Quantised:
        most = self._graph.add("ReduceMax", value, self._last_axis, keepdims=1)
        zero = _ZERO_OF_GELU
        return self._to_integers(value, most, zero=zero, least=_LEAST_OF_GELU / zero)

    def _to_integers(self, value: str, most: str, *, zero: int, least: float) -> _Quantised:
        add = self._graph.add
        step = add("Mul", most, self._constant(1 / (255 - zero)))
        scales = add("Max", step, self._constant(least))
        middle = self._graph.constant(np.array(zero, dtype=np.uint8))
        steps = add("Div", value, scales)
        return _Quantised(add("QuantizeLinear", steps, self._one, middle), scales, middle)

    def _multiply(self, value: _Quantised, weights: Floats) -> str:
        add, constant = self._graph.add, self._graph.constant
        scales = np.abs(weights).max(axis=0) / np.float32(_MOST_WEIGHT)
        scales = np.maximum(scales, np.float32(1e-9))
        product = add(
            "MatMulIntegerToFloat",
            value.integers,
            constant(np.rint(weights / scales).astype(np.int8)),
            self._one,
            constant(scales),
            value.zero,
            domain=MICROSOFT,
        )
        return add("Mul", product, value.scales)

    def _add_and_norm(self, value: str, bias: Floats, skip: str, norm: Norm) -> str:
        constant = self._graph.constant
        return self._graph.add(
            "SkipLayerNormalization",
            value,
            skip,
            constant(norm.scale),
            constant(norm.bias),
            constant(bias),
            domain=MICROSOFT,
            epsilon=self._bert.epsilon,
        )

    def _constant(self, number: float) -> str:
        return self._graph.constant(np.array(number, dtype=np.float32))

    def _indices(self, *numbers: int) -> str:
        return self._graph.constant(np.array(numbers, dtype=np.int64))
