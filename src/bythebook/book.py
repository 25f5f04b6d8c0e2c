"""The ``Book``: answers questions, runs ingests and tracks the generation being served."""

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

from bythebook.answering.answer_cache import AnswerCache
from bythebook.answering.extractive import ExtractiveWriter
from bythebook.answering.generation import AnswerContext
from bythebook.answering.pipeline import Event, respond
from bythebook.answering.routing import mode_of
from bythebook.chunking.outline import OutlineEntry, outline, page_key
from bythebook.conversations.query_log import LoggedRequest, LogQueue
from bythebook.conversations.retention import Archiver
from bythebook.conversations.session import open_conversation
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
from bythebook.indexing.calibration import calibration_of
from bythebook.indexing.embeddings import QuestionVectors
from bythebook.indexing.indexer import Indexer, IngestResult, Progress, ingest
from bythebook.indexing.integrity import IndexReport, compare
from bythebook.language.terms import Vocabulary
from bythebook.offload import offload, offloaded
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.retrieval.search import KEYWORDS_ONLY, Findings, SearchContext, search
from bythebook.types import Asker, Message, Passage, Question, Reply, VectorState

if TYPE_CHECKING:
    from bythebook.chunking.read_book import ParsedBook
    from bythebook.interfaces.conversations import FeedbackStore, ThreadStore
    from bythebook.interfaces.embedding import Embedder
    from bythebook.interfaces.store import Catalog, Generation, GenerationStore, PassageStore
    from bythebook.interfaces.writer import Writer

_log = logging.getLogger(__name__)

_MOST_SPARED = 50_000  # passages searched without the index: takes half a minute and half a GB
_OPENING = 60  # deadlines: until a book is open, there is no generation to fall back to

Switch = Callable[
    [str], "tuple[Embedder, GenerationStore]"
]  # embedder name -> embedder and its generation store
MakeWriter = Callable[[SearchContext], "Writer | ExtractiveWriter"]
MakeKeywordStore = Callable[[Iterable[Passage], Vocabulary], "PassageStore"]
Observer = Callable[[Reply, str], None]  # a reply, and the generation it came from


def extractive(index: SearchContext) -> ExtractiveWriter:
    """Return the writer that needs no language model."""
    del index
    return ExtractiveWriter()


@dataclass(frozen=True, slots=True)
class Contents:
    """Table of contents of one generation, in reading order."""

    generation: str
    pages: tuple[OutlineEntry, ...]
    passages: Mapping[str, Sequence[str]]  # passage ids by the url of a section or page


@dataclass(slots=True, eq=False)
class _OpenGeneration:
    """An open generation with the number of requests using it."""

    context: AnswerContext
    shelf: GenerationStore
    readers: int = 0
    until: float = math.inf  # if the index is down: when to retry it

    @property
    def name(self) -> str:
        return self.context.index.generation


