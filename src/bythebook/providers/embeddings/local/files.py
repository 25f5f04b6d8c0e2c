"""Read model files out of installed packages, verified by SHA-256.

A package is only a container of data: it is located without being imported, and a file is used
only if its SHA-256 is the one that was tested.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.errors import EmbedderFailed, UnknownProvider

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Tokenize = Callable[[list[str]], list[list[int]]]  # texts -> word pieces, without special tokens


def folder_of(module: str, *, install: str) -> Path:
    # find_spec locates a top-level package without executing it.
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise UnknownProvider(
            "The package with the embedding model is not installed.",
            hint=f"Run: {install}",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def read_known(path: Path, sha256: str, *, size: int = -1) -> bytes:
    """Return the content of the file, or its first ``size`` bytes; raise if the hash differs."""
    try:
        with path.open("rb") as file:
            content = file.read(size)
    except OSError:
        content = b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise EmbedderFailed(
            f"The model file {path.name} is not the one this version was tested with.",
            hint="Reinstall the packages that bythebook asks for.",
        )
    return content


def tokenize_with(tokenizer: Tokenizer) -> Tokenize:
    def tokenize(texts: list[str]) -> list[list[int]]:
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    return tokenize
