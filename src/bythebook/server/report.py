"""Build the author's report from the query log: what readers ask and the book does not cover.

Unanswered questions are grouped into topics by their vectors. The same questions always give the
same topics. Since some embedders give any two sentences a high cosine, the similarity threshold is
relative to that of the titles of different pages of the book.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache, TTLCache

from bythebook.book import Book
from bythebook.errors import ServiceError
from bythebook.interfaces.conversations import DayTally, Feedback, Tally, Unanswered
from bythebook.language.detection import likeliest
from bythebook.language.terms import terms_of
from bythebook.language.text import words
from bythebook.offload import offload
from bythebook.retrieval.embeddings import embed
from bythebook.text.outline import Contents, OutlineEntry
from bythebook.types import Place, Question

if TYPE_CHECKING:
    from bythebook.interfaces.models import Embedder
    from bythebook.types import Vectors

UNSURE = 0.6  # chat's lowest confidence band
OUTCOMES = ("answered", "refused", "failed")
PERCENTILES = (50, 90, 95, 99)
_QUESTIONS = 400  # distinct questions that are grouped into topics
_TITLES = 32  # page titles sampled as the baseline for unrelated texts
_NEAR = 0.42  # threshold, from 0 (cosine of unrelated page titles) to 1 (identical text)
_TOPICS, _LABEL_WORDS, _NEAREST, _THINNEST = 30, 3, 3, 5
_CACHED_VECTORS = 4096
_FEEDBACK = 1000
_FRESH_S, _KEPT = 60, 8  # a report covers days: a minute changes little; periods of one author


@dataclass(frozen=True, slots=True)
class Gap:
    """Topic that readers ask about and the book covers poorly or not at all."""

    label: str
    questions: tuple[Unanswered, ...]  # most frequent first
    nearest: tuple[Place, ...] = ()  # pages

    @property
    def count(self) -> int:
        return sum(one.count for one in self.questions)

    @property
    def refused(self) -> int:
        return sum(one.refused for one in self.questions)


@dataclass(frozen=True, slots=True)
class Report:
    since: datetime
    until: datetime
    contents: Contents  # of the served generation
    embedder: str
    vectors: str
    is_logged: bool = False  # whether the query log is enabled
    with_text: bool = False  # whether the log stores the text of questions
    tally: Tally = field(default_factory=Tally)
    gaps: tuple[Gap, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    error: str = ""  # why the topics could not be computed

    @property
    def days(self) -> tuple[DayTally, ...]:
        """Return every day, including those without questions."""
        known = {day.day: day for day in self.tally.days}
        first, last = self.since.date(), self.until.date()
        every = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return tuple(known.get(day) or DayTally(day) for day in every)

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the number of questions per outcome."""
        return {name: sum(getattr(day, name) for day in self.tally.days) for name in OUTCOMES}

    @property
    def asked(self) -> int:
        return sum(self.outcomes.values())

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(given.verdict for given in self.feedback)

    @property
    def complaints(self) -> Counter[str]:
        """Return the number of verdicts per reason."""
        return Counter(given.reason for given in self.feedback if given.reason)

    @property
    def passages(self) -> int:
        return sum(page.passages for page in self.contents.pages)

    @property
    def words(self) -> int:
        return sum(page.words for page in self.contents.pages)

    @property
    def languages(self) -> dict[str, int]:
        """Return the number of pages per language."""
        return dict(Counter(page.language for page in self.contents.pages))

    @property
    def thinnest(self) -> list[OutlineEntry]:
        return sorted(self.contents.pages, key=lambda page: page.words)[:_THINNEST]


def percentiles(times: Mapping[int, int]) -> dict[int, int]:
    """Return percentiles by nearest rank, so that each is a time that was measured."""
    if not times:
        return {}
    values = np.repeat(list(times), list(times.values()))
    ranked = np.percentile(values, PERCENTILES, method="inverted_cdf")
    return dict(zip(PERCENTILES, map(int, ranked), strict=True))


