"""Choose the local embedding model for the languages of a book."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bythebook.providers.embeddings.local.models import MODELS

ENGLISH = "local:minilm"
MULTILINGUAL = "local:e5-small"
_ENOUGH = 0.2  # of the passages: an English book may quote other languages


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
    model = MODELS["e5-small"]
    if installed is None:
        installed = importlib.util.find_spec(model.module) is not None
    if installed:
        return Choice(MULTILINGUAL)
    most = max(sorted(foreign), key=lambda language: foreign[language])
    return Choice(
        ENGLISH,
        f'This book is written in "{most}", but the installed model reads English. '
        f"Run: {model.install}, then ingest the book again.",
    )
