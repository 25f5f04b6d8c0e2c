"""Build a ``Book`` from settings. The only module that chooses providers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bythebook.answering.answer_cache import AnswerCache
from bythebook.book import Book
from bythebook.components import Components, MakeWriter, extractive
from bythebook.conversations.query_log import LogQueue
from bythebook.conversations.retention import Archiver, Retention
from bythebook.errors import ConfigurationError, DatabaseFailed, UnknownProvider
from bythebook.generations import not_ingested
from bythebook.providers.registry import EMBEDDERS, WRITERS, choose_provider

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.errors import ServiceError
    from bythebook.interfaces.access import RateCounter
    from bythebook.interfaces.conversations import ThreadStore
    from bythebook.interfaces.embedding import Embedder
    from bythebook.interfaces.reader import Reader
    from bythebook.interfaces.store import Catalog, GenerationStore
    from bythebook.interfaces.writer import Writer
    from bythebook.providers.http.client import HttpClient
    from bythebook.providers.llm.agents import AgentTools
    from bythebook.providers.llm.budget import Budget
    from bythebook.providers.llm.openai import OpenAIWriter
    from bythebook.providers.llm.service import ModelService
    from bythebook.providers.llm.support import ModelSupport
    from bythebook.providers.qdrant.foreign import ForeignCollection
    from bythebook.providers.qdrant.nodes import Server
    from bythebook.providers.sql.catalog import SqlCatalog
    from bythebook.providers.sql.feedback import SqlFeedback
    from bythebook.providers.sql.idempotency import SqlReplies
    from bythebook.providers.sql.keys import SqlKeys
    from bythebook.providers.sql.threads import SqlThreads
    from bythebook.retrieval.search import SearchContext
    from bythebook.types import Hit, Passage, Question

_log = logging.getLogger(__name__)

T = TypeVar("T")

_LOG_DEADLINE_S = 0.5
_OPERATORS_PATIENCE_S = 30.0  # a command-line user can wait for a busy database
_CACHED_PASSAGES = 256  # of a book on a server, about 20 KB each


def build_book(settings: Settings | None = None, *, new: bool = False) -> Book:
    """Return a book on the providers that the settings name; ``new`` may create its home folder.

    Blocks while it opens the database. Models are loaded on first use.
    """
    from bythebook.config.settings import AUTO, load_settings
    from bythebook.interfaces.source import SiteOptions
    from bythebook.providers.flat_index import keyword_store
    from bythebook.providers.sql.catalog import SqlCatalog

    settings = settings or load_settings()
    engine = _database(settings, new=new or settings.collection.existing)
    catalog = SqlCatalog(engine, settings.home)
    hosted = Hosted(settings)
    embedder = open_embedder(embedder_name(settings, catalog), settings, hosted)
    existing = _existing_book(settings, embedder)
    falls_back = settings.index_fallback == "keyword"
    stands_in = settings.writer != "extractive" and settings.model.fallback == "extractive"
    chooses = settings.embedder == AUTO and existing is None

    def switch_embedder(name: str) -> tuple[Embedder, GenerationStore]:
        other = hosted.embedder(name)
        return other, _generation_store(settings, other, catalog)

    threads, archiver, log, feedback = _conversations(settings, engine)
    components = Components(
        embedder=embedder,
        store=existing or _generation_store(settings, embedder, catalog),
        catalog=existing or catalog,
        threads=threads,
        log=log,
        archiver=archiver,
        feedback=feedback,
        reader=(reader := hosted.reader()),
        make_writer=_writer(settings, hosted, reader),
        support_model=_support_model(settings, hosted),
        model_only=settings.verifier == "model",
        make_fallback=extractive if stands_in else None,
        writer_failure=None if settings.writer == "extractive" else hosted.failure,
        context_tokens=settings.limits.context_tokens,
        answer_cache=AnswerCache() if settings.model.cache else None,
        switch_embedder=switch_embedder if chooses else None,
        choose_embedder=_embedder_for if chooses else None,
        make_keyword_store=keyword_store if falls_back and existing is None else None,
        deadline_s=settings.database.timeout_s,
        home=settings.home,
        site=SiteOptions.of(settings.site.model_dump()),
        price_in=settings.embedding.price_in,
        on_close=hosted.close,
    )
    return Book(components)


class Hosted:
    """Hosted providers and the connections that they share, created on first use."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._web: HttpClient | None = None
        self._budget: Budget | None = None
        self._service: ModelService | None = None
        self._closes: list[Callable[[], Awaitable[None]]] = []

    def embedder(self, name: str) -> Embedder:
        """Return the embedder "provider:model"; a hosted one shares the connections."""
        make, provider, model = choose_provider("embedders", name)
        if provider == "local" or provider not in EMBEDDERS:
            return cast("Embedder", self._close_later(make(model)))
        from bythebook.providers.http.credentials import embedder_account

        account = embedder_account(provider, model, self._settings)
        embedder: Embedder = make(account, self._settings.embedding, web=self._connections())
        return embedder

    def reader(self) -> Reader | None:
        """Return the configured reading model; it loads on first use."""
        if self._settings.reader == "none":
            return None
        make, _, model = choose_provider("readers", self._settings.reader)
        return cast("Reader", self._close_later(make(model)))

    def added_writer(self) -> Writer | None:
        """Return the writer if another package provides it."""
        make, provider, model = choose_provider("writers", self._settings.writer)
        return None if provider in WRITERS else self._close_later(make(model))

    def _close_later(self, provider: T) -> T:
        if (close := getattr(provider, "close", None)) is not None:
            self._closes.append(close)
        return provider

    def writer(self) -> OpenAIWriter:
        """Return the configured model's writer: one for all generations, as it keeps state."""
        from bythebook.answering.prompts import OTHER_TOKENS, compose
        from bythebook.providers.llm.openai import OpenAIWriter

        tokens = self._settings.limits.context_tokens + OTHER_TOKENS
        return OpenAIWriter(self._model_service(), compose=partial(compose, tokens=tokens))

    def support_model(self) -> ModelSupport:
        """Return the configured model as a verifier of sentences."""
        from bythebook.answering.prompts import OTHER_TOKENS, compose_support
        from bythebook.providers.llm.support import ModelSupport

        tokens = self._settings.limits.context_tokens + OTHER_TOKENS
        compose = partial(compose_support, tokens=tokens)
        return ModelSupport(self._model_service(), compose=compose)

    def agents(self, reader: Reader | None) -> MakeWriter:
        """Return a factory of agents: one per generation, as they search it, on a shared client."""
        make, _, _ = choose_provider("writers", self._settings.writer)
        tokens, service = self._settings.limits.context_tokens, self._model_service()

        def make_writer(index: SearchContext) -> Writer:
            writer: Writer = make(service, tools=_agent_tools(index, tokens, reader))
            return writer

        return make_writer

    def _model_service(self) -> ModelService:
        """Return the language model: one for writer and verifier, which share its state.

        Agents use OpenAI's account, or ``model.base_url``.
        """
        if self._service is not None:
            return self._service
        from bythebook.providers.http.credentials import writer_account
        from bythebook.providers.llm.service import ModelService

        settings = self._settings
        _, provider, model = choose_provider("writers", settings.writer)
        account = writer_account("openai" if provider == "agents" else provider, model, settings)
        account = replace(account, service=replace(account.service, name=settings.writer))
        service = ModelService(account, settings.model, self._connections(), self._allowance())
        self._service = service
        return service

    def failure(self) -> ServiceError | None:
        """Return the failure of the model's last call, if it failed."""
        failures = self._service.failures if self._service else ()
        return next(iter(failures), None)

    def _allowance(self) -> Budget | None:
        daily = self._settings.model.daily_tokens
        if daily is not None and self._budget is None:
            from bythebook.providers.llm.budget import Budget

            self._budget = Budget(self._settings.home / "tokens.db", daily)
        return self._budget

    async def close(self) -> None:
        if self._web is not None:
            await self._web.close()
        if self._budget is not None:
            await self._budget.close()
        while self._closes:
            await self._closes.pop()()

    def _connections(self) -> HttpClient:
        from bythebook.providers.http.client import HttpClient

        self._web = self._web or HttpClient()
        return self._web