class Reporter:
    """Builds one report at a time; keeps them for a minute, and question vectors between them."""

    def __init__(self, book: Book, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._book = book
        self._building = asyncio.Lock()
        self._kept: TTLCache[int, Report] = TTLCache(_KEPT, _FRESH_S, timer=clock)
        self._cached: LRUCache[tuple[str, str], Vectors] = LRUCache(_CACHED_VECTORS)

    async def report(self, *, days: int) -> Report:
        async with self._building:
            report = self._kept.get(days)
            if report is None:
                report = self._kept[days] = await self._build(days)
            return report

    async def _build(self, days: int) -> Report:
        until = datetime.now(UTC)
        since = until - timedelta(days=days - 1)
        since = since.replace(hour=0, minute=0, second=0, microsecond=0)
        contents = await self._book.contents()
        async with self._book.reading() as context:
            embedder, vectors = context.index.embedder.name, context.index.vectors.value
        log, feedback = self._book.log, self._book.feedback
        if log is None:
            return Report(since, until, contents, embedder, vectors)
        unanswered = await log.kept.unanswered(since=since, below=UNSURE, limit=_QUESTIONS)
        gaps, error = await self._gaps(unanswered, contents)
        return Report(
            *(since, until, contents, embedder, vectors),
            is_logged=True,
            with_text=log.with_text,
            tally=await log.kept.tally(since=since),
            gaps=gaps,
            feedback=tuple(await feedback.recent(since=since, limit=_FEEDBACK)) if feedback else (),
            error=error,
        )

    async def _gaps(
        self, questions: Sequence[Unanswered], contents: Contents
    ) -> tuple[tuple[Gap, ...], str]:
        """Return the gaps and an error message: the report is useful even if the embedder fails."""
        if not questions:
            return (), ""
        try:
            async with self._book.reading() as context:
                embedder, languages = context.index.embedder, context.index.vocabulary.languages
            step = max(1, len(contents.pages) // _TITLES)
            titles = [page.title for page in contents.pages[::step][:_TITLES]]
            vectors = await self._vectors([*titles, *(one.text for one in questions)], embedder)
            apart, own = background(vectors[: len(titles)]), vectors[len(titles) :]
            topics = await offload(
                lambda: topics_of(questions, own, apart=apart, languages=languages)
            )
            return tuple([await self._with_nearest(topic) for topic in topics[:_TOPICS]]), ""
        except ServiceError as error:
            return (), error.message

    async def _with_nearest(self, topic: Gap) -> Gap:
        question = Question(topic.questions[0].text, top_k=2 * _NEAREST)
        places = [hit.passage.place for hit in (await self._book.search(question)).hits]
        pages = {place.page_url: place for place in places}
        return Gap(topic.label, topic.questions, tuple(pages.values())[:_NEAREST])

    async def _vectors(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        new = list(dict.fromkeys(t for t in texts if (embedder.name, t) not in self._cached))
        if new:
            rows = await embed(new, embedder, role="query")
            self._cached.update({(embedder.name, t): row for t, row in zip(new, rows, strict=True)})
        return np.stack([self._cached[embedder.name, text] for text in texts])


# --- topics ---------------------------------------------------------------------------------------


def topics_of(
    questions: Sequence[Unanswered], vectors: Vectors, *, apart: float, languages: Sequence[str]
) -> list[Gap]:
    """Return topics, largest first. ``apart`` is the cosine of unrelated texts."""
    weights = np.array([one.count for one in questions], dtype=np.float32)
    groups = cluster(vectors, weights, near=apart + _NEAR * (1.0 - apart))
    stems = [_stems(one.text, languages) for one in questions]
    spread = Counter(stem for own in stems for stem in own)
    topics = [
        Gap(
            _label([stems[n] for n in group], spread, questions[group[0]].text),
            tuple(questions[n] for n in group),
        )
        for group in groups
    ]
    return sorted(topics, key=lambda topic: (-topic.count, topic.questions[0].text))


def background(titles: Vectors) -> float:
    """Return the median cosine of different pages' titles, as a baseline for unrelated texts."""
    if len(titles) < 3:
        return 0.0
    pairs = (titles @ titles.T)[np.triu_indices(len(titles), k=1)]
    return float(np.clip(np.median(pairs), 0.0, 0.95))


def cluster(vectors: Vectors, weights: Vectors, *, near: float) -> list[list[int]]:
    """Return groups of row numbers; those whose means are at least ``near`` are merged."""
    groups = {row: [row] for row in range(len(vectors))}
    sums = vectors * weights[:, None]
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    while True:
        one, other = sorted(divmod(int(np.argmax(cosines)), len(vectors)))
        if cosines[one, other] < near:
            return [sorted(group) for group in groups.values()]
        groups[one] += groups.pop(other)
        sums[one] += sums[other]
        kept = list(groups)
        lengths = np.linalg.norm(sums[kept], axis=1) * np.linalg.norm(sums[one])
        cosines[other, :] = cosines[:, other] = -1.0
        cosines[one, kept] = cosines[kept, one] = sums[kept] @ sums[one] / lengths
        cosines[one, one] = -1.0


def _stems(text: str, languages: Sequence[str]) -> dict[str, str]:
    """Map the terms of a question to the words that they come from."""
    spoken = words(text)
    language = likeliest(spoken, languages)
    return {term: word for word in spoken for term in terms_of(word, language)}


def _label(stems: Sequence[dict[str, str]], spread: Counter[str], question: str) -> str:
    """Return the words that most questions share, or if too few, the most frequent question."""
    shared = Counter(stem for own in stems for stem in own)
    # A word that occurs throughout the log does not distinguish a topic.
    worth = {stem: n * n / spread[stem] for stem, n in shared.items() if n > 1}
    best = sorted(worth, key=lambda stem: (-worth[stem], stem))
    written = [Counter(own[stem] for own in stems if stem in own) for stem in best]
    forms = [min(each, key=lambda form: (-each[form], form)) for each in written]
    told = list(dict.fromkeys(form for form in forms if not form.isdecimal()))[:_LABEL_WORDS]
    return " · ".join(told) if len(told) > 1 else question
