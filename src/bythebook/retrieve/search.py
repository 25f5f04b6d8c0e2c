"""A question and an index in, hits with calibrated scores out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed
from bythebook.index.calibrate import Calibration
from bythebook.index.lexicon import Vocabulary, term_evidence
from bythebook.model import Hit, Passage, Question, Ranks, Signals, VectorState
from bythebook.ports import Embedder, Entry, Found, PassageStore
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
    vectors: VectorState = VectorState.READY


@dataclass(frozen=True, slots=True)
class Findings:
    hits: tuple[Hit, ...]
    query_ms: float
    search_ms: float
    vectors: VectorState = VectorState.READY


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as the index understands it."""

    vector: Vectors | None  # None while the book's vectors are pending
    terms: Mapping[int, float]


async def search(question: Question, index: Index) -> Findings:
    """By meaning and by word at once; then each candidate is weighed by all its signals."""
    began = time.perf_counter()
    asked = await _understand(question, index)
    embedded = time.perf_counter()
    rankings = await _rank(question, asked, index.store)
    candidates = fuse(rankings.values(), limit=max(_WEIGHED, question.top_k))
    hits = _weigh(await index.store.fetch(candidates), asked, index.calibration)
    hits = [replace(hit, ranks=_ranks(hit.passage.id, rankings, candidates)) for hit in hits]
    done = time.perf_counter()
    return Findings(
        hits=best(hits, limit=question.top_k),
        query_ms=(embedded - began) * 1000,
        search_ms=(done - embedded) * 1000,
        vectors=index.vectors,
    )


async def weigh_selection(question: Question, passage: Passage, index: Index) -> Findings:
    """A reader's selection is all the evidence there is: nothing is searched, only weighed."""
    began = time.perf_counter()
    asked = await _understand(question, index)
    vector, unit_vectors = None, np.zeros((0, 0), dtype=np.float32)
    if index.vectors is VectorState.READY:
        units = [passage.unit_text(unit) for unit in passage.units] or [passage.text]
        vectors = await index.embedder.embed([passage.text, *units], role="passage")
        vector, unit_vectors = vectors[0], vectors[1:]
    embedded = time.perf_counter()
    entry = Entry(passage, vector, unit_vectors, index.vocabulary.weigh(passage))
    return Findings(
        hits=best(_weigh([entry], asked, index.calibration), limit=1),
        query_ms=(embedded - began) * 1000,
        search_ms=(time.perf_counter() - embedded) * 1000,
        vectors=index.vectors,
    )


async def _understand(question: Question, index: Index) -> _Asked:
    pending = index.vectors is VectorState.PENDING
    vector = None if pending else await _embed(question.text, index.embedder)
    return _Asked(vector, index.vocabulary.ask(question.text))


async def _embed(text: str, embedder: Embedder) -> Vectors:
    vectors = await embedder.embed([text], role="query")
    if vectors.shape != (1, embedder.dimension) or not np.isfinite(vectors).all():
        raise EmbedderFailed("The embedder returned no usable vector for the question.")
    vector: Vectors = vectors[0]
    return vector


async def _rank(
    question: Question, asked: _Asked, store: PassageStore
) -> dict[str, Sequence[Found]]:
    """The passages that each way of searching finds, best first."""
    each, filters = max(_EACH, question.top_k), question.filters
    ways = {"words": store.matching(asked.terms, limit=each, filters=filters)}
    if asked.vector is not None:
        ways["passage"] = store.nearest(asked.vector, by="passage", limit=each, filters=filters)
        ways["unit"] = store.nearest(asked.vector, by="unit", limit=each, filters=filters)
    return dict(zip(ways, await asyncio.gather(*ways.values()), strict=True))


def _ranks(
    passage_id: str, rankings: Mapping[str, Sequence[Found]], candidates: Sequence[str]
) -> Ranks:
    places = {
        way: rank
        for way, ranking in rankings.items()
        for rank, found in enumerate(ranking, 1)
        if found.passage_id == passage_id
    }
    return Ranks(**places, fused=candidates.index(passage_id) + 1)


def _weigh(entries: Sequence[Entry], asked: _Asked, calibration: Calibration) -> list[Hit]:
    cosines = [_unit_cosines(entry, asked) for entry in entries]
    signals = [_signals(entry, near, asked) for entry, near in zip(entries, cosines, strict=True)]
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
            entries, cosines, signals, calibration.scores(signals), strict=True
        )
    ]


def _unit_cosines(entry: Entry, asked: _Asked) -> tuple[float, ...]:
    if asked.vector is None:
        return (0.0,) * len(entry.passage.units)
    return tuple((entry.unit_vectors @ asked.vector).tolist())


def _signals(entry: Entry, unit_cosines: Sequence[float], asked: _Asked) -> Signals:
    term_weight, coverage = term_evidence(asked.terms, entry.terms)
    if asked.vector is None or entry.vector is None:
        return Signals(term_weight=term_weight, coverage=coverage)
    cosine = float(entry.vector @ asked.vector)
    return Signals(cosine, max(unit_cosines, default=cosine), term_weight, coverage)
