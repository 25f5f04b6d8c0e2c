"""Settings in, an open ``Library`` out: the only place that chooses providers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bythebook.answer.extract import ExtractiveWriter
from bythebook.answer.respond import Desk, Event, respond
from bythebook.errors import (
    BookError,
    ConfigurationError,
    DatabaseFailed,
    EmbedderMismatch,
    IndexDamaged,
    NotIngested,
    UnknownProvider,
)
from bythebook.index.calibrate import calibration_of
from bythebook.index.check import IndexReport, compare
from bythebook.index.ingest import IngestResult, Press, Progress, ingest
from bythebook.index.lexicon import Vocabulary
from bythebook.model import Answer, Message, Question, Reply, Role, VectorState
from bythebook.retrieve.search import Findings, Index, search

if TYPE_CHECKING:
    from bythebook.book.site import Book
    from bythebook.ports import Catalog, Embedder, Generation, Shelf, ThreadStore, Writer
    from bythebook.providers.qdrant_existing import ExistingBook
    from bythebook.providers.qdrant_nodes import Server
    from bythebook.settings import Settings


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    module: str
    name: str
    install: str


EMBEDDERS = {
    "local": Provider("bythebook.providers.local", "LocalEmbedder", "pip install bythebook"),
}


Switch = Callable[[str], "tuple[Embedder, Shelf]"]  # an embedder's name -> it, and its shelf


class Library:
    """One book, open for questions. Picks up a newly published generation between two of them.

    With ``switch``, it follows the book to another embedder; without, that is an error.
    """

    def __init__(  # noqa: PLR0913 - a library has as many parts
        self,
        *,
        embedder: Embedder,
        shelf: Shelf,
        catalog: Catalog,
        threads: ThreadStore,
        make_writer: Callable[[Vocabulary], Writer] = ExtractiveWriter,
        context_tokens: int = 4000,
        switch: Switch | None = None,
    ) -> None:
        self._switch = switch
        self._embedder = embedder
        self._shelf = shelf
        self._catalog = catalog
        self._make_writer = make_writer
        self._context_tokens = context_tokens
        self._desk: Desk | None = None
        self._opening = asyncio.Lock()
        self.threads = threads

    async def ask(self, question: Question) -> AsyncIterator[Event]:
        """Every event of the question's journey; the last one is the reply."""
        desk = await self.desk()
        thread = await self.threads.read(question.thread) if question.thread else None
        async for event in respond(question, desk, thread.messages if thread else ()):
            if isinstance(event, Reply) and question.thread:
                await self._remember(question.thread, event)
            yield event

    async def reply(self, question: Question) -> Reply:
        async for event in self.ask(question):
            if isinstance(event, Reply):
                return event
        raise AssertionError("a journey ends with its reply")

    async def search(self, question: Question) -> Findings:
        return await search(question, (await self.desk()).index)

    async def ingest(
        self,
        book: Book,
        *,
        on_progress: Progress = lambda done, total: None,
        on_searchable: Callable[[], None] = lambda: None,
        origin: str = "",
    ) -> IngestResult:
        with self._catalog.ingesting():
            return await ingest(
                book,
                self._press(),
                on_progress=on_progress,
                on_searchable=on_searchable,
                origin=origin,
            )

    async def check_index(self, sources: Book | None) -> IndexReport:
        """Whether catalog, index and sources tell the same story."""
        passages = None if sources is None else sources.passages
        return await compare(self._press(), self._current(), passages)

    async def repair_index(self) -> None:
        """Make the index again from the catalog; nothing is read or embedded.

        Where vectors have been lost, the book is found by its words until the next ingest.
        """
        with self._catalog.ingesting():
            press, current = self._press(), self._current()
            passages = list(self._catalog.passages().values())
            vectors = VectorState.PENDING if press.missing(passages) else VectorState.READY
            await press.publish(passages, vectors, origin=current.origin, again=True)

    def origin(self) -> str:
        """Where the served book was read from, as its ingest wrote it down."""
        return self._current().origin

    def _press(self) -> Press:
        return Press(self._catalog, self._shelf, self._embedder)

    def _current(self) -> Generation:
        generation = self._catalog.current()
        if generation is None:
            raise not_ingested()
        return generation

    async def desk(self) -> Desk:
        served = await asyncio.to_thread(self._catalog.served)
        async with self._opening:
            if self._desk is None or self._desk.index.generation != served:
                self._desk = await self._open(await asyncio.to_thread(self._current))
            return self._desk

    async def health(self) -> dict[str, str]:
        """Each service's state in a word; never raises."""
        states: dict[str, str] = {}
        for name, probe in (("index", self._probe_index), ("embedder", self._probe_embedder)):
            try:
                await probe()
                states[name] = "ok"
            except BookError as error:
                states[name] = error.message
        return states

    async def warm_up(self) -> None:
        await self._embedder.embed(["Is the book open?"], role="query")

    async def close(self) -> None:
        """Let go of the store's connections and of the database."""
        desk, self._desk = self._desk, None
        if desk is not None:
            await desk.index.store.close()
        await self._shelf.close()
        await self.threads.close()

    async def _probe_index(self) -> None:
        await (await self.desk()).index.store.count()

    async def _probe_embedder(self) -> None:
        await self.warm_up()

    async def _open(self, generation: Generation) -> Desk:
        if generation.embedder != self._embedder.name and self._switch is not None:
            self._embedder, self._shelf = self._switch(generation.embedder)
        if generation.embedder != self._embedder.name:
            raise EmbedderMismatch(
                f"This book was ingested with {generation.embedder}, "
                f"but the settings say {self._embedder.name}.",
                cure=f"Set embedder to {generation.embedder}, or ingest the book again.",
            )
        store = await self._shelf.open(generation.name)
        if await store.count() != generation.passages:
            raise IndexDamaged(
                "The index does not hold what the catalog says.", cure="Run the ingest again."
            )
        vocabulary = _vocabulary(generation)
        index = Index(
            generation=generation.name,
            embedder=self._embedder,
            store=store,
            vocabulary=vocabulary,
            calibration=calibration_of(generation),
            vectors=generation.vectors,
        )
        return Desk(index, self._make_writer(vocabulary), self._context_tokens)

    async def _remember(self, thread_id: str, reply: Reply) -> None:
        now = datetime.now(UTC)
        said = reply.outcome.text
        confidence = reply.evidence.confidence.average if isinstance(reply.outcome, Answer) else 0.0
        exchange = [
            Message(Role.USER, reply.question.text, now),
            Message(Role.ASSISTANT, said, now, confidence),
        ]
        try:
            await self.threads.append(thread_id, exchange)
        except DatabaseFailed:
            # The answer does not fail with the notebook.
            _log.warning("a message of a conversation could not be kept")


