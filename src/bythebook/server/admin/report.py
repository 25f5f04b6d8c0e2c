"""Build the admin report from the book and its query log: statistics and unanswered topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from bythebook.book import Book, Contents
from bythebook.chunking.outline import OutlineEntry
from bythebook.errors import ServiceError
from bythebook.indexing.embeddings import embed
from bythebook.interfaces.conversations import DayTally, Feedback, Tally, Unanswered
from bythebook.server.admin.topics import Topic, background, topics_of
from bythebook.types import Question

if TYPE_CHECKING:
    from bythebook.interfaces.embedding import Embedder
    from bythebook.types import Vectors

UNSURE = 0.6  # chat's lowest confidence band
PERCENTILES = (50, 90, 95, 99)
_QUESTIONS = 400  # distinct questions that are clustered into topics
_TITLES = 32  # page titles sampled as the baseline for unrelated texts
_TOPICS = 30
_NEAREST = 3
_THINNEST = 5
_KNOWN_VECTORS = 4096
_FEEDBACK = 1000


@dataclass(frozen=True, slots=True)
class NearPage:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Topic that readers ask about and the book covers poorly or not at all."""

    topic: Topic
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
    trouble: str = ""  # why the topics could not be computed

    @property
    def days(self) -> tuple[DayTally, ...]:
        """Return every day, including those without questions."""
        known = {day.day: day for day in self.tally.days}
        first, last = self.since.date(), self.until.date()
        every = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return tuple(known.get(day) or DayTally(day) for day in every)

    @property
    def answered(self) -> int:
        return sum(day.answered for day in self.tally.days)

    @property
    def refused(self) -> int:
        return sum(day.refused for day in self.tally.days)

    @property
    def failed(self) -> int:
        return sum(day.failed for day in self.tally.days)

    @property
    def asked(self) -> int:
        return self.answered + self.refused + self.failed

    def judged(self, verdict: str) -> int:
        return sum(given.verdict == verdict for given in self.feedback)

    @property
    def complaints(self) -> dict[str, int]:
        """Return the number of verdicts per reason."""
        return dict(Counter(given.reason for given in self.feedback if given.reason))


def percentiles(times: Mapping[int, int]) -> dict[int, int]:
    """Return percentiles by nearest rank, so that each is a time that was measured."""
    total = sum(times.values())
    found: dict[int, int] = {}
    passed = 0
    for time, count in sorted(times.items()):
        passed += count
        for percent in PERCENTILES:
            if percent not in found and passed * 100 >= percent * total:
                found[percent] = time
    return found


class Reporter:
    """Builds reports, and caches question vectors between them."""

    def __init__(self, library: Book) -> None:
        self._library = library
        self._known: dict[tuple[str, str], Vectors] = {}

    async def report(self, *, days: int) -> Report:
        until = datetime.now(UTC)
        since = until - timedelta(days=days - 1)
        since = since.replace(hour=0, minute=0, second=0, microsecond=0)
        book = await self._library.contents()
        edition = await self._edition(book)
        log = self._library.log
        if log is None:
            return Report(since, until, edition)
        unanswered = await log.kept.unanswered(since=since, below=UNSURE, limit=_QUESTIONS)
        gaps, trouble = await self._gaps(unanswered, book)
        return Report(
            since=since,
            until=until,
            edition=edition,
            is_logged=True,
            with_text=log.with_text,
            tally=await log.kept.tally(since=since),
            gaps=gaps,
            feedback=await self._feedback(since),
            trouble=trouble,
        )

    async def _edition(self, book: Contents) -> Edition:
        async with self._library.reading() as context:
            index = context.index
        return Edition(book.generation, index.embedder.name, index.vectors.value, book.pages)

    async def _feedback(self, since: datetime) -> tuple[Feedback, ...]:
        store = self._library.feedback
        return tuple(await store.recent(since=since, limit=_FEEDBACK)) if store else ()

    async def _gaps(
        self, questions: Sequence[Unanswered], book: Contents
    ) -> tuple[tuple[Gap, ...], str]:
        """Return the gaps and an error message: the report is useful even if the embedder fails."""
        if not questions:
            return (), ""
        try:
            topics = await self._topics(questions, book)
            return tuple([Gap(topic, await self._nearest(topic)) for topic in topics]), ""
        except ServiceError as error:
            return (), error.message

    async def _topics(self, questions: Sequence[Unanswered], book: Contents) -> list[Topic]:
        async with self._library.reading() as context:
            embedder, languages = context.index.embedder, context.index.vocabulary.languages
        titles = [page.title for page in _spread(book.pages, _TITLES)]
        vectors = await self._vectors([*titles, *(one.text for one in questions)], embedder)
        apart = background(vectors[: len(titles)])
        found = topics_of(questions, vectors[len(titles) :], apart=apart, languages=languages)
        return found[:_TOPICS]

    async def _nearest(self, topic: Topic) -> tuple[NearPage, ...]:
        found = await self._library.search(Question(topic.questions[0].text, top_k=2 * _NEAREST))
        places = [hit.passage.place for hit in found.hits]
        pages = {place.page_url: NearPage(place.title, place.page_url) for place in places}
        return tuple(pages.values())[:_NEAREST]

    async def _vectors(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        new = list(dict.fromkeys(t for t in texts if (embedder.name, t) not in self._known))
        if new:
            made = await embed(new, embedder, role="query")
            self._known |= {(embedder.name, text): row for text, row in zip(new, made, strict=True)}
        rows = np.stack([self._known[embedder.name, text] for text in texts])
        while len(self._known) > _KNOWN_VECTORS:
            del self._known[next(iter(self._known))]
        return rows


def _spread(pages: Sequence[OutlineEntry], count: int) -> Sequence[OutlineEntry]:
    return pages[:: max(1, len(pages) // count)][:count]