class Book:
    """An open book. Picks up a newly published generation between two questions.

    With ``switch``, it follows the book to another embedder; without, that is an error. With
    ``spare``, it falls back to keyword search while the index or the embedder is down.
    """

    def __init__(  # noqa: PLR0913 - a library has as many parts
        self,
        *,
        embedder: Embedder,
        shelf: GenerationStore,
        catalog: Catalog,
        threads: ThreadStore,
        log: LogQueue | None = None,
        archiver: Archiver | None = None,
        feedback: FeedbackStore | None = None,
        make_writer: MakeWriter = extractive,
        make_fallback: MakeWriter | None = None,
        context_tokens: int = 4000,
        switch: Switch | None = None,
        spare: MakeKeywordStore | None = None,
        retry_s: float = 5.0,
        deadline_s: float = 1.0,
        on_close: Callable[[], Awaitable[None]] | None = None,
        known: AnswerCache | None = None,
    ) -> None:
        self._make_spare = spare
        self._retry_s = retry_s  # until an index that failed is retried
        self._spare: tuple[str, PassageStore] | None = None  # with the name of its generation
        self._switch = switch
        self._respond = known.respond if known else respond
        self._on_close = on_close
        self._embedder = embedder
        self._shelf = shelf
        self._catalog = catalog
        self._make_writer = make_writer
        self._make_fallback = make_fallback
        self._context_tokens = context_tokens
        self._edition: _OpenGeneration | None = None
        self._outdated: list[
            _OpenGeneration
        ] = []  # still used by requests that began before a swap
        self._opening = asyncio.Lock()
        self._contents: Contents | None = None
        self._listing = asyncio.Lock()
        self._executor = DeadlineExecutor(2, deadline_s=deadline_s)
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
        """Yield every event of answering the question; the last one is the reply.

        ``history`` holds earlier messages kept by the client instead of in a thread.
        Questions are logged, except those without an asker, as in an evaluation.
        """
        asked_at = datetime.now(UTC)
        visit = LoggedRequest(question, asker, mode=mode_of(question).value, log=self.log)
        try:
            async with self.reading() as context:
                conversation = await open_conversation(self.threads, question, asker or Asker())
                said = (*conversation.history, *history)
                async with aclosing(self._respond(question, context, said)) as journey:
                    async for event in journey:
                        if isinstance(event, Reply):
                            timed = replace(event, asked_at=asked_at, answered_at=datetime.now(UTC))
                            event = await conversation.keep(timed)  # noqa: PLW2901
                            visit.end(event)
                            for observe in self.observers:
                                observe(event, context.index.generation)
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
        async with self.reading() as context:
            findings = await search(question, context.index)
        if findings.failure is not None and not findings.hits:
            # No keyword hits does not mean that the book lacks an answer: report the failure.
            raise findings.failure.with_traceback(None)
        return findings

    async def section(self, url: str) -> tuple[str, tuple[Passage, ...]]:
        """Return the passages of a section, or of a page (url without anchor), in reading order.

        Accepts the link of a citation: its text fragment (``:~:``) is ignored.
        """
        url = url.partition(":~:")[0].removesuffix("#")
        async with self.reading() as context:
            contents = await self._contents_of(context.index.generation)
            entries = await context.index.store.fetch(contents.passages.get(url, ()))
        if not entries:
            raise NotFound("The book has no such section.", hint="Take the url of a source.")
        return url, tuple(entry.passage for entry in entries)

    async def contents(self) -> Contents:
        """Return the pages of the served generation, in reading order."""
        async with self.reading() as context:
            return await self._contents_of(context.index.generation)

    async def _contents_of(self, generation: str) -> Contents:
        """Return the cached contents; built on first use, because it reads the whole catalog."""
        async with self._listing:
            if self._contents is None or self._contents.generation != generation:
                listed = partial(self._list_contents, generation)
                self._contents = await self._executor.run(listed, deadlines=_OPENING)
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
        book: ParsedBook,
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
        """Return whether this generation is served whole and with vectors: no ingest needed."""
        async with offloaded(self._catalog.ingesting()):
            return await self._press().serves(generation)

    async def check_index(self, sources: ParsedBook | None) -> IndexReport:
        """Report whether catalog, index and sources agree."""
        passages = None if sources is None else sources.passages
        return await compare(self._press(), await offload(self._current), passages)

    async def repair_index(self) -> None:
        """Rebuild the index from the catalog, without parsing or embedding.

        If vectors have been lost, the book is searched by keywords until the next ingest.
        """
        async with offloaded(self._catalog.ingesting()):
            press, current = self._press(), await offload(self._current)
            passages = list((await offload(self._catalog.passages)).values())
            missing = await offload(lambda: press.missing(passages))
            vectors = VectorState.PENDING if missing else VectorState.READY
            await press.publish(passages, vectors, origin=current.origin, again=True)

    async def origin(self) -> str:
        """Return the source of the served book, as recorded by its ingest."""
        return (await offload(self._current)).origin

    def _press(self) -> Indexer:
        return Indexer(self._catalog, self._shelf, self._embedder)

    def _current(self) -> Generation:
        generation = self._catalog.current()
        if generation is None:
            raise not_ingested()
        return generation

    async def context(self) -> AnswerContext:
        """Return the current answer context. A later generation may close it: see ``reading``."""
        async with self.reading() as context:
            return context

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AnswerContext]:
        """Yield the newest generation, which stays open for as long as this request uses it."""
        edition = await self._newest()
        try:
            yield edition.context
        finally:
            edition.readers -= 1
            await self._close_outdated()

    async def _newest(self) -> _OpenGeneration:
        """Return the generation that the catalog names; if the catalog fails, the open one."""
        deadlines = 1 if self._edition else _OPENING
        try:
            served = await self._executor.run(self._catalog.served, deadlines=deadlines)
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

    async def _renewed(self, edition: _OpenGeneration | None) -> _OpenGeneration:
        """Open the served generation; the previous one stays open for requests that use it."""
        generation = await self._executor.run(self._current)
        while edition is None or edition.name != generation.name or edition.until < math.inf:
            try:
                opened = await self._open_edition(generation)
            except IndexDamaged:
                # An ingest may have deleted it since the catalog was read.
                later = await self._executor.run(self._current)
                if later.name == generation.name:
                    raise
                generation = later
            else:
                if edition is not None:
                    self._outdated.append(edition)
                return opened
        return edition

    async def _open_edition(self, generation: Generation) -> _OpenGeneration:
        try:
            return _OpenGeneration(await self._open(generation), self._shelf)
        except StoreFailed as error:
            if self._make_spare is None:
                raise
            _log.warning(KEYWORDS_ONLY, error)
            vocabulary = _vocabulary(generation)
            store = await self._spare_of(generation.name, vocabulary)
            index = self._index(generation, vocabulary, store).by_words(store, error)
            return _OpenGeneration(
                self._context(index), self._shelf, until=time.monotonic() + self._retry_s
            )

    async def _close_outdated(self) -> None:
        done = [edition for edition in self._outdated if not edition.readers]
        self._outdated = [edition for edition in self._outdated if edition.readers]
        in_use = [self._shelf, *(edition.shelf for edition in self._outdated)]
        for edition in done:
            await edition.context.index.store.close()
            if edition.shelf not in in_use:  # the book switched to another embedder
                await edition.shelf.close()

    async def health(self) -> dict[str, str]:
        """Return the state of each service, "ok" or an error message; never raises."""
        return {**await self.stores(), "embedder": await _state(self._embed_something)}

    async def stores(self) -> dict[str, str]:
        """Return the states of database and index, without the embedder; never raises."""
        return {
            "database": await _state(self._ask_database),
            "index": await _state(self._count_passages),
        }

    async def warm_up(self) -> None:
        """Load everything that the first question would otherwise wait for."""
        await self.context()
        await self._embed_something()

    def start_background_jobs(self) -> None:
        """Start archiving idle threads in the background, until the book is closed."""
        if self.archiver is not None and self._housekeeping is None:
            self._housekeeping = asyncio.create_task(self.archiver.run())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections to the store and the database."""
        housekeeping, self._housekeeping = self._housekeeping, None
        if housekeeping is not None:
            housekeeping.cancel()
            await asyncio.wait([housekeeping])
        editions = [*self._outdated, *([self._edition] if self._edition else [])]
        self._edition, self._outdated = None, []
        for edition in editions:
            await edition.context.index.store.close()
        await self._shelf.close()
        if self._on_close is not None:
            await self._on_close()
        if self.log is not None:
            await self.log.close()
        if self.feedback is not None:
            await self.feedback.close()
        await self.threads.close()
        self._executor.close()

    async def _count_passages(self) -> None:
        async with self.reading() as context:
            if context.index.vectors is VectorState.AWAY:
                raise StoreFailed("The index does not answer.")
            if await context.index.store.count() != context.index.vocabulary.passages:
                raise _not_as_the_catalog_says()

    async def _embed_something(self) -> None:
        await self._embedder.embed(["Is the book open?"], role="query")

    async def _ask_database(self) -> None:
        await self._executor.run(self._catalog.served)
        await self.threads.list(owner=None, limit=1)

    async def _open_store(self, generation: Generation) -> PassageStore:
        """Open the store; meanwhile load the model if the book has vectors: questions need it."""
        store = asyncio.create_task(self._shelf.open(generation.name))
        if generation.vectors is VectorState.READY:
            with suppress(BookError):  # the question will report it; a book opens without
                await self._embedder.prepare()
        return await store

    async def _open(self, generation: Generation) -> AnswerContext:
        if generation.embedder != self._embedder.name and self._switch is not None:
            self._embedder, self._shelf = self._switch(generation.embedder)
        if generation.embedder != self._embedder.name:
            raise EmbedderMismatch(
                f"This book was ingested with {generation.embedder}, "
                f"but the settings say {self._embedder.name}.",
                hint=f"Set embedder to {generation.embedder}, or ingest the book again.",
            )
        store = await self._open_store(generation)
        if await store.count() != generation.passages:
            raise _not_as_the_catalog_says()
        return self._context(self._index(generation, _vocabulary(generation), store))

    def _index(
        self, generation: Generation, vocabulary: Vocabulary, store: PassageStore
    ) -> SearchContext:
        may_spare = self._make_spare is not None
        return SearchContext(
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
        """Return the keyword store; built on first use, because it reads the whole catalog."""
        assert self._make_spare is not None
        async with self._listing:
            if self._spare is None or self._spare[0] != generation:
                if vocabulary.passages > _MOST_SPARED:
                    raise StoreFailed("The index does not answer.", hint="Look after its server.")
                passages = await self._executor.run(self._catalog.passages, deadlines=_OPENING)
                store = await asyncio.to_thread(self._make_spare, passages.values(), vocabulary)
                self._spare = generation, store
            return self._spare[1]

    def _context(self, index: SearchContext) -> AnswerContext:
        fallback = self._make_fallback(index) if self._make_fallback else None
        return AnswerContext(index, self._make_writer(index), self._context_tokens, fallback)


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
        "The index does not hold what the catalog says.", hint="Run the ingest again."
    )


def not_ingested() -> NotIngested:
    return NotIngested("This home holds no book yet.", hint="Run: bythebook ingest path/to/docs")
