"""Settings in, an open ``Library`` out: the only place that chooses providers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bythebook.answer.again import KnownReplies
from bythebook.errors import (
    ConfigurationError,
    DatabaseFailed,
    UnknownProvider,
)
from bythebook.library import Library, MakeWriter, extractive, not_ingested
from bythebook.talk.archiver import Archiver, Retention
from bythebook.talk.log import LogQueue

if TYPE_CHECKING:
    from bythebook.book.site import Book
    from bythebook.model import Evidence, Hit, Question
    from bythebook.ports import (
        Catalog,
        Counter,
        Embedder,
        KeyStore,
        ReplyStore,
        Shelf,
        ThreadStore,
        Writer,
    )
    from bythebook.providers.accounts import Account
    from bythebook.providers.agents import House
    from bythebook.providers.agents_wire import Line
    from bythebook.providers.budget import Budget
    from bythebook.providers.openai import OpenAIWriter
    from bythebook.providers.qdrant_existing import ExistingBook
    from bythebook.providers.qdrant_nodes import Server
    from bythebook.providers.sql import SqlCatalog
    from bythebook.providers.sql_feedback import SqlFeedback
    from bythebook.providers.sql_threads import SqlThreads
    from bythebook.providers.web import Web
    from bythebook.retrieve.search import Index
    from bythebook.settings import Settings


_log = logging.getLogger(__name__)

_LOG_DEADLINE_S = 0.5
_OPERATORS_PATIENCE_S = 30.0  # who runs a command can wait for a busy database
_PROBE_S = 5.0
_REMEMBERED = 256  # passages of a book on a server, of 20 KB or so each


@dataclass(frozen=True, slots=True)
class Provider:
    module: str
    name: str
    install: str = "pip install bythebook"


EMBEDDERS = {
    "local": Provider("bythebook.providers.local", "LocalEmbedder"),
    "openai": Provider("bythebook.providers.openai", "openai_embedder"),
    "cohere": Provider("bythebook.providers.cohere", "cohere_embedder"),
    "gemini": Provider("bythebook.providers.gemini", "gemini_embedder"),
    "ollama": Provider("bythebook.providers.openai", "openai_embedder"),
}
_CHAT = Provider("bythebook.providers.openai", "OpenAIWriter")
WRITERS = {
    "openai": _CHAT,
    "openrouter": _CHAT,
    "gemini": _CHAT,
    "ollama": _CHAT,
    "agents": Provider(
        "bythebook.providers.agents", "AgentsWriter", 'pip install "bythebook[agents]"'
    ),
}

Probe = Callable[[], Awaitable[None]]  # returns if the provider can be used, or says what to do


def open_library(
    settings: Settings | None = None, *, new: bool = False, book: Book | None = None
) -> Library:
    """A library on the providers that the settings name; ``new`` may make its home.

    With a ``book`` to ingest, its language has a say in the embedder. Nothing heavy is loaded
    until it is used.
    """
    from bythebook.providers.sql import SqlCatalog
    from bythebook.providers.words_store import WordsStore
    from bythebook.settings import AUTO, load_settings

    settings = settings or load_settings()
    engine = _database(settings, new=new or settings.collection.existing)
    catalog = SqlCatalog(engine, settings.home)
    hosted = Hosted(settings)
    embedder = _embedder(_embedder_name(settings, catalog, book), settings, hosted)
    existing = _existing_book(settings, embedder)

    def switch(name: str) -> tuple[Embedder, Shelf]:
        other = _chosen_embedder(name, hosted)
        return other, _shelf(settings, other, catalog)

    threads, archiver, log, feedback = _notebook(settings, engine)
    return Library(
        embedder=embedder,
        shelf=existing or _shelf(settings, embedder, catalog),
        catalog=existing or catalog,
        threads=threads,
        log=log,
        archiver=archiver,
        feedback=feedback,
        deadline_s=settings.database.timeout_s,
        make_writer=_writer(settings, hosted),
        make_fallback=_fallback(settings),
        context_tokens=settings.limits.context_tokens,
        spare=WordsStore if settings.spare == "words" and existing is None else None,
        switch=switch if settings.embedder == AUTO and existing is None else None,
        on_close=hosted.close,
        known=KnownReplies() if settings.model.cache else None,
    )


class Hosted:
    """Providers behind an address, and the connections that they share, made when one is chosen."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._web: Web | None = None
        self._budget: Budget | None = None
        self._line: Line | None = None

    def embedder(self, make: Any, provider: str, model: str) -> Embedder:
        from bythebook.providers.accounts import embedder_account

        account = embedder_account(provider, model, self._settings)
        embedder: Embedder = make(account, self._settings.embedding, web=self._connections())
        return embedder

    def writer(self) -> OpenAIWriter:
        """The model that the settings name: one for all generations, with what it has learned."""
        from bythebook.answer.prompt import BESIDE, compose
        from bythebook.providers.openai import OpenAIWriter

        settings = self._settings
        return OpenAIWriter(
            self._account(),
            settings.model,
            compose=partial(compose, tokens=settings.limits.context_tokens + BESIDE),
            web=self._connections(),
            budget=self._allowance(),
        )

    def agents(self) -> MakeWriter:
        """Agents search the book, so each generation has its own; the line is the same."""
        make, _, _ = choose(WRITERS, self._settings.writer)
        from bythebook.providers.agents_wire import Line
        from bythebook.providers.breaker import Breaker

        settings, account = self._settings, self._account()
        self._line = line = Line(account)
        shared = {"model": line.model, "breaker": Breaker(), "budget": self._allowance()}

        def make_writer(index: Index) -> Writer:
            house = _house(index, settings.limits.context_tokens)
            writer: Writer = make(account, settings.model, house=house, **shared)
            return writer

        return make_writer

    def _account(self) -> Account:
        """Agents speak to whatever OpenAI's own models are behind, or to ``model.base_url``."""
        from bythebook.providers.accounts import writer_account

        _, provider, model = choose(WRITERS, self._settings.writer)
        if provider != "agents":
            return writer_account(provider, model, self._settings)
        account = writer_account("openai", model, self._settings)
        return replace(account, named=replace(account.named, name=self._settings.writer))

    def _allowance(self) -> Budget | None:
        daily = self._settings.model.daily_tokens
        if daily is not None and self._budget is None:
            from bythebook.providers.budget import Budget

            self._budget = Budget(self._settings.home / "tokens.db", daily)
        return self._budget

    async def close(self) -> None:
        if self._line is not None:
            await self._line.close()
        if self._web is not None:
            await self._web.close()
        if self._budget is not None:
            await self._budget.close()

    def _connections(self) -> Web:
        from bythebook.providers.web import Web

        self._web = self._web or Web()
        return self._web