def _vocabulary(generation: Generation) -> Vocabulary:
    try:
        return Vocabulary.from_bytes(generation.vocabulary)
    except ValueError:
        raise IndexDamaged(
            "The catalog's vocabulary is damaged.",
            cure="Move the home folder away and ingest the book again.",
        ) from None


def not_ingested() -> NotIngested:
    return NotIngested("This home holds no book yet.", cure="Run: bythebook ingest path/to/docs")


def open_library(
    settings: Settings | None = None, *, new: bool = False, book: Book | None = None
) -> Library:
    """A library on the providers that the settings name; ``new`` may make its home.

    With a ``book`` to ingest, its language has a say in the embedder. Nothing heavy is loaded
    until it is used.
    """
    from bythebook.providers.sql import SqlCatalog, SqlThreads
    from bythebook.settings import AUTO, load_settings

    settings = settings or load_settings()
    engine = _database(settings, new=new or settings.collection.existing)
    catalog = SqlCatalog(engine, settings.home)
    embedder = _embedder(_embedder_name(settings, catalog, book), settings)
    existing = _existing_book(settings, embedder)

    def switch(name: str) -> tuple[Embedder, Shelf]:
        other = choose(EMBEDDERS, name)
        return other, _shelf(settings, other)

    return Library(
        embedder=embedder,
        shelf=existing or _shelf(settings, embedder),
        catalog=existing or catalog,
        threads=SqlThreads(engine),
        make_writer=_writer(settings),
        context_tokens=settings.limits.context_tokens,
        switch=switch if settings.embedder == AUTO and existing is None else None,
    )


