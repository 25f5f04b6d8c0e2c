"""Hybrid search by vectors and keywords; returns hits with calibrated scores."""

from __future__ import annotations

import logging
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed, IndexDamaged, ServiceError, StoreFailed
from bythebook.indexing.calibration import WORDS_ALONE, Calibration
from bythebook.indexing.embeddings import QuestionVectors, embed
from bythebook.interfaces.embedding import Embedder
from bythebook.interfaces.store import Candidate, IndexedPassage, PassageStore
from bythebook.language.terms import Vocabulary, term_evidence
from bythebook.language.tokens import estimate_most, shortened
from bythebook.retrieval.counter_evidence import CounterEvidence, counter_evidence
from bythebook.retrieval.diversity import (
    LIKELY,
    Weighed,
    dedupe,
    file_of,
    limit_per_file,
    most_of_one_file,
)
from bythebook.retrieval.echo_filter import adds_information
from bythebook.types import Hit, Passage, Question, Ranks, Signals, VectorState

if TYPE_CHECKING:
    from bythebook.types import Vectors

_log = logging.getLogger(__name__)

BY_WORDS = "answered by the book's words alone: %s"

_EACH, _EACH_OF_MANY, _MANY = 24, 48, 20_000
_WIDER = 8  # times as many candidates if the first ones only repeat the question
_LATER = 24  # further passages examined if some of the best may be replaced
_HERE = 0.03  # score bonus in the order for passages on the page being read
_BEFORE_PATH = re.compile(r"^[a-z]+://[^/]*", re.IGNORECASE)
_AFTER_PATH = re.compile(r"[?#].*", re.DOTALL)
_PAGE_ENDING = re.compile(r"(?:/index)?(?:\.html?)?\Z")
QUESTION_TOKENS = 600  # of a question that are searched for, from its beginning
SELECTION_TOKENS = 1250  # of a selection that are embedded: 5000 characters of English
_LEAD = 0.3  # weight of a selection's vector: it only orders similar passages, it does not answer


# Fallback store with the same passages if the index fails; may raise StoreFailed.
Spare = Callable[[], Awaitable[PassageStore]]


@dataclass(frozen=True, slots=True)
class SearchContext:
    """One immutable generation of a book's index, with everything needed to search it."""

    generation: str
    embedder: Embedder
    store: PassageStore
    vocabulary: Vocabulary
    calibration: Calibration
    vectors: VectorState = VectorState.READY
    asked: QuestionVectors = field(default_factory=QuestionVectors)
    spare: Spare | None = None
    failure: ServiceError | None = None  # why the search is limited to keywords

    def by_words(self, store: PassageStore, failure: ServiceError) -> SearchContext:
        """Return the same book, searched by keywords alone because of ``failure``."""
        return replace(
            self,
            store=store,
            calibration=WORDS_ALONE,
            vectors=VectorState.AWAY,
            spare=None,
            failure=failure,
        )