def open_embedder(name: str, settings: Settings, hosted: Hosted) -> Embedder:
    try:
        return hosted.embedder(name)
    except UnknownProvider as error:
        if name == settings.embedder:
            raise
        raise UnknownProvider(
            f"This book was ingested with {name}. {error.message}",
            hint=f"{error.hint} Or ingest the book again.",
        ) from None


def embedder_name(settings: Settings, catalog: Catalog) -> str:
    """Return the configured embedder, or else that of the served book."""
    from bythebook.config.settings import AUTO

    if settings.embedder != AUTO:
        return settings.embedder
    current = catalog.current()
    return _embedder_for(()) if current is None else current.embedder


def _embedder_for(passages: Iterable[Passage]) -> str:
    from bythebook.providers.embeddings.local.models import embedder_for

    choice = embedder_for(passage.metadata.language for passage in passages)
    if choice.note:
        _log.warning("%s", choice.note)
    return choice.embedder


def open_catalog(settings: Settings) -> Catalog:
    """Open the catalog of an ingested book, without embedder, index or writer."""
    from bythebook.providers.sql.catalog import SqlCatalog

    return SqlCatalog(_database(settings, new=False), settings.home)


def open_threads(settings: Settings) -> tuple[ThreadStore, Archiver]:
    """Open the threads and their archiver, without the book."""
    engine = _database(settings, new=False)
    return _conversations(settings, engine, deadline_s=_OPERATORS_PATIENCE_S)[:2]


