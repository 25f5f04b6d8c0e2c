"""Read the best hits with the reading model, and order them by what it finds.

The search knows whether a passage is about the question, the reader whether it answers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from bythebook.errors import ReaderFailed
from bythebook.interfaces.models import Reader
from bythebook.language.detection import language_of
from bythebook.language.terms import language_of_passage
from bythebook.language.text import words
from bythebook.retrieval.score import answers, similarity
from bythebook.types import Hit

_log = logging.getLogger(__name__)

READ_HITS = 6  # best hits that are read: 5 are shown, and two near-identical ones may be among them
_LANGUAGE = "en"  # of the reading model; other passages keep their place


async def rerank(
    text: str,
    hits: Sequence[Hit],
    reader: Reader | None,
    *,
    most: int = READ_HITS,
    vectors: bool = True,
) -> tuple[Hit, ...]:
    """Return the hits with new probabilities, those first that most probably hold the answer.

    ``most`` hits are read, the others stay behind them. Without a reader, or if it fails, the hits
    keep their order. So do passages in other languages than the reader's.
    """
    if reader is None or language_of(words(text)) != _LANGUAGE:
        return tuple(hits)
    first, rest = hits[:most], hits[most:]
    own = [hit for hit in first if language_of_passage(hit.passage) == _LANGUAGE]
    try:
        readings = await reader.read(text, [hit.passage for hit in own])
    except ReaderFailed as error:
        _log.warning("answering without the reading model: %s", error)
        return tuple(hits)
    read = {
        hit.passage.id: replace(
            hit,
            reading=reading,
            answers=answers(hit.order, reading, vectors=vectors),
            score=similarity(hit.signals, reading, vectors=vectors),
        )
        for hit, reading in zip(own, readings, strict=True)
    }
    scored = [read.get(hit.passage.id, hit) for hit in first]
    ordered = [*sorted(scored, key=lambda hit: -hit.answers), *rest]
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(ordered, 1))