@dataclass(frozen=True, slots=True)
class Findings:
    hits: tuple[Hit, ...]
    query_ms: float
    search_ms: float
    vectors: VectorState = VectorState.READY
    around: tuple[Hit, ...] = ()  # neighbours of the best hits in their sections
    terms: Mapping[int, float] = field(default_factory=dict)  # the question's, with their IDF
    failure: ServiceError | None = None  # why the search was limited to keywords

    def at_least(self, score: float) -> Findings:
        """Return a copy without the hits below this score."""
        return replace(self, hits=tuple(hit for hit in self.hits if hit.score >= score))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, embedded and split into terms."""

    text: str
    vector: Vectors | None  # None unless the book's vectors are ready
    terms: Mapping[int, float]


async def search(question: Question, index: SearchContext, *, around: int = 0) -> Findings:
    """Search by vectors and keywords, then score each candidate by all its signals.

    The neighbours of the best ``around`` hits are returned separately from the hits. If the index
    or the embedder fails, only keywords are searched, if a fallback is configured.
    """
    return await _with_what_answers(partial(_search, question, around=around), index)


async def _with_what_answers(
    find: Callable[[SearchContext], Awaitable[Findings]], index: SearchContext
) -> Findings:
    if index.spare is None:
        return await find(index)
    try:
        try:
            return await find(index)
        except EmbedderFailed as error:
            _log.warning(BY_WORDS, error)
            return await find(index.by_words(index.store, error))
    except StoreFailed as error:
        _log.warning(BY_WORDS, error)
        return await find(index.by_words(await index.spare(), error))


async def _search(question: Question, index: SearchContext, *, around: int) -> Findings:
    began = time.perf_counter()
    asked = await _understand(question, index)
    embedded = time.perf_counter()
    weighed, found = await _find(question, asked, index)
    most = _most_merit(found, index.calibration)
    hits = _hits(found, weighed, index.calibration, most=most)
    kept = limit_per_file(hits, limit=question.top_k, likely=max(question.floor, LIKELY))
    hits = page_first(_ranked(kept), question)
    beside = await _beside(hits[:around], asked, weighed, index, most=most)
    done = time.perf_counter()
    return Findings(
        hits,
        (embedded - began) * 1000,
        (done - embedded) * 1000,
        vectors=index.vectors,
        failure=index.failure,
        terms=asked.terms,
        around=tuple(hit for hit in beside if hit.passage.id not in {h.passage.id for h in hits}),
    )


async def _find(
    question: Question, asked: _Asked, index: SearchContext
) -> tuple[list[Weighed], list[_Examined]]:
    """Return all candidates and the examined best ones.

    Search again with a higher limit if the best only repeat the question.
    """
    limit = max(breadth(index.vocabulary.passages), question.top_k)
    for wide in (limit, _WIDER * limit):
        candidates = await index.store.find(
            asked.vector, asked.terms, limit=wide, filters=question.filters
        )
        if not candidates and index.vocabulary.passages and asked.vector is not None:
            _check_filters(question)
        weighed = _weigh(candidates, asked, index.calibration)
        found = await _examine_enough(question, asked, dedupe(weighed), index)
        if len(candidates) < wide or not all(each.seen.hollow for each in found):
            break
    return weighed, found


def page_first(hits: tuple[Hit, ...], question: Question) -> tuple[Hit, ...]:
    """Move hits on the page being read ahead of similar ones; scores and the floor still apply."""
    if question.page is None:
        return hits
    page = page_path(question.page)

    def order(hit: Hit) -> tuple[bool, float]:
        here = page_path(hit.passage.place.url) == page
        return hit.score < question.floor, -(hit.score + _HERE * here)

    return _ranked(sorted(hits, key=order))


def page_path(url: str) -> str:
    """Return the path of a page's URL, independent of the host: ``/docs/topics``."""
    path = _BEFORE_PATH.sub("", _AFTER_PATH.sub("", url))
    return _PAGE_ENDING.sub("", path.rstrip("/")) or "/"


def _check_filters(question: Question) -> None:
    """Raise IndexDamaged if a vector search without filters found nothing: the index is empty."""
    if not question.filters:
        raise IndexDamaged("The index is empty.", hint="Run the ingest again.")


async def _beside(
    hits: Sequence[Hit],
    asked: _Asked,
    weighed: Sequence[Weighed],
    index: SearchContext,
    *,
    most: float,
) -> tuple[Hit, ...]:
    """Return the neighbours of these hits, scored together with all candidates."""
    names = dict.fromkeys(name for hit in hits for name in hit.passage.neighbours)
    if not names:
        return ()
    entries = await index.store.fetch(list(names))
    candidates = [Candidate.of(entry, asked.vector) for entry in entries]
    beside = _weigh(candidates, asked, index.calibration)
    examined = _read(entries, asked, beside)
    most = max(most, _most_merit(examined, index.calibration))
    return _hits(examined, [*weighed, *beside], index.calibration, most=most)


def breadth(passages: int) -> int:
    """Return the candidates per search method: a larger book has more similar passages.

    With 100,000 passages, 48 candidates instead of 24 raise hit@5 from .865 to .895; with
    10,000 there is no difference. See ``bench/RESULTS.md``.
    """
    return _EACH if passages <= _MANY else _EACH_OF_MANY