def _conversations(
    settings: Settings, engine: Any, *, deadline_s: float | None = None
) -> tuple[SqlThreads, Archiver, LogQueue | None, SqlFeedback]:
    from bythebook.providers.sql.feedback import SqlFeedback
    from bythebook.providers.sql.query_log import SqlQueryLog
    from bythebook.providers.sql.threads import SqlThreads

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


def open_keys(settings: Settings) -> SqlKeys:
    from bythebook.providers.sql.keys import SqlKeys

    return SqlKeys(_database(settings, new=True))


@dataclass(frozen=True, slots=True)
class AccessStores:
    """State of the access middleware: API keys, rate limit counters and replayable replies."""

    keys: SqlKeys
    counter: RateCounter
    replies: SqlReplies


def open_access_stores(settings: Settings | None = None) -> AccessStores:
    """Open the stores that the settings name; without settings, in-memory ones."""
    from bythebook.providers.rate_limits import FallbackCounter, MemoryCounter
    from bythebook.providers.sql.engine import open_access_database, open_memory_database
    from bythebook.providers.sql.idempotency import SqlReplies
    from bythebook.providers.sql.keys import SqlKeys
    from bythebook.providers.sql.rate_limits import SqlCounter

    if settings is None:
        engine = open_memory_database()
        return AccessStores(SqlKeys(engine), MemoryCounter(), SqlReplies(engine))
    keys = open_keys(settings)
    store = settings.access.rate_limit_store
    shared = redis_counter(store) if store.startswith("redis") else None
    try:
        engine = open_access_database(settings.database_url, settings.home)
    except DatabaseFailed:
        # A book on a read-only disk can still be queried; each worker keeps its own state.
        _log.warning("no writable database: rate limits and idempotency are per process")
        return AccessStores(keys, shared or MemoryCounter(), SqlReplies(open_memory_database()))
    if store == "database":
        shared = SqlCounter(engine)
    counter = FallbackCounter(shared, MemoryCounter()) if shared else MemoryCounter()
    return AccessStores(keys, counter, SqlReplies(engine))


