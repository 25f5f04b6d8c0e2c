"""Hybrid search by vectors and keywords; returns hits with calibrated scores."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import (
    EmbedderFailed,
    IndexDamaged,
    ServiceError,
    StoreFailed,
)
from bythebook.interfaces.models import Embedder, Reader
from bythebook.interfaces.store import Candidate, IndexedPassage, PassageStore
from bythebook.language.terms import Vocabulary
from bythebook.language.tokens import estimate_most, shortened
from bythebook.retrieval.current_page import page_first
from bythebook.retrieval.diversity import without_copies
from bythebook.retrieval.embeddings import QuestionVectors, embed
from bythebook.retrieval.overview import asks_overview, find_overview
from bythebook.retrieval.question_analysis import QUESTION_TOKENS, AnalyzedQuestion, analyze
from bythebook.retrieval.reranking import READ_HITS, rerank
from bythebook.retrieval.score import (
    ANSWERABLE,
    CosineMarks,
    answerability,
    answers,
    of_selection,
    order_odds,
    signals_of,
    similarity,
    with_text,
)
from bythebook.text.outline import Contents
from bythebook.text.text_kinds import shown_part
from bythebook.types import Hit, Passage, Question, TextKind, VectorState

if TYPE_CHECKING:
    from bythebook.types import Vectors

_log = logging.getLogger(__name__)

KEYWORDS_ONLY = "searching by keywords only: %s"

_CANDIDATES, _CANDIDATES_OF_LARGE_BOOK, _LARGE_BOOK = 24, 48, 20_000
_EXAMINED = 20  # best candidates whose text is compared with the question
HITS_OF_PART = 3  # of a part of a question, or of one side of a comparison: the best is shown
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
    marks: CosineMarks | None  # of the embedder's cosines; None: words alone are compared
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
            marks=None,
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
    answerability: float = 1.0  # probability that the hits answer the question; an overview does
    vectors: VectorState = VectorState.READY
    neighbours: tuple[Hit, ...] = ()  # of the best hits, in their sections
    failure: ServiceError | None = None  # why the search was limited to keywords
    is_overview: bool = False  # the hits introduce the book or a part of it
    is_side: bool = False  # found for one side of a comparison

    @property
    def is_answerable(self) -> bool:
        least = self.question.question.min_answerability
        return self.answerability >= (ANSWERABLE if least is None else least)

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

    @property
    def has_vectors(self) -> bool:
        return self.vector is not None and self.index.marks is not None

    def order_of(self, candidate: Candidate) -> tuple[float, float, str]:
        """Return the place of a candidate, whose text is not known yet; the id breaks ties."""
        signals = signals_of(candidate, self.question, self.index.marks)
        odds = order_odds(signals, vectors=self.has_vectors)
        return -odds, -candidate.cosine, candidate.passage_id

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
    """Search by vectors and keywords, read the best passages and score them.

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
    found = replace(query.findings(hits, began), is_overview=True)
    return found if hits else None


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
    candidates = await _find(query)
    question, limit = analyzed.question, max(_EXAMINED, analyzed.question.top_k)
    examined = await _examine([each.passage_id for each in candidates[:limit]], query)
    kept = without_copies(examined, question.top_k)
    most = READ_HITS if question.top_k > HITS_OF_PART else HITS_OF_PART
    read = await rerank(analyzed.text, kept, index.reader, most=most, vectors=query.has_vectors)
    hits = page_first(read[: question.top_k], question)
    found = query.findings(hits, embedded)
    chance = answerability(analyzed, read[:most], vectors=query.has_vectors)
    shown = {hit.passage.id for hit in hits}
    names = [name for hit in hits[:neighbours_of] for name in hit.passage.neighbours]
    beside = await _examine(list(dict.fromkeys(names)), query)
    neighbours = tuple(hit for hit in beside if hit.passage.id not in shown)
    return replace(found, answerability=chance, neighbours=neighbours)


async def _score_selection(
    analyzed: AnalyzedQuestion, passage: Passage, index: SearchContext
) -> Findings:
    query = await _embed_question(analyzed, index)
    entry = await _entry(passage, index)
    embedded = time.perf_counter()
    found = [_hit(entry, query)]
    (hit,) = await rerank(analyzed.text, found, index.reader, vectors=query.has_vectors)
    return replace(query.findings((hit,), embedded), answerability=of_selection(hit))


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


async def _find(query: _Query) -> list[Candidate]:
    """Return the candidates of all search methods, best first, equal texts once."""
    question, index = query.question.question, query.index
    limit = max(breadth(index.vocabulary.passages), question.top_k)
    found = await index.store.find(
        query.vector, query.question.terms, limit=limit, filters=question.filters
    )
    is_unfiltered = query.vector is not None and not question.filters
    if not found and index.vocabulary.passages and is_unfiltered:
        raise IndexDamaged("The index is empty.", hint="Run the ingest again.")
    unique: dict[str, Candidate] = {}
    for candidate in sorted(found, key=query.order_of):
        unique.setdefault(candidate.content_hash, candidate)
    return list(unique.values())


def breadth(passages: int) -> int:
    """Return the candidates per search method: a larger book has more similar passages.

    With 100,000 passages, 48 candidates instead of 24 raise hit@5 from .865 to .895; with
    10,000 there is no difference. See ``bench/RESULTS.md``.
    """
    return _CANDIDATES if passages <= _LARGE_BOOK else _CANDIDATES_OF_LARGE_BOOK


async def _examine(passage_ids: Sequence[str], query: _Query) -> tuple[Hit, ...]:
    """Compare the text of these passages with the question; return them in order."""
    entries = await query.index.store.fetch(passage_ids) if passage_ids else []
    hits = [_hit(entry, query) for entry in entries]
    return _ranked(sorted(hits, key=lambda hit: (-hit.order, -hit.cosine, hit.passage.id)))


def _hit(entry: IndexedPassage, query: _Query) -> Hit:
    """Return an entry as a hit that was not read."""
    question, index = query.question, query.index
    passage = shown_part(entry.passage, question.hidden)
    candidate = Candidate.of(entry, query.vector)
    signals = with_text(signals_of(candidate, question, index.marks), question, passage)
    order = order_odds(signals, vectors=query.has_vectors)
    return Hit(
        passage=passage,
        rank=0,
        cosine=candidate.cosine,
        score=similarity(signals, None, vectors=query.has_vectors),
        answers=answers(order, None, vectors=query.has_vectors),
        order=order,
        signals=signals,
        unit_cosines=_unit_cosines(entry, query.vector),
        vector=entry.vector,
    )


def _unit_cosines(entry: IndexedPassage, vector: Vectors | None) -> tuple[float, ...]:
    if vector is None or entry.vector is None:
        return (0.0,) * len(entry.passage.units)
    return tuple((entry.unit_vectors @ vector).tolist())


def _ranked(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1))


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
