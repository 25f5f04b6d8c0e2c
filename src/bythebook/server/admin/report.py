"""Build the admin report from the book and its query log: statistics and unanswered topics."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache, TTLCache

from bythebook.book import Book
from bythebook.errors import ServiceError
from bythebook.interfaces.conversations import DayTally, Feedback, Tally, Unanswered
from bythebook.offload import offload
from bythebook.retrieval.embeddings import embed
from bythebook.server.admin.topics import TopicGroup, background, topics_of
from bythebook.text.outline import Contents, OutlineEntry
from bythebook.types import Question

if TYPE_CHECKING:
    from bythebook.interfaces.models import Embedder
    from bythebook.types import Vectors

UNSURE = 0.6  # chat's lowest confidence band
OUTCOMES = ("answered", "refused", "failed")
PERCENTILES = (50, 90, 95, 99)
_QUESTIONS = 400  # distinct questions that are clustered into topics
_TITLES = 32  # page titles sampled as the baseline for unrelated texts
_TOPICS = 30
_NEAREST = 3
_THINNEST = 5
_CACHED_VECTORS = 4096
_FEEDBACK = 1000
_FRESH_S, _KEPT = 60, 8  # a report covers days: a minute changes little; periods of one author


@dataclass(frozen=True, slots=True)
class NearPage:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Topic that readers ask about and the book covers poorly or not at all."""

    topic: TopicGroup
    nearest: tuple[NearPage, ...]


@dataclass(frozen=True, slots=True)
class Edition:
    """Contents of the served generation of the book."""

    generation: str
    embedder: str
    vectors: str
    pages: tuple[OutlineEntry, ...]

    @property
    def passages(self) -> int:
        return sum(page.passages for page in self.pages)

    @property
    def words(self) -> int:
        return sum(page.words for page in self.pages)

    @property
    def languages(self) -> dict[str, int]:
        """Return the number of pages per language."""
        return dict(Counter(page.language for page in self.pages))

    @property
    def thinnest(self) -> list[OutlineEntry]:
        return sorted(self.pages, key=lambda page: page.words)[:_THINNEST]


@dataclass(frozen=True, slots=True)
class Report:
    since: datetime
    until: datetime
    edition: Edition
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
        edition = await self._edition(contents)
        log = self._book.log
        if log is None:
            return Report(since, until, edition)
        unanswered = await log.kept.unanswered(since=since, below=UNSURE, limit=_QUESTIONS)
        gaps, error = await self._gaps(unanswered, contents)
        feedback = self._book.feedback
        return Report(
            since=since,
            until=until,
            edition=edition,
            is_logged=True,
            with_text=log.with_text,
            tally=await log.kept.tally(since=since),
            gaps=gaps,
            feedback=tuple(await feedback.recent(since=since, limit=_FEEDBACK)) if feedback else (),
            error=error,
        )

    async def _edition(self, contents: Contents) -> Edition:
        async with self._book.reading() as context:
            index = context.index
        name, vectors = index.embedder.name, index.vectors.value
        return Edition(contents.generation, name, vectors, contents.pages)

    async def _gaps(
        self, questions: Sequence[Unanswered], contents: Contents
    ) -> tuple[tuple[Gap, ...], str]:
        """Return the gaps and an error message: the report is useful even if the embedder fails."""
        if not questions:
            return (), ""
        try:
            topics = await self._topics(questions, contents)
            return tuple([Gap(topic, await self._nearest(topic)) for topic in topics]), ""
        except ServiceError as error:
            return (), error.message

    async def _topics(
        self, questions: Sequence[Unanswered], contents: Contents
    ) -> list[TopicGroup]:
        async with self._book.reading() as context:
            embedder, languages = context.index.embedder, context.index.vocabulary.languages
        step = max(1, len(contents.pages) // _TITLES)
        titles = [page.title for page in contents.pages[::step][:_TITLES]]
        vectors = await self._vectors([*titles, *(one.text for one in questions)], embedder)
        apart = background(vectors[: len(titles)])
        own = vectors[len(titles) :]
        topics = partial(topics_of, questions, own, apart=apart, languages=languages)
        return (await offload(topics))[:_TOPICS]

    async def _nearest(self, topic: TopicGroup) -> tuple[NearPage, ...]:
        question = Question(topic.questions[0].text, top_k=2 * _NEAREST)
        places = [hit.passage.place for hit in (await self._book.search(question)).hits]
        pages = {place.page_url: NearPage(place.title, place.page_url) for place in places}
        return tuple(pages.values())[:_NEAREST]

    async def _vectors(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        new = list(dict.fromkeys(t for t in texts if (embedder.name, t) not in self._cached))
        if new:
            rows = await embed(new, embedder, role="query")
            self._cached.update({(embedder.name, t): row for t, row in zip(new, rows, strict=True)})
        return np.stack([self._cached[embedder.name, text] for text in texts])