def redis_counter(url: str) -> RateCounter:
    try:
        from bythebook.providers.redis import RedisCounter
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"Counting on Redis needs the package {error.name}.",
            hint='Run: pip install "bythebook[redis]"',
        ) from None
    return RedisCounter(url)


def _database(settings: Settings, *, new: bool) -> Any:
    from bythebook.providers.sql.engine import open_database

    embedded = settings.database_url is None
    if embedded and settings.home.exists() and not settings.home.is_dir():
        raise ConfigurationError(
            f"The home {settings.home} is not a folder.", hint="Choose another with --home."
        )
    if embedded and not new and not (settings.home / "bythebook.db").is_file():
        raise not_ingested()
    return open_database(settings.database_url, settings.home)


def _generation_store(
    settings: Settings, embedder: Embedder, catalog: SqlCatalog
) -> GenerationStore:
    if settings.store == "qdrant":
        server = qdrant_server(settings)
        from bythebook.providers.qdrant.server import ServerGenerationStore

        return ServerGenerationStore(
            server,
            settings.collection.name,
            dimension=embedder.dimension,
            owner=catalog.identity(),
            cached=_CACHED_PASSAGES,
        )
    if settings.store != "files":
        raise ConfigurationError(
            f"There is no store {settings.store!r}.", hint="Use files or qdrant."
        )
    from bythebook.providers.flat_index import FlatGenerationStore

    return FlatGenerationStore(settings.home / "generations", dimension=embedder.dimension)


def _existing_book(settings: Settings, embedder: Embedder) -> ForeignCollection | None:
    chosen = settings.collection
    if not chosen.existing:
        return None
    server = qdrant_server(settings)
    from bythebook.providers.qdrant.foreign import ForeignCollection

    return ForeignCollection(
        server, chosen.name, embedder=embedder, fields=chosen.fields, vector=chosen.vector
    )


def qdrant_server(settings: Settings) -> Server:
    chosen = settings.qdrant
    if not chosen.urls:
        raise ConfigurationError("The store qdrant has no address.", hint="Set QDRANT_URL.")
    try:
        from bythebook.providers.qdrant.nodes import Server
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"The store qdrant needs the package {error.name}.",
            hint='Run: pip install "bythebook[qdrant]"',
        ) from None
    return Server(
        urls=chosen.urls,
        api_key=chosen.api_key.get_secret_value() if chosen.api_key else None,
        replication=chosen.replication,
        shards=chosen.shards,
        timeout_s=chosen.timeout_s,
    )


def _support_model(settings: Settings, hosted: Hosted) -> ModelSupport | None:
    """Return the language model as a verifier, if the settings want one."""
    if settings.verifier == "reader" or settings.writer == "extractive":
        return None  # the extractive writer's sentences are verbatim
    _, provider, _ = choose_provider("writers", settings.writer)
    if provider not in WRITERS:
        raise ConfigurationError(
            f"The writer {settings.writer} cannot verify sentences.",
            hint="Set verifier to reader.",
        )
    return hosted.support_model()


def _writer(settings: Settings, hosted: Hosted, reader: Reader | None) -> MakeWriter:
    if settings.writer == "extractive":
        return extractive
    if settings.writer.startswith("agents:"):
        return hosted.agents(reader)
    writer = hosted.added_writer() or hosted.writer()
    return lambda index: writer


def _agent_tools(index: SearchContext, context_tokens: int, reader: Reader | None) -> AgentTools:
    from bythebook.answering.gate import gather
    from bythebook.answering.prompts import OTHER_TOKENS, Quoting
    from bythebook.grounding.verifier import SentenceVerifier
    from bythebook.providers.llm.agents import AgentTools
    from bythebook.retrieval.search import search

    async def search_again(question: Question) -> Sequence[Hit]:
        evidence, _ = gather([await search(question, index)], context_tokens=context_tokens)
        return evidence.hits

    verifier = SentenceVerifier(index.embedder, reader)
    return AgentTools(lambda: Quoting(context_tokens + OTHER_TOKENS), search_again, verifier)