def _embedder(name: str, settings: Settings) -> Embedder:
    try:
        embedder: Embedder = choose(EMBEDDERS, name)
    except UnknownProvider as error:
        if name == settings.embedder:
            raise
        raise UnknownProvider(
            f"This book was ingested with {name}. {error.message}",
            cure=f"{error.cure} Or ingest the book again.",
        ) from None
    return embedder


def _embedder_name(settings: Settings, catalog: Catalog, book: Book | None) -> str:
    from bythebook.settings import AUTO

    if settings.embedder != AUTO:
        return settings.embedder
    if book is None and (current := catalog.current()) is not None:
        return current.embedder
    from bythebook.providers.local.choose import embedder_for

    choice = embedder_for(p.metadata.language for p in (book.passages if book else ()))
    if choice.note:
        _log.warning("%s", choice.note)
    return choice.embedder


def open_catalog(settings: Settings) -> Catalog:
    """The catalog of an ingested book, for looking at it without asking."""
    from bythebook.providers.sql import SqlCatalog

    return SqlCatalog(_database(settings, new=False), settings.home)


def _database(settings: Settings, *, new: bool) -> Any:
    from bythebook.providers.sql import open_database

    embedded = settings.database_url is None
    if embedded and settings.home.exists() and not settings.home.is_dir():
        raise ConfigurationError(
            f"The home {settings.home} is not a folder.", cure="Choose another with --home."
        )
    if embedded and not new and not (settings.home / "bythebook.db").is_file():
        raise not_ingested()
    return open_database(settings.database_url, settings.home)


def choose(table: dict[str, Provider], name: str) -> Any:
    """The provider that ``"provider:model"`` names, imported only now."""
    provider, _, model = name.partition(":")
    if provider not in table or not model:
        raise UnknownProvider(
            f"There is no provider {name!r}.",
            cure=f'Write "provider:model" with one of {", ".join(table)}.',
        )
    row = table[provider]
    try:
        return getattr(import_module(row.module), row.name)(model)
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"{name} needs the package {error.name}.", cure=f"Run: {row.install}"
        ) from None


def _shelf(settings: Settings, embedder: Embedder) -> Shelf:
    if settings.store == "qdrant":
        return _server_shelf(settings, embedder)
    if settings.store != "edge":
        raise ConfigurationError(
            f"There is no store {settings.store!r}.", cure="Use edge or qdrant."
        )
    from bythebook.providers.qdrant_edge import EdgeShelf

    return EdgeShelf(settings.home / "generations", dimension=embedder.dimension)


def _server_shelf(settings: Settings, embedder: Embedder) -> Shelf:
    server = _server(settings)
    from bythebook.providers.qdrant_server import ServerShelf

    return ServerShelf(server, settings.collection.name, dimension=embedder.dimension)


def _existing_book(settings: Settings, embedder: Embedder) -> ExistingBook | None:
    chosen = settings.collection
    if not chosen.existing:
        return None
    server = _server(settings)
    from bythebook.providers.qdrant_existing import ExistingBook

    return ExistingBook(
        server, chosen.name, embedder=embedder, fields=chosen.fields, vector=chosen.vector
    )


def _server(settings: Settings) -> Server:
    chosen = settings.qdrant
    if not chosen.urls:
        raise ConfigurationError("The store qdrant has no address.", cure="Set QDRANT_URL.")
    try:
        from bythebook.providers.qdrant_nodes import Server
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"The store qdrant needs the package {error.name}.",
            cure='Run: pip install "bythebook[qdrant]"',
        ) from None
    return Server(
        urls=chosen.urls,
        api_key=chosen.api_key.get_secret_value() if chosen.api_key else None,
        replication=chosen.replication,
        shards=chosen.shards,
        timeout_s=chosen.timeout_s,
    )


def _writer(settings: Settings) -> Callable[[Vocabulary], Writer]:
    if settings.writer != "extractive":
        raise ConfigurationError(f"There is no writer {settings.writer!r}.", cure="Use extractive.")
    return ExtractiveWriter