def _embedder(name: str, settings: Settings, hosted: Hosted) -> Embedder:
    try:
        return _chosen_embedder(name, hosted)
    except UnknownProvider as error:
        if name == settings.embedder:
            raise
        raise UnknownProvider(
            f"This book was ingested with {name}. {error.message}",
            cure=f"{error.cure} Or ingest the book again.",
        ) from None


def _chosen_embedder(name: str, hosted: Hosted) -> Embedder:
    make, provider, model = choose(EMBEDDERS, name)
    embedder: Embedder = (
        make(model) if provider == "local" else hosted.embedder(make, provider, model)
    )
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


def open_threads(settings: Settings) -> tuple[ThreadStore, Archiver]:
    """The conversations with this book, and who archives them, without the book."""
    engine = _database(settings, new=False)
    return _notebook(settings, engine, deadline_s=_OPERATORS_PATIENCE_S)[:2]


def _notebook(
    settings: Settings, engine: Any, *, deadline_s: float | None = None
) -> tuple[SqlThreads, Archiver, LogQueue | None, SqlFeedback]:
    from bythebook.providers.sql_feedback import SqlFeedback
    from bythebook.providers.sql_log import SqlQueryLog
    from bythebook.providers.sql_threads import SqlThreads

    chosen = settings.retention
    retention = Retention(
        idle=timedelta(minutes=chosen.idle_minutes),
        queries=timedelta(days=chosen.query_days),
        threads=None if chosen.thread_days is None else timedelta(days=chosen.thread_days),
    )
    threads = SqlThreads(engine, deadline_s=deadline_s or settings.database.timeout_s)
    rows = SqlQueryLog(engine, deadline_s=deadline_s or _LOG_DEADLINE_S)
    log = LogQueue(rows, with_text=settings.log.text) if settings.log.queries else None
    feedback = SqlFeedback(engine, deadline_s=deadline_s or settings.database.timeout_s)
    archiver = Archiver(threads, rows, feedback=feedback, retention=retention)
    return threads, archiver, log, feedback


