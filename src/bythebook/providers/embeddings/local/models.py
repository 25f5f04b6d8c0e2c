"""Table of local models, and the choice of one for the languages of a book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bythebook.interfaces.embedding import TextRole
from bythebook.providers.embeddings.local import e5
from bythebook.providers.embeddings.local.onnx_files import (
    Tokenize,
    open_session,
    read_known,
    tokenize_with,
    word_pieces,
)

ENGLISH = "local:minilm"
MULTILINGUAL = "local:e5-small"
MINILM = Path(__file__).with_name("minilm-int8.onnx")  # made by tools/make_models.py
_MINILM_SHA256 = "d6f6fd8e5862d6111454d6791e9ca77ec79b24928d69a1bd292c1a47b86999b2"
_ENOUGH = 0.2  # of the passages: an English book may quote other languages


@dataclass(frozen=True, slots=True)
class LocalModel:
    open: Callable[[], tuple[Any, object]]  # a session, and the memory that it reads
    read_tokenizer: Callable[[], Tokenize]
    limit: int  # word pieces per window, including special tokens
    first: int
    last: int
    prefixes: Mapping[TextRole, str]
    dimension: int = 384


MODELS = {
    "minilm": LocalModel(
        open=lambda: (open_session(read_known(MINILM, _MINILM_SHA256)), None),
        read_tokenizer=lambda: tokenize_with(word_pieces()),
        limit=256,
        first=101,
        last=102,
        prefixes={"query": "", "passage": ""},
    ),
    "e5-small": LocalModel(
        open=e5.open_model,
        read_tokenizer=e5.read_tokenizer,
        limit=512,
        first=0,
        last=2,
        prefixes={"query": "query:", "passage": "passage:"},
    ),
}


@dataclass(frozen=True, slots=True)
class Choice:
    embedder: str
    note: str = ""  # advice for the author if a better model is not installed


def embedder_for(languages: Iterable[str], *, installed: bool | None = None) -> Choice:
    """Choose a model. ``languages``: one per passage. ``installed``: has the multilingual model."""
    counts = Counter(language.lower()[:2] for language in languages)
    foreign = {language: n for language, n in counts.items() if language != "en"}
    if sum(foreign.values()) <= _ENOUGH * counts.total():
        return Choice(ENGLISH)
    if e5.is_installed() if installed is None else installed:
        return Choice(MULTILINGUAL)
    most = max(sorted(foreign), key=lambda language: foreign[language])
    return Choice(
        ENGLISH,
        f'This book is written in "{most}", but the installed model reads English. '
        f"Run: {e5.INSTALL}, then ingest the book again.",
    )