async def score_selection(question: Question, passage: Passage, index: SearchContext) -> Findings:
    """Score a reader's selection as the only evidence, without searching the index."""
    return await _with_what_answers(partial(_weigh_selection, question, passage), index)


async def _weigh_selection(question: Question, passage: Passage, index: SearchContext) -> Findings:
    began = time.perf_counter()
    asked = await _understand(question, index)
    entry = await _entry(passage, index)
    embedded = time.perf_counter()
    weighed = _weigh([Candidate.of(entry, asked.vector)], asked, index.calibration)
    examined = _read([entry], asked, weighed)
    most = _most_merit(examined, index.calibration)
    hits = _hits(examined, weighed, index.calibration, most=most, chosen=True)
    done = time.perf_counter()
    return Findings(
        hits,
        (embedded - began) * 1000,
        (done - embedded) * 1000,
        vectors=index.vectors,
        failure=index.failure,
        terms=asked.terms,
    )


async def _understand(question: Question, index: SearchContext) -> _Asked:
    """Truncate and embed the question; later steps use only the result, so its size is bounded."""
    text = shortened(question.text, QUESTION_TOKENS)
    ready = index.vectors is VectorState.READY
    vector = await _meaning(text, question, index) if ready else None
    return _Asked(text, vector, index.vocabulary.ask(text))


async def _meaning(text: str, question: Question, index: SearchContext) -> Vectors:
    """Return the question's vector, shifted a little towards the selection unless it is fenced."""
    vector = await index.asked.of(text, index.embedder)
    if question.selection is None or question.selection_only:
        return vector
    selection = shortened(question.selection, QUESTION_TOKENS)
    vector = vector + _LEAD * await index.asked.of(selection, index.embedder)
    led: Vectors = vector / np.linalg.norm(vector)
    return led


async def _entry(passage: Passage, index: SearchContext) -> IndexedPassage:
    """Build an index entry for a passage that is not in the store.

    Only its beginning is embedded; later units are compared by keywords alone.
    """
    terms = index.vocabulary.weigh(passage)
    if index.vectors is not VectorState.READY:
        return IndexedPassage(passage, None, np.zeros((0, 0), dtype=np.float32), terms)
    units = [passage.unit_text(unit) for unit in passage.units] or [passage.text]
    texts = list(_beginning(units, SELECTION_TOKENS))
    if estimate_most(passage.text) > QUESTION_TOKENS:  # too long to embed as a whole, too
        vectors = await embed(texts, index.embedder, role="passage")
        whole = np.average(vectors, axis=0, weights=[len(text) for text in texts])
        whole = (whole / np.linalg.norm(whole)).astype(vectors.dtype)
    else:
        whole, *_ = vectors = await embed([passage.text, *texts], index.embedder, role="passage")
        vectors = vectors[1:]
    rest = np.zeros((len(units) - len(texts), vectors.shape[1]), dtype=vectors.dtype)
    return IndexedPassage(passage, whole, np.concatenate([vectors, rest]), terms)


def _beginning(units: Iterable[str], tokens: int) -> Iterator[str]:
    """Yield the first units up to a total of ``tokens``, truncating the last."""
    for unit in units:
        if tokens <= 0:
            return
        text = shortened(unit, tokens)
        tokens -= estimate_most(text)
        yield text


