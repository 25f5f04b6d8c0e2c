"""A question and an index in, hits with calibrated scores out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed
from bythebook.index.calibrate import Calibration
from bythebook.index.lexicon import Vocabulary, term_evidence
from bythebook.model import Hit, Passage, Question, Signals
from bythebook.ports import Embedder, Entry, PassageStore
from bythebook.retrieve.fuse import best, fuse

if TYPE_CHECKING:
    from bythebook.model import Vectors

_EACH = 24  # passages taken from each way of searching
_WEIGHED = 40  # passages whose signals are computed exactly


@dataclass(frozen=True, slots=True)
class Index:
    """One generation of a book and what reads it. It never changes under a question."""

    generation: str
    embedder: Embedder
    store: PassageStore
    vocabulary: Vocabulary
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Findings:
    hits: tuple[Hit, ...]
    query_ms: float
    search_ms: float


async def search(question: Question, index: Index) -> Findings:
    """By meaning and by word at once; then each candidate is weighed by all its signals."""
    began = time.perf_counter()
    vector = await _embed(question.text, index.embedder)
    embedded = time.perf_counter()
    asked = index.vocabulary.ask(question.text)
    each = max(_EACH, question.top_k)
    store, filters = index.store, question.filters
    rankings = await asyncio.gather(
        store.nearest(vector, by="passage", limit=each, filters=filters),
        store.nearest(vector, by="unit", limit=each, filters=filters),
        store.matching(asked, limit=each, filters=filters),
    )
    entries = await store.fetch(fuse(rankings, limit=max(_WEIGHED, question.top_k)))
    hits = best(_weigh(entries, vector, asked, index), limit=question.top_k)
    done = time.perf_counter()
    return Findings(hits, (embedded - began) * 1000, (done - embedded) * 1000)


async def weigh_selection(question: Question, passage: Passage, index: Index) -> Findings:
    """A reader's selection is all the evidence there is: nothing is searched, only weighed."""
    began = time.perf_counter()
    units = [passage.unit_text(unit) for unit in passage.units] or [passage.text]
    vector = await _embed(question.text, index.embedder)
    vectors = await index.embedder.embed([passage.text, *units], role="passage")
    embedded = time.perf_counter()
    asked = index.vocabulary.ask(question.text)
    terms = index.vocabulary.weigh(passage)
    entry = Entry(passage, vectors[0], vectors[1:], terms)
    hits = best(_weigh([entry], vector, asked, index), limit=1)
    return Findings(hits, (embedded - began) * 1000, (time.perf_counter() - embedded) * 1000)


async def _embed(text: str, embedder: Embedder) -> Vectors:
    vectors = await embedder.embed([text], role="query")
    if vectors.shape != (1, embedder.dimension) or not np.isfinite(vectors).all():
        raise EmbedderFailed("The embedder returned no usable vector for the question.")
    vector: Vectors = vectors[0]
    return vector


def _weigh(
    entries: Sequence[Entry], vector: Vectors, asked: Mapping[int, float], index: Index
) -> list[Hit]:
    cosines = [tuple((entry.unit_vectors @ vector).tolist()) for entry in entries]
    signals = [
        _signals(entry, unit_cosines, vector, asked)
        for entry, unit_cosines in zip(entries, cosines, strict=True)
    ]
    return [
        Hit(
            passage=entry.passage,
            rank=0,
            cosine=seen.passage_cosine,
            score=score,
            signals=seen,
            unit_cosines=unit_cosines,
            vector=entry.vector,
        )
        for entry, unit_cosines, seen, score in zip(
            entries, cosines, signals, index.calibration.scores(signals), strict=True
        )
    ]


def _signals(
    entry: Entry, unit_cosines: Sequence[float], vector: Vectors, asked: Mapping[int, float]
) -> Signals:
    cosine = float(entry.vector @ vector)
    term_weight, coverage = term_evidence(asked, entry.terms)
    return Signals(cosine, max(unit_cosines, default=cosine), term_weight, coverage)
