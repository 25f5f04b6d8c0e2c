"""One book, open for questions: what it answers with, and which generation of it is read."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Self

from bythebook.answer.again import KnownReplies
from bythebook.answer.extract import ExtractiveWriter
from bythebook.answer.plan import plan
from bythebook.answer.respond import Event, respond
from bythebook.answer.write import Desk
from bythebook.book.outline import Leaf, outline, page_key
from bythebook.errors import (
    BookError,
    DatabaseFailed,
    EmbedderMismatch,
    IndexDamaged,
    NotFound,
    NotIngested,
    StoreFailed,
    damaged_catalog,
)
from bythebook.index.calibrate import calibration_of
from bythebook.index.check import IndexReport, compare
from bythebook.index.embed import QuestionVectors
from bythebook.index.ingest import IngestResult, Press, Progress, ingest
from bythebook.index.lexicon import Vocabulary
from bythebook.model import Asker, Message, Passage, Question, Reply, VectorState
from bythebook.offload import offload, offloaded
from bythebook.providers.hands import Hands
from bythebook.retrieve.search import BY_WORDS, Findings, Index, search
from bythebook.talk.archiver import Archiver
from bythebook.talk.log import LogQueue, Visit
from bythebook.talk.notebook import open_conversation

if TYPE_CHECKING:
    from bythebook.book.site import Book
    from bythebook.ports import (
        Catalog,
        Embedder,
        FeedbackStore,
        Generation,
        PassageStore,
        Shelf,
        ThreadStore,
        Writer,
    )

_log = logging.getLogger(__name__)

_MOST_SPARED = 50_000  # passages that are searched without the index: half a minute, half a GB
_OPENING = 60  # deadlines: before a book is open, there is nothing to go on with

Switch = Callable[[str], "tuple[Embedder, Shelf]"]  # an embedder's name -> it, and its shelf
MakeWriter = Callable[[Index], "Writer"]
MakeSpare = Callable[[Iterable[Passage], Vocabulary], "PassageStore"]
Observer = Callable[[Reply, str], None]  # a reply, and the generation that it was made from


def extractive(index: Index) -> Writer:
    """The writer that needs no model service."""
    return ExtractiveWriter(index.vocabulary)


@dataclass(frozen=True, slots=True)
class Contents:
    """What stands in a generation of the book, in reading order."""

    generation: str
    pages: tuple[Leaf, ...]
    passages: Mapping[str, Sequence[str]]  # of a section or a page, by its url


@dataclass(slots=True, eq=False)
class _Edition:
    """An opened generation, and how many questions are being answered from it."""

    desk: Desk
    shelf: Shelf
    readers: int = 0
    until: float = math.inf  # where the index does not answer: when to try it again

    @property
    def name(self) -> str:
        return self.desk.index.generation


class Library:
    """One book, open for questions. Picks up a newly published generation between two of them.

    With ``switch``, it follows the book to another embedder; without, that is an error. With
    ``spare``, it goes on by the catalog's words while the index or the embedder does not answer.
    """

    def __init__(  # noqa: PLR0913 - a library has as many parts
        self,
        *,
        embedder: Embedder,
        shelf: Shelf,
        catalog: Catalog,
        threads: ThreadStore,
        log: LogQueue | None = None,
        archiver: Archiver | None = None,
        feedback: FeedbackStore | None = None,
        make_writer: MakeWriter = extractive,
        make_fallback: MakeWriter | None = None,
        context_tokens: int = 4000,
        switch: Switch | None = None,
        spare: MakeSpare | None = None,
        retry_s: float = 5.0,
        deadline_s: float = 1.0,
        on_close: Callable[[], Awaitable[None]] | None = None,
        known: KnownReplies | None = None,
    ) -> None:
        self._make_spare = spare
        self._retry_s = retry_s  # before an index that did not answer is tried again
        self._spare: tuple[str, PassageStore] | None = None  # with the generation it is of
        self._switch = switch
        self._respond = known.respond if known else respond
        self._on_close = on_close
        self._embedder = embedder
        self._shelf = shelf
        self._catalog = catalog
        self._make_writer = make_writer
        self._make_fallback = make_fallback
        self._context_tokens = context_tokens
        self._edition: _Edition | None = None
        self._outdated: list[_Edition] = []  # still read by questions that began before a swap
        self._opening = asyncio.Lock()
        self._contents: Contents | None = None
        self._listing = asyncio.Lock()
        self._hands = Hands(2, deadline_s=deadline_s)
        self._housekeeping: asyncio.Task[None] | None = None
        self.threads = threads
        self.log = log
        self.archiver = archiver
        self.feedback = feedback
        self.asked = QuestionVectors()
        self.observers: list[Observer] = []

    async def ask(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> AsyncGenerator[Event, None]:
        """Every event of the question's journey; the last one is the reply.

        ``history`` is what was said before, where the asker keeps that himself, in no thread.
        What someone asks is logged; what nobody asks, as in an evaluation, is not.
        """
        asked_at = datetime.now(UTC)
        visit = Visit(question, asker, mode=plan(question).mode.value, log=self.log)
        try:
            async with self.reading() as desk:
                conversation = await open_conversation(self.threads, question, asker or Asker())
                said = (*conversation.history, *history)
                async with aclosing(self._respond(question, desk, said)) as journey:
                    async for event in journey:
                        if isinstance(event, Reply):
                            timed = replace(event, asked_at=asked_at, answered_at=datetime.now(UTC))
                            event = await conversation.keep(timed)  # noqa: PLW2901
                            visit.end(event)
                            for observe in self.observers:
                                observe(event, desk.index.generation)
                        yield event
        except BookError:
            visit.end(None)
            raise

    async def reply(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> Reply:
        async with aclosing(self.ask(question, asker=asker, history=history)) as journey:
            async for event in journey:
                if isinstance(event, Reply):
                    return event
        raise AssertionError("a journey ends with its reply")

    async def search(self, question: Question) -> Findings:
        async with self.reading() as desk:
            findings = await search(question, desk.index)
        if findings.failure is not None and not findings.hits:
            # Keywords alone found nothing. That says nothing about the book: tell what failed.
            raise findings.failure.with_traceback(None)
        return findings

    async def section(self, url: str) -> tuple[str, tuple[Passage, ...]]:
        """A section by its url, a page by the one without an anchor, in the order of reading.

        A citation's link will do: what leads a browser on to the quoted words is left out.
        """
        url = url.partition(":~:")[0].removesuffix("#")
        async with self.reading() as desk:
            contents = await self._contents_of(desk.index.generation)
            entries = await desk.index.store.fetch(contents.passages.get(url, ()))
        if not entries:
            raise NotFound("The book has no such section.", cure="Take the url of a source.")
        return url, tuple(entry.passage for entry in entries)

    async def contents(self) -> Contents:
        """The pages of the book that is served, in the order of reading."""
        async with self.reading() as desk:
            return await self._contents_of(desk.index.generation)

    async def _contents_of(self, generation: str) -> Contents:
        """Made by the first who asks: the whole catalog is looked through for it."""
        async with self._listing:
            if self._contents is None or self._contents.generation != generation:
                listed = partial(self._list_contents, generation)
                self._contents = await self._hands.do(listed, patience=_OPENING)
            return self._contents

    def _list_contents(self, generation: str) -> Contents:
        passages = self._catalog.passages().values()
        listed: dict[str, list[str]] = {}
        for passage in sorted(passages, key=lambda passage: passage.position):
            for url in {passage.place.url, page_key(passage)}:
                listed.setdefault(url, []).append(passage.id)
        return Contents(generation, outline(passages), listed)

    async def ingest(
        self,
        book: Book,
        *,
        on_progress: Progress = lambda done, total: None,
        on_searchable: Callable[[], None] = lambda: None,
        origin: str = "",
    ) -> IngestResult:
        async with offloaded(self._catalog.ingesting()):
            return await ingest(
                book,
                self._press(),
                on_progress=on_progress,
                on_searchable=on_searchable,
                origin=origin,
            )

    async def serves(self, generation: str) -> bool:
        """Whether this generation is served, whole and with its vectors: nothing to ingest."""
        async with offloaded(self._catalog.ingesting()):
            return await self._press().serves(generation)

    async def check_index(self, sources: Book | None) -> IndexReport:
        """Whether catalog, index and sources tell the same story."""
        passages = None if sources is None else sources.passages
        return await compare(self._press(), await offload(self._current), passages)

    async def repair_index(self) -> None:
        """Make the index again from the catalog; nothing is read or embedded.

        Where vectors have been lost, the book is found by its words until the next ingest.
        """
        async with offloaded(self._catalog.ingesting()):
            press, current = self._press(), await offload(self._current)
            passages = list((await offload(self._catalog.passages)).values())
            missing = await offload(lambda: press.missing(passages))
            vectors = VectorState.PENDING if missing else VectorState.READY
            await press.publish(passages, vectors, origin=current.origin, again=True)

    async def origin(self) -> str:
        """Where the served book was read from, as its ingest wrote it down."""
        return (await offload(self._current)).origin

    def _press(self) -> Press:
        return Press(self._catalog, self._shelf, self._embedder)

    def _current(self) -> Generation:
        generation = self._catalog.current()
        if generation is None:
            raise not_ingested()
        return generation

    async def desk(self) -> Desk:
        """What answers questions now. A later generation may close it: see ``reading``."""
        async with self.reading() as desk:
            return desk

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Desk]:
        """The newest generation, which stays open for as long as this question reads it."""
        edition = await self._newest()
        try:
            yield edition.desk
        finally:
            edition.readers -= 1
            await self._close_outdated()

    async def _newest(self) -> _Edition:
        """What the catalog names; what is open, where the catalog does not answer."""
        patience = 1 if self._edition else _OPENING
        try:
            served = await self._hands.do(self._catalog.served, patience=patience)
        except DatabaseFailed:
            if self._edition is None:
                raise
            served = self._edition.name
        async with self._opening:
            edition = self._edition
            if edition is None or edition.name != served or edition.until < time.monotonic():
                edition = self._edition = await self._renewed(edition)
            edition.readers += 1
        return edition

    async def _renewed(self, edition: _Edition | None) -> _Edition:
        """The served generation; what was read before it stays open for those who read it."""
        generation = await self._hands.do(self._current)
        while edition is None or edition.name != generation.name or edition.until < math.inf:
            try:
                opened = await self._open_edition(generation)
            except IndexDamaged:
                # An ingest may have taken it away since the catalog was asked.
                later = await self._hands.do(self._current)
                if later.name == generation.name:
                    raise
                generation = later
            else:
                if edition is not None:
                    self._outdated.append(edition)
                return opened
        return edition

    async def _open_edition(self, generation: Generation) -> _Edition:
        try:
            return _Edition(await self._open(generation), self._shelf)
        except StoreFailed as error:
            if self._make_spare is None:
                raise
            _log.warning(BY_WORDS, error)
            vocabulary = _vocabulary(generation)
            store = await self._spare_of(generation.name, vocabulary)
            index = self._index(generation, vocabulary, store).by_words(store, error)
            return _Edition(self._desk(index), self._shelf, until=time.monotonic() + self._retry_s)

    async def _close_outdated(self) -> None:
        done = [edition for edition in self._outdated if not edition.readers]
        self._outdated = [edition for edition in self._outdated if edition.readers]
        in_use = [self._shelf, *(edition.shelf for edition in self._outdated)]
        for edition in done:
            await edition.desk.index.store.close()
            if edition.shelf not in in_use:  # the book moved on to another embedder
                await edition.shelf.close()

    async def health(self) -> dict[str, str]:
        """Each service's state in a word; never raises."""
        return {**await self.stores(), "embedder": await _state(self._embed_something)}

    async def stores(self) -> dict[str, str]:
        """The states of what a question cannot do without, but for the embedder; never raises."""
        return {
            "database": await _state(self._ask_database),
            "index": await _state(self._count_passages),
        }

    async def warm_up(self) -> None:
        """Load what the first question would have to wait for."""
        await self.desk()
        await self._embed_something()

    def keep_house(self) -> None:
        """From now on, until the library is closed, archive what has become idle."""
        if self.archiver is not None and self._housekeeping is None:
            self._housekeeping = asyncio.create_task(self.archiver.run())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the store's connections and of the database."""
        housekeeping, self._housekeeping = self._housekeeping, None
        if housekeeping is not None:
            housekeeping.cancel()
            await asyncio.wait([housekeeping])
        editions = [*self._outdated, *([self._edition] if self._edition else [])]
        self._edition, self._outdated = None, []
        for edition in editions:
            await edition.desk.index.store.close()
        await self._shelf.close()
        if self._on_close is not None:
            await self._on_close()
        if self.log is not None:
            await self.log.close()
        if self.feedback is not None:
            await self.feedback.close()
        await self.threads.close()
        self._hands.close()

    async def _count_passages(self) -> None:
        async with self.reading() as desk:
            if desk.index.vectors is VectorState.AWAY:
                raise StoreFailed("The index does not answer.")
            if await desk.index.store.count() != desk.index.vocabulary.passages:
                raise _not_as_the_catalog_says()

    async def _embed_something(self) -> None:
        await self._embedder.embed(["Is the book open?"], role="query")

    async def _ask_database(self) -> None:
        await self._hands.do(self._catalog.served)
        await self.threads.list(owner=None, limit=1)

    async def _open_store(self, generation: Generation) -> PassageStore:
        """Of a book with vectors, the first question needs the model as well: load it meanwhile."""
        store = asyncio.create_task(self._shelf.open(generation.name))
        if generation.vectors is VectorState.READY:
            with suppress(BookError):  # the question will say so; a book can be opened without
                await self._embedder.prepare()
        return await store

    async def _open(self, generation: Generation) -> Desk:
        if generation.embedder != self._embedder.name and self._switch is not None:
            self._embedder, self._shelf = self._switch(generation.embedder)
        if generation.embedder != self._embedder.name:
            raise EmbedderMismatch(
                f"This book was ingested with {generation.embedder}, "
                f"but the settings say {self._embedder.name}.",
                cure=f"Set embedder to {generation.embedder}, or ingest the book again.",
            )
        store = await self._open_store(generation)
        if await store.count() != generation.passages:
            raise _not_as_the_catalog_says()
        return self._desk(self._index(generation, _vocabulary(generation), store))

    def _index(self, generation: Generation, vocabulary: Vocabulary, store: PassageStore) -> Index:
        may_spare = self._make_spare is not None
        return Index(
            generation=generation.name,
            embedder=self._embedder,
            store=store,
            vocabulary=vocabulary,
            calibration=calibration_of(generation),
            vectors=generation.vectors,
            asked=self.asked,
            spare=partial(self._spare_of, generation.name, vocabulary) if may_spare else None,
        )

    async def _spare_of(self, generation: str, vocabulary: Vocabulary) -> PassageStore:
        """Made by the first who needs it: the whole catalog is read for it."""
        assert self._make_spare is not None
        async with self._listing:
            if self._spare is None or self._spare[0] != generation:
                if vocabulary.passages > _MOST_SPARED:
                    raise StoreFailed("The index does not answer.", cure="Look after its server.")
                passages = await self._hands.do(self._catalog.passages, patience=_OPENING)
                store = await asyncio.to_thread(self._make_spare, passages.values(), vocabulary)
                self._spare = generation, store
            return self._spare[1]

    def _desk(self, index: Index) -> Desk:
        fallback = self._make_fallback(index) if self._make_fallback else None
        return Desk(index, self._make_writer(index), self._context_tokens, fallback)


async def _state(probe: Callable[[], Awaitable[None]]) -> str:
    try:
        await probe()
    except BookError as error:
        return error.message
    return "ok"


def _vocabulary(generation: Generation) -> Vocabulary:
    try:
        return Vocabulary.from_bytes(generation.vocabulary)
    except ValueError:
        raise damaged_catalog("vocabulary") from None


def _not_as_the_catalog_says() -> IndexDamaged:
    return IndexDamaged(
        "The index does not hold what the catalog says.", cure="Run the ingest again."
    )


def not_ingested() -> NotIngested:
    return NotIngested("This home holds no book yet.", cure="Run: bythebook ingest path/to/docs")
