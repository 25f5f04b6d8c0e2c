"""Hybrid search by vectors and keywords; returns hits with calibrated scores."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed, IndexDamaged, ServiceError, StoreFailed
from bythebook.interfaces.models import Embedder, Reader
from bythebook.interfaces.store import Candidate, IndexedPassage, PassageStore
from bythebook.language.terms import Vocabulary, term_evidence
from bythebook.language.tokens import estimate_most, shortened
from bythebook.retrieval.calibration import WORDS_ALONE, Calibration
from bythebook.retrieval.counter_evidence import add_counter_evidence
from bythebook.retrieval.current_page import page_first
from bythebook.retrieval.diversity import (
    LIKELY,
    ScoredCandidate,
    dedupe,
    file_of,
    limit_per_file,
    most_of_one_file,
)
from bythebook.retrieval.echo_filter import adds_information
from bythebook.retrieval.embeddings import QuestionVectors, embed
from bythebook.retrieval.overview import asks_overview, find_overview
from bythebook.retrieval.question_analysis import QUESTION_TOKENS, AnalyzedQuestion, analyze
from bythebook.retrieval.reranking import rerank
from bythebook.text.outline import Contents
from bythebook.text.text_kinds import shown_part
from bythebook.types import Hit, Passage, Question, Signals, TextKind, VectorState

if TYPE_CHECKING:
    from bythebook.types import Vectors

_log = logging.getLogger(__name__)

KEYWORDS_ONLY = "searching by keywords only: %s"

_CANDIDATES, _CANDIDATES_OF_LARGE_BOOK, _LARGE_BOOK = 24, 48, 20_000
_WIDER = 8  # times as many candidates if the first ones only repeat the question
_MOST_REPLACEMENTS = 24  # further passages examined if some of the best may be replaced
SELECTION_TOKENS = 1250  # of a selection that are embedded: 5000 characters of English
_SELECTION_WEIGHT = 0.3  # of its vector: it only orders similar passages, it does not answer


# Opens a keyword store with the same passages, for when the index fails; may raise StoreFailed.
OpenKeywordStore = Callable[[], Awaitable[PassageStore]]
ListContents = Callable[[], Awaitable[Contents]]


@dataclass(frozen=True, slots=True)
class SearchContext:
    """One immutable generation of a book's index, with everything needed to search it."""

    generation: str
    embedder: Embedder
    store: PassageStore
    vocabulary: Vocabulary
    calibration: Calibration
    vectors: VectorState = VectorState.READY
    question_vectors: QuestionVectors = field(default_factory=QuestionVectors)
    open_keyword_store: OpenKeywordStore | None = None
    failure: ServiceError | None = None  # why the search is limited to keywords
    reader: Reader | None = None  # reads the best hits; None: the retrieval signals decide
    contents: ListContents | None = None  # table of contents, for questions about the book itself

    def keywords_only(self, store: PassageStore, failure: ServiceError) -> SearchContext:
        """Return the same book, searched by keywords alone because of ``failure``."""
        return replace(
            self,
            store=store,
            calibration=WORDS_ALONE,
            vectors=VectorState.AWAY,
            open_keyword_store=None,
            failure=failure,
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """Hits of a search, with the analysis of the question they were found for."""

    question: AnalyzedQuestion
    hits: tuple[Hit, ...]
    query_ms: float
    search_ms: float
    vectors: VectorState = VectorState.READY
    neighbours: tuple[Hit, ...] = ()  # of the best hits, in their sections
    failure: ServiceError | None = None  # why the search was limited to keywords
    is_overview: bool = False  # the hits introduce the book or a part of it
    is_side: bool = False  # found for one side of a comparison

    def at_least(self, score: float) -> Findings:
        """Return a copy without the hits below this score."""
        return replace(self, hits=tuple(hit for hit in self.hits if hit.score >= score))


@dataclass(frozen=True, slots=True)
class _Query:
    """One search for a question in one index."""

    question: AnalyzedQuestion
    vector: Vectors | None  # None unless the book's vectors are ready
    index: SearchContext
    began: float

    def findings(
        self, hits: tuple[Hit, ...], embedded: float, neighbours: Iterable[Hit] = ()
    ) -> Findings:
        return Findings(
            self.question,
            hits,
            query_ms=(embedded - self.began) * 1000,
            search_ms=(time.perf_counter() - embedded) * 1000,
            vectors=self.index.vectors,
            neighbours=tuple(neighbours),
            failure=self.index.failure,
        )


async def search(
    question: Question,
    index: SearchContext,
    *,
    neighbours_of: int = 0,
    hidden: Set[TextKind] | None = None,
) -> Findings:
    """Search by vectors and keywords, then score each candidate by all its signals.

    The neighbours of the best ``neighbours_of`` hits are returned separately from the hits. If the
    index or the embedder fails, only keywords are searched, if a fallback is configured. Text of
    ``hidden`` kinds is blanked; None: what is no evidence for an answer.
    """
    analyzed = analyze(question, index.vocabulary)
    analyzed = analyzed if hidden is None else replace(analyzed, hidden=hidden)
    return await _with_fallback(lambda index: _search(analyzed, index, neighbours_of), index)


async def search_contents(question: Question, index: SearchContext) -> Findings | None:
    """Return the introduction of the part that the question asks an overview of, if it does."""
    if index.contents is None or not asks_overview(question.text):
        return None
    began = time.perf_counter()
    hits = await find_overview(question.text, await index.contents(), index.store)
    query = _Query(analyze(question, index.vocabulary), None, index, began)
    hidden = query.question.hidden - {TextKind.CONTENTS}
    hits = tuple(replace(hit, passage=shown_part(hit.passage, hidden)) for hit in hits)
    hits = tuple(hit for hit in hits if hit.passage.text.strip("-*. 0123456789\n"))
    return replace(query.findings(hits, began), is_overview=True) if hits else None


async def score_selection(question: Question, passage: Passage, index: SearchContext) -> Findings:
    """Score a reader's selection as the only evidence, without searching the index."""
    analyzed = analyze(question, index.vocabulary)
    return await _with_fallback(lambda index: _score_selection(analyzed, passage, index), index)


async def _with_fallback(
    find: Callable[[SearchContext], Awaitable[Findings]], index: SearchContext
) -> Findings:
    if index.open_keyword_store is None:
        return await find(index)
    try:
        try:
            return await find(index)
        except EmbedderFailed as error:
            _log.warning(KEYWORDS_ONLY, error)
            return await find(index.keywords_only(index.store, error))
    except StoreFailed as error:
        _log.warning(KEYWORDS_ONLY, error)
        return await find(index.keywords_only(await index.open_keyword_store(), error))


async def _search(analyzed: AnalyzedQuestion, index: SearchContext, neighbours_of: int) -> Findings:
    query = await _embed_question(analyzed, index)
    embedded = time.perf_counter()
    candidates, examined = await _find(query)
    question = analyzed.question
    best = _best_fusion_score(examined, index.calibration)
    scored = _score(examined, index.calibration, best=best)
    kept = limit_per_file(scored, limit=question.top_k, likely=max(question.min_score, LIKELY))
    hits = page_first(await rerank(analyzed, _ranked(kept), index.reader), question)
    shown = {hit.passage.id for hit in hits}
    neighbours = await _neighbours(hits[:neighbours_of], query, candidates, best=best)
    beside = (hit for hit in neighbours if hit.passage.id not in shown)
    return query.findings(hits, embedded, beside)


async def _score_selection(
    analyzed: AnalyzedQuestion, passage: Passage, index: SearchContext
) -> Findings:
    query = await _embed_question(analyzed, index)
    entry = await _entry(passage, index)
    embedded = time.perf_counter()
    candidates = _fuse([Candidate.of(entry, query.vector)], query)
    examined = _examine([entry], query, candidates)
    best = _best_fusion_score(examined, index.calibration)
    hits = _score(examined, index.calibration, best=best, selected=True)
    return query.findings(await rerank(analyzed, hits, index.reader), embedded)


async def _embed_question(analyzed: AnalyzedQuestion, index: SearchContext) -> _Query:
    """Embed the question, shifting it a little towards a selection that only guides the search."""
    began = time.perf_counter()
    if index.vectors is not VectorState.READY:
        return _Query(analyzed, None, index, began)
    vector = await index.question_vectors.of(analyzed.text, index.embedder)
    question = analyzed.question
    if question.selection is not None and not question.selection_only:
        selection = shortened(question.selection, QUESTION_TOKENS)
        vector = vector + _SELECTION_WEIGHT * await index.question_vectors.of(
            selection, index.embedder
        )
        vector = vector / np.linalg.norm(vector)
    return _Query(analyzed, vector, index, began)


async def _find(query: _Query) -> tuple[list[ScoredCandidate], list[Hit]]:
    """Return all candidates, and the best of them examined.

    Search again with a higher limit if the best only repeat the question.
    """
    question, index = query.question.question, query.index
    limit = max(breadth(index.vocabulary.passages), question.top_k)
    for wide in (limit, _WIDER * limit):
        found = await index.store.find(
            query.vector, query.question.terms, limit=wide, filters=question.filters
        )
        is_unfiltered = query.vector is not None and not question.filters
        if not found and index.vocabulary.passages and is_unfiltered:
            raise IndexDamaged("The index is empty.", hint="Run the ingest again.")
        candidates = _fuse(found, query)
        examined = await _examine_enough(query, candidates)
        if len(found) < wide or not all(hit.signals.echo for hit in examined):
            break
    return candidates, examined


def breadth(passages: int) -> int:
    """Return the candidates per search method: a larger book has more similar passages.

    With 100,000 passages, 48 candidates instead of 24 raise hit@5 from .865 to .895; with
    10,000 there is no difference. See ``bench/RESULTS.md``.
    """
    return _CANDIDATES if passages <= _LARGE_BOOK else _CANDIDATES_OF_LARGE_BOOK


def _fuse(candidates: Sequence[Candidate], query: _Query) -> list[ScoredCandidate]:
    """Combine the signals of each candidate into one score for ranking."""
    scored = []
    for candidate in candidates:
        evidence = term_evidence(query.question.terms, candidate.terms)
        signals = Signals(candidate.cosine, candidate.unit_cosine, *evidence)
        fusion_score = query.index.calibration.fusion_score(signals)
        scored.append(ScoredCandidate(candidate, signals, fusion_score))
    return scored


async def _examine_enough(query: _Query, candidates: Sequence[ScoredCandidate]) -> list[Hit]:
    """Examine the best candidates by fusion score, each content once.

    If a file exceeds its share of them, or some only repeat the question, also examine the next
    ones that may replace them.
    """
    question, calibration = query.question.question, query.index.calibration

    async def examine(chosen: Sequence[ScoredCandidate]) -> list[Hit]:
        ids = [scored.candidate.passage_id for scored in chosen]
        entries = await query.index.store.fetch(ids) if ids else []
        return _examine(entries, query, candidates)

    ranking = dedupe(candidates)
    first = await examine(ranking[: question.top_k])
    files = Counter(file_of(hit.passage) for hit in first)
    crowded = any(count > most_of_one_file(question.top_k) for count in files.values())
    if not crowded and not any(hit.signals.echo for hit in first):
        return first
    best, likely = _best_fusion_score(first, calibration), max(question.min_score, LIKELY)
    later = [
        scored
        for scored in ranking[question.top_k :]
        if calibration.found(scored.fusion_score, max(best, scored.fusion_score)) >= likely
    ]
    return [*first, *await examine(later[:_MOST_REPLACEMENTS])]


def _examine(
    entries: Sequence[IndexedPassage], query: _Query, candidates: Sequence[ScoredCandidate]
) -> list[Hit]:
    """Check the passages' text for counter-evidence; return hits without score and rank."""
    signals = {scored.candidate.passage_id: scored.signals for scored in candidates}
    hits = []
    for entry in entries:
        passage = shown_part(entry.passage, query.question.hidden)
        cosines = _unit_cosines(entry, query.vector)
        informative = adds_information(query.question.text, passage)
        seen = add_counter_evidence(
            signals[passage.id], query.question, passage, cosines, informative
        )
        hit = Hit(
            passage=passage,
            rank=0,
            cosine=seen.passage_cosine,
            score=0.0,
            signals=seen,
            unit_cosines=cosines,
            unit_informative=informative,
            vector=entry.vector,
        )
        hits.append(hit)
    return hits


def _unit_cosines(entry: IndexedPassage, vector: Vectors | None) -> tuple[float, ...]:
    if vector is None or entry.vector is None:
        return (0.0,) * len(entry.passage.units)
    return tuple((entry.unit_vectors @ vector).tolist())


def _best_fusion_score(hits: Iterable[Hit], calibration: Calibration) -> float:
    scores = [calibration.fusion_score(hit.signals) for hit in hits if not hit.signals.echo]
    return max(scores, default=0.0)


def _score(
    hits: Sequence[Hit], calibration: Calibration, *, best: float, selected: bool = False
) -> tuple[Hit, ...]:
    """Return the hits with their scores, relative to the ``best`` fusion score, best first."""
    scores = calibration.scores([hit.signals for hit in hits], best=best, chosen=selected)
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=True)]
    return _ranked(sorted(scored, key=lambda hit: (-hit.score, -hit.cosine, hit.passage.id)))


def _ranked(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1))


async def _neighbours(
    hits: Sequence[Hit], query: _Query, candidates: Sequence[ScoredCandidate], *, best: float
) -> tuple[Hit, ...]:
    """Return the neighbours of these hits, scored together with all candidates."""
    ids = dict.fromkeys(neighbour for hit in hits for neighbour in hit.passage.neighbours)
    if not ids:
        return ()
    calibration = query.index.calibration
    entries = await query.index.store.fetch(list(ids))
    beside = _fuse([Candidate.of(entry, query.vector) for entry in entries], query)
    examined = _examine(entries, query, [*candidates, *beside])
    best = max(best, _best_fusion_score(examined, calibration))
    return _score(examined, calibration, best=best)


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