def open_keys(settings: Settings) -> KeyStore:
    from bythebook.providers.door_sql import SqlKeys

    return SqlKeys(_database(settings, new=True))


@dataclass(frozen=True, slots=True)
class DoorStores:
    """What the door remembers: who has a key, how often they asked, what it may say again."""

    keys: KeyStore
    counter: Counter
    replies: ReplyStore


def open_door_stores(settings: Settings | None = None) -> DoorStores:
    """Where the settings say; without settings, in this process's memory."""
    from bythebook.providers.door_memory import MemoryCounter, MemoryKeys, MemoryReplies

    if settings is None:
        return DoorStores(MemoryKeys(), MemoryCounter(), MemoryReplies())
    from bythebook.providers.door_spare import SpareCounter
    from bythebook.providers.door_sql import SqlCounter, SqlReplies, open_counts

    keys = open_keys(settings)
    shared = _redis(settings.door.counts) if settings.door.counts.startswith("redis") else None
    try:
        engine = open_counts(settings.database_url, settings.home)
    except DatabaseFailed:
        # A book on a read-only disk can still be asked; each worker remembers for itself.
        _log.warning("the door remembers nothing beyond this process: no database to write")
        return DoorStores(keys, shared or MemoryCounter(), MemoryReplies())
    if settings.door.counts == "database":
        shared = SqlCounter(engine)
    counter = SpareCounter(shared, MemoryCounter()) if shared else MemoryCounter()
    return DoorStores(keys, counter, SqlReplies(engine))


def _redis(url: str) -> Counter:
    try:
        from bythebook.providers.door_redis import RedisCounter
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"Counting on Redis needs the package {error.name}.",
            cure='Run: pip install "bythebook[redis]"',
        ) from None
    return RedisCounter(url)


def open_store_probes(settings: Settings) -> dict[str, Probe]:
    """Each store that the settings name, by what it holds, with a call that tries it out."""

    async def database() -> None:
        await asyncio.to_thread(lambda: open_catalog(settings).served())

    async def server() -> None:
        from bythebook.providers.qdrant_nodes import Nodes

        nodes = Nodes(_server(settings))
        try:
            await nodes.call(lambda node: node.get_collections(), seconds=_PROBE_S)
        finally:
            await nodes.close()

    async def index() -> None:
        async with open_library(settings) as library:
            await library.desk()

    async def counts() -> None:
        counter = _redis(settings.door.counts)
        try:
            await counter.take("check", limit=1, seconds=1)
        finally:
            await counter.close()

    kind = (settings.database_url or "sqlite").partition(":")[0]
    probes: dict[str, Probe] = {f"database {kind.partition('+')[0]}": database}
    if settings.store == "qdrant":
        probes["store qdrant"] = server
    probes["index"] = index
    if settings.door.counts.startswith("redis"):
        probes["counts redis"] = counts
    return probes


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