def _weigh(
    candidates: Sequence[Candidate], asked: _Asked, calibration: Calibration
) -> list[Weighed]:
    signals = [
        Signals(found.cosine, found.unit_cosine, *term_evidence(asked.terms, found.terms))
        for found in candidates
    ]
    return [
        Weighed(found, seen, calibration.merit(seen))
        for found, seen in zip(candidates, signals, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Examined:
    """A candidate whose text was checked for counter-evidence."""

    entry: IndexedPassage
    found: Signals  # before the check
    seen: Signals  # with counter-evidence
    unit_cosines: tuple[float, ...]


async def _examine_enough(
    question: Question, asked: _Asked, ranking: Sequence[Weighed], index: SearchContext
) -> list[_Examined]:
    """Examine the best candidates by merit.

    If a file exceeds its share of them, or some only repeat the question, also examine the next
    ones that may replace them.
    """
    first = await _examine(ranking[: question.top_k], asked, index)
    files = Counter(file_of(each.entry.passage) for each in first)
    crowded = any(count > most_of_one_file(question.top_k) for count in files.values())
    if not crowded and not any(each.seen.hollow for each in first):
        return first
    most, likely = _most_merit(first, index.calibration), max(question.floor, LIKELY)
    later = [
        each
        for each in ranking[question.top_k :]
        if index.calibration.found(each.merit, max(most, each.merit)) >= likely
    ]
    return [*first, *await _examine(later[:_LATER], asked, index)]


async def _examine(
    ranking: Sequence[Weighed], asked: _Asked, index: SearchContext
) -> list[_Examined]:
    if not ranking:
        return []
    entries = await index.store.fetch([each.candidate.passage_id for each in ranking])
    return _read(entries, asked, ranking)


def _read(
    entries: Sequence[IndexedPassage], asked: _Asked, weighed: Sequence[Weighed]
) -> list[_Examined]:
    by_id = {each.candidate.passage_id: each.signals for each in weighed}
    examined = []
    for entry in entries:
        found, near = by_id[entry.passage.id], _unit_cosines(entry, asked)
        told = adds_information(asked.text, entry.passage)
        against = counter_evidence(asked.text, asked.terms, entry.passage, near, told)
        seen = _with_doubts(found, against)
        if not all(told) and any(told):  # units that only repeat the question do not count
            seen = replace(seen, unit_cosine=max(compress(near, told)))
        examined.append(_Examined(entry, found, seen, near))
    return examined


def _most_merit(examined: Iterable[_Examined], calibration: Calibration) -> float:
    merits = [calibration.merit(each.seen) for each in examined if not each.seen.hollow]
    return max(merits, default=0.0)


def _hits(
    examined: Sequence[_Examined],
    weighed: Sequence[Weighed],
    calibration: Calibration,
    *,
    most: float,
    chosen: bool = False,
) -> tuple[Hit, ...]:
    """Return the scored hits, best first; scores are relative to the merit ``most``."""
    ranking = _Ranking(weighed)
    scores = calibration.scores([each.seen for each in examined], best=most, chosen=chosen)
    hits = [
        Hit(
            passage=each.entry.passage,
            rank=0,
            cosine=each.seen.passage_cosine,
            score=score,
            signals=each.seen,
            ranks=ranking.of(each.found),
            unit_cosines=each.unit_cosines,
            vector=each.entry.vector,
        )
        for each, score in zip(examined, scores, strict=True)
    ]
    return _ranked(sorted(hits, key=lambda hit: (-hit.score, -hit.cosine, hit.passage.id)))


def _ranked(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1))


def _with_doubts(seen: Signals, against: CounterEvidence) -> Signals:
    return replace(
        seen,
        missing=against.missing,
        denied=against.denied,
        strange=against.strange,
        hollow=against.hollow,
    )


def _unit_cosines(entry: IndexedPassage, asked: _Asked) -> tuple[float, ...]:
    if asked.vector is None or entry.vector is None:
        return (0.0,) * len(entry.passage.units)
    return tuple((entry.unit_vectors @ asked.vector).tolist())


class _Ranking:
    """Ranks of a passage among all candidates by each signal alone."""

    def __init__(self, weighed: Sequence[Weighed]) -> None:
        self._passage = sorted([-each.signals.passage_cosine for each in weighed])
        self._unit = sorted([-each.signals.unit_cosine for each in weighed])
        self._words = sorted([-each.signals.term_weight for each in weighed])

    def of(self, seen: Signals) -> Ranks:
        return Ranks(
            passage=1 + bisect_left(self._passage, -seen.passage_cosine),
            unit=1 + bisect_left(self._unit, -seen.unit_cosine),
            words=1 + bisect_left(self._words, -seen.term_weight),
            among=len(self._words),
        )