def choose(table: dict[str, Provider], name: str) -> tuple[Any, str, str]:
    """What makes the provider that ``"provider:model"`` names, imported only now, and the two."""
    provider, _, model = name.partition(":")
    if provider not in table or not model:
        raise UnknownProvider(
            f"There is no provider {name!r}.",
            cure=f'Write "provider:model" with one of {", ".join(table)}.',
        )
    row = table[provider]
    try:
        return getattr(import_module(row.module), row.name), provider, model
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"{name} needs the package {error.name}.", cure=f"Run: {row.install}"
        ) from None


def _shelf(settings: Settings, embedder: Embedder, catalog: SqlCatalog) -> Shelf:
    if settings.store == "qdrant":
        return _server_shelf(settings, embedder, catalog)
    if settings.store != "edge":
        raise ConfigurationError(
            f"There is no store {settings.store!r}.", cure="Use edge or qdrant."
        )
    from bythebook.providers.qdrant_edge import EdgeShelf

    return EdgeShelf(settings.home / "generations", dimension=embedder.dimension)


def _server_shelf(settings: Settings, embedder: Embedder, catalog: SqlCatalog) -> Shelf:
    server = _server(settings)
    from bythebook.providers.qdrant_server import ServerShelf

    return ServerShelf(
        server,
        settings.collection.name,
        dimension=embedder.dimension,
        owner=catalog.identity(),
        remembered=_REMEMBERED,
    )


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


def _writer(settings: Settings, hosted: Hosted) -> MakeWriter:
    if settings.writer == "extractive":
        return extractive
    if settings.writer.startswith("agents:"):
        return hosted.agents()
    writer = hosted.writer()
    return lambda index: writer


def _house(index: Index, context_tokens: int) -> House:
    """Our own functions, for agents to be built over."""
    from bythebook.answer.check import Supported, check
    from bythebook.answer.gate import gate, gather
    from bythebook.answer.plan import Mode, plan
    from bythebook.answer.prompt import BESIDE, Quoting
    from bythebook.providers.agents import House
    from bythebook.retrieve.search import search

    async def holds(text: str, evidence: Evidence) -> bool:
        async def draft() -> AsyncGenerator[str, None]:
            yield text

        verdicts = check(draft(), evidence, index.embedder)
        return any([isinstance(verdict, Supported) async for verdict in verdicts])

    async def search_again(question: Question) -> Sequence[Hit]:
        findings = await search(question, index)
        return gather(question, findings.hits, context_tokens=context_tokens).hits

    return House(
        quoting=lambda: Quoting(context_tokens + BESIDE),
        is_about_book=lambda question: plan(question).mode is Mode.STANDARD_RAG,
        may_answer=lambda question, evidence: gate(question, plan(question), evidence) is None,
        holds=holds,
        search=search_again,
    )


def _fallback(settings: Settings) -> MakeWriter | None:
    """Who stands in for a model; the offline writer needs nobody."""
    stands_in = settings.writer != "extractive" and settings.model.fallback == "extractive"
    return extractive if stands_in else None


def open_probes(settings: Settings) -> dict[str, Probe]:
    """Each configured provider, by what it does and is called, with a call that tries it out.

    The call raises a ``BookError`` that says what is wrong and what to do about it.
    """
    from bythebook.settings import AUTO

    async def embed() -> None:
        from bythebook.index.embed import embed

        hosted = Hosted(settings)
        try:
            embedder = _embedder(name, settings, hosted)
            await embed(["Is the book open?"], embedder, role="query")
        finally:
            await hosted.close()

    async def write() -> None:
        hosted = Hosted(settings)
        try:
            await hosted.writer().probe()
        finally:
            await hosted.close()

    name = settings.embedder
    if name == AUTO:
        name = _embedder_name(settings, open_catalog(settings), None)
    probes: dict[str, Probe] = {f"embedder {name}": embed}
    if settings.writer != "extractive":
        probes[f"writer {settings.writer}"] = write
    return probes
