"""Providers of one open book, each made on first use. The only module that chooses them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from bythebook.errors import ConfigurationError, NotIngested, UnknownProvider
from bythebook.providers.registry import EMBEDDERS, WRITERS, choose_provider

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.answering.answer_cache import AnswerCache
    from bythebook.answering.extractive import ExtractiveWriter
    from bythebook.config.settings import Settings
    from bythebook.conversations.query_log import LogQueue
    from bythebook.conversations.retention import Archiver
    from bythebook.errors import BookError
    from bythebook.grounding.verifier import SupportModel
    from bythebook.interfaces.models import Embedder, Reader, Writer
    from bythebook.interfaces.source import SiteOptions
    from bythebook.interfaces.store import Catalog, GenerationStore, PassageStore
    from bythebook.language.terms import Vocabulary
    from bythebook.providers.http.client import HttpClient
    from bythebook.providers.llm.agents import AgentTools
    from bythebook.providers.llm.budget import Budget
    from bythebook.providers.llm.chat import LanguageModel
    from bythebook.providers.qdrant.foreign import ForeignCollection
    from bythebook.providers.qdrant.nodes import Server
    from bythebook.providers.sql.catalog import SqlCatalog
    from bythebook.providers.sql.query_log import SqlFeedback, SqlQueryLog
    from bythebook.providers.sql.threads import SqlThreads
    from bythebook.retrieval.search import SearchContext
    from bythebook.types import Hit, Passage, Question

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CACHED_PASSAGES = 256  # of a book on a server, about 20 KB each

MakeWriter = Callable[["SearchContext"], "Writer | ExtractiveWriter"]
MakeKeywordStore = Callable[[Iterable["Passage"], "Vocabulary"], "PassageStore"]

_OPTIONAL = ("home", "log", "feedback", "archiver", "reader", "make_fallback", "writer_failure")


class Providers:
    """Providers of one book: objects that are given by name, else those that the settings name.

    Without settings, only what is given is used, with the extractive writer. ``new`` may create
    the home folder.
    """

    retry_s = 5.0  # until an index that failed is tried again

    def __init__(self, settings: Settings | None, *, new: bool = False, **given: object) -> None:
        if unknown := [name for name in given if not hasattr(type(self), name)]:
            raise TypeError(f"a book has no {' and no '.join(unknown)}")
        from bythebook.config.settings import Settings

        self.settings = settings or Settings(index_fallback="none")
        self._new = new
        self._chooses = self.settings.embedder == "auto" and "embedder" not in given
        self._closes: list[Callable[[], Awaitable[None]]] = []
        absent = _OPTIONAL if settings is None else ()
        # A cached property is computed only if it is not here.
        self.__dict__.update({**dict.fromkeys(absent), **given})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what was opened: connections, models, the database."""
        opened = self.__dict__
        for name in ("connections", "budget"):
            if opened.get(name) is not None:
                await opened[name].close()
        while self._closes:
            await self._closes.pop()()
        for name in ("log", "feedback", "threads"):
            if opened.get(name) is not None:
                await opened[name].close()

    def _close_later(self, provider: T) -> T:
        if (close := getattr(provider, "close", None)) is not None:
            self._closes.append(close)
        return provider

    # --- stores -----------------------------------------------------------------------------------

    @cached_property
    def home(self) -> Path | None:
        """Return the folder of the source manifest; None: sources are always read."""
        return self.settings.home

    @cached_property
    def site(self) -> SiteOptions:
        """Return how the book is published, which decides the addresses of its pages."""
        from bythebook.interfaces.source import SiteOptions

        return SiteOptions.of(self.settings.site.model_dump())

    @cached_property
    def deadline_s(self) -> float:
        """Return the deadline of a call of the database before a question."""
        return self.settings.database.timeout_s

    @cached_property
    def _engine(self) -> Any:
        return open_database(self.settings, new=self._new or self.settings.collection.existing)

    @cached_property
    def _sql_catalog(self) -> SqlCatalog:
        from bythebook.providers.sql.catalog import SqlCatalog

        return SqlCatalog(self._engine, self.settings.home)

    @cached_property
    def _existing(self) -> ForeignCollection | None:
        """Return the collection that another system filled, if the settings name one."""
        chosen = self.settings.collection
        if not chosen.existing:
            return None
        server = qdrant_server(self.settings)
        from bythebook.providers.qdrant.foreign import ForeignCollection

        return ForeignCollection(
            server, chosen.name, embedder=self.embedder, fields=chosen.fields, vector=chosen.vector
        )

    @cached_property
    def catalog(self) -> Catalog:
        return self._existing or self._sql_catalog

    @cached_property
    def store(self) -> GenerationStore:
        return self._existing or self._store_of(self.embedder)

    def _store_of(self, embedder: Embedder) -> GenerationStore:
        settings = self.settings
        if settings.store == "qdrant":
            server = qdrant_server(settings)
            from bythebook.providers.qdrant.server import ServerGenerationStore

            return ServerGenerationStore(
                server,
                settings.collection.name,
                dimension=embedder.dimension,
                owner=self._sql_catalog.identity(),
                cached=_CACHED_PASSAGES,
                indexes=settings.collection.indexes,
            )
        if settings.store != "files":
            raise ConfigurationError(
                f"There is no store {settings.store!r}.", hint="Use files or qdrant."
            )
        from bythebook.providers.flat_index import FlatGenerationStore

        return FlatGenerationStore(settings.home / "generations", dimension=embedder.dimension)

    @cached_property
    def make_keyword_store(self) -> MakeKeywordStore | None:
        """Return what answers while the index or the embedder is down; None: that is an error."""
        if self.settings.index_fallback != "keyword" or self.settings.collection.existing:
            return None
        from bythebook.providers.flat_index import keyword_store

        return keyword_store

    # --- conversations ----------------------------------------------------------------------------

    @cached_property
    def threads(self) -> SqlThreads:
        from bythebook.providers.sql.threads import SqlThreads

        return SqlThreads(self._engine, deadline_s=self.deadline_s)

    @cached_property
    def feedback(self) -> SqlFeedback | None:
        from bythebook.providers.sql.query_log import SqlFeedback

        return SqlFeedback(self._engine, deadline_s=self.deadline_s)

    @cached_property
    def _query_log(self) -> SqlQueryLog:
        from bythebook.providers.sql.query_log import SqlQueryLog

        return SqlQueryLog(self._engine, deadline_s=self.deadline_s)

    @cached_property
    def log(self) -> LogQueue | None:
        chosen = self.settings.log
        if not chosen.queries:
            return None
        from bythebook.conversations.query_log import LogQueue

        return LogQueue(self._query_log, with_text=chosen.text)

    @cached_property
    def archiver(self) -> Archiver | None:
        from bythebook.conversations.retention import Archiver, Retention

        chosen = self.settings.retention
        retention = Retention(
            idle=timedelta(minutes=chosen.idle_minutes),
            queries=timedelta(days=chosen.query_days),
            threads=None if chosen.thread_days is None else timedelta(days=chosen.thread_days),
        )
        return Archiver(self.threads, self._query_log, feedback=self.feedback, retention=retention)

    # --- embedder and reader ----------------------------------------------------------------------

    @cached_property
    def embedder_name(self) -> str:
        """Return the configured embedder, or else that of the served book."""
        if not self._chooses:
            return self.settings.embedder
        current = self._sql_catalog.current()
        return _embedder_for(()) if current is None else current.embedder

    @cached_property
    def embedder(self) -> Embedder:
        name = self.embedder_name
        try:
            return self._embedder(name)
        except UnknownProvider as error:
            if name == self.settings.embedder:
                raise
            raise UnknownProvider(
                f"This book was ingested with {name}. {error.message}",
                hint=f"{error.hint} Or ingest the book again.",
            ) from None

    def _embedder(self, name: str) -> Embedder:
        """Return the embedder "provider:model"; a hosted one shares the connections."""
        make, provider, model = choose_provider("embedders", name)
        if provider == "local" or provider not in EMBEDDERS:
            return cast("Embedder", self._close_later(make(model)))
        from bythebook.providers.http.credentials import embedder_account

        account = embedder_account(provider, model, self.settings)
        embedder: Embedder = make(account, self.settings.embedding, web=self.connections)
        return embedder

    @cached_property
    def switch_embedder(self) -> Callable[[str], tuple[Embedder, GenerationStore]] | None:
        """Return what opens another embedder, with its store; None: another one is an error."""

        def switch(name: str) -> tuple[Embedder, GenerationStore]:
            other = self._embedder(name)
            return other, self._store_of(other)

        return switch if self.choose_embedder else None

    @cached_property
    def choose_embedder(self) -> Callable[[Iterable[Passage]], str] | None:
        """Return what chooses the embedder for a book to ingest; None: there is no choice."""
        return _embedder_for if self._chooses and not self._existing else None

    @cached_property
    def reader(self) -> Reader | None:
        """Return the reading model; None: the retrieval signals decide what is answered."""
        if self.settings.reader == "none":
            return None
        make, _, model = choose_provider("readers", self.settings.reader)
        return cast("Reader", self._close_later(make(model)))

    # --- writing ----------------------------------------------------------------------------------

    @cached_property
    def context_tokens(self) -> int:
        return self.settings.limits.context_tokens

    @cached_property
    def writer(self) -> Writer | ExtractiveWriter:
        """Return the writer: one for all generations, as a language model's keeps state."""
        if self.settings.writer == "extractive":
            return extractive(None)
        make, provider, model = choose_provider("writers", self.settings.writer)
        if provider not in WRITERS:
            return cast("Writer", self._close_later(make(model)))
        from bythebook.answering.prompts import OTHER_TOKENS, compose
        from bythebook.providers.llm.chat import OpenAIWriter

        tokens = self.context_tokens + OTHER_TOKENS
        return OpenAIWriter(self._model, compose=partial(compose, tokens=tokens))

    @cached_property
    def make_writer(self) -> MakeWriter:
        """Return the writer's factory: agents search a generation, so each has its own."""
        if "writer" in self.__dict__ or not self.settings.writer.startswith("agents:"):
            return lambda index: self.writer
        make, _, _ = choose_provider("writers", self.settings.writer)
        return lambda index: cast("Writer", make(self._model, tools=self._agent_tools(index)))

    def _agent_tools(self, index: SearchContext) -> AgentTools:
        from bythebook.answering.gate import gather
        from bythebook.answering.prompts import OTHER_TOKENS, Quoting
        from bythebook.grounding.verifier import SentenceVerifier
        from bythebook.providers.llm.agents import AgentTools
        from bythebook.retrieval.search import search

        async def search_again(question: Question) -> Sequence[Hit]:
            found = [await search(question, index)]
            return gather(found, context_tokens=self.context_tokens)[0].hits

        verifier = SentenceVerifier(index.embedder, self.reader)
        tokens = self.context_tokens + OTHER_TOKENS
        return AgentTools(lambda: Quoting(tokens), search_again, verifier)

    @cached_property
    def make_fallback(self) -> MakeWriter | None:
        """Return the writer that stands in for a failing one; None: that is an error."""
        chosen = self.settings
        stands_in = chosen.writer != "extractive" and chosen.model.fallback == "extractive"
        return extractive if stands_in else None

    @cached_property
    def support_model(self) -> SupportModel | None:
        """Return the language model as a verifier of sentences, if the settings want one."""
        settings = self.settings
        if settings.verifier == "reader" or settings.writer == "extractive":
            return None  # the extractive writer's sentences are verbatim
        if choose_provider("writers", settings.writer)[1] not in WRITERS:
            raise ConfigurationError(
                f"The writer {settings.writer} cannot verify sentences.",
                hint="Set verifier to reader.",
            )
        from bythebook.answering.prompts import OTHER_TOKENS, compose_support
        from bythebook.providers.llm.support import ModelSupport

        tokens = self.context_tokens + OTHER_TOKENS
        return ModelSupport(self._model, compose=partial(compose_support, tokens=tokens))

    @cached_property
    def answer_cache(self) -> AnswerCache | None:
        if not self.settings.model.cache:
            return None
        from bythebook.answering.answer_cache import AnswerCache

        return AnswerCache()

    @cached_property
    def writer_failure(self) -> Callable[[], BookError | None] | None:
        """Return what tells the failure of the model's last call; None: there is no model."""
        if self.settings.writer == "extractive":
            return None
        return lambda: self._model.failure if "_model" in vars(self) else None

    @cached_property
    def _model(self) -> LanguageModel:
        """Return the language model: one for writer and verifier, which share its state.

        Agents use OpenAI's account, or ``model.base_url``.
        """
        from bythebook.providers.http.credentials import writer_account
        from bythebook.providers.llm.chat import LanguageModel

        settings = self.settings
        _, provider, model = choose_provider("writers", settings.writer)
        account = writer_account("openai" if provider == "agents" else provider, model, settings)
        account = replace(account, service=replace(account.service, name=settings.writer))
        return LanguageModel(account, settings.model, self.connections, self.budget)

    @cached_property
    def budget(self) -> Budget | None:
        daily = self.settings.model.daily_tokens
        if daily is None:
            return None
        from bythebook.providers.llm.budget import Budget

        return Budget(self.settings.home / "tokens.db", daily)

    @cached_property
    def connections(self) -> HttpClient:
        from bythebook.providers.http.client import HttpClient

        return HttpClient()


def extractive(_: SearchContext | None) -> ExtractiveWriter:
    """Return the writer that needs no language model."""
    from bythebook.answering.extractive import ExtractiveWriter

    return ExtractiveWriter()


def _embedder_for(passages: Iterable[Passage]) -> str:
    from bythebook.providers.embeddings.local import embedder_for

    return embedder_for(passage.metadata.language for passage in passages)


def not_ingested() -> NotIngested:
    return NotIngested("This home holds no book yet.", hint="Run: bythebook ingest path/to/docs")


def open_database(settings: Settings, *, new: bool) -> Any:
    """Open the database of a book; ``new`` may create it."""
    from bythebook.providers.sql import engine

    embedded = settings.database_url is None
    if embedded and settings.home.exists() and not settings.home.is_dir():
        raise ConfigurationError(
            f"The home {settings.home} is not a folder.", hint="Choose another with --home."
        )
    if embedded and not new and not (settings.home / "bythebook.db").is_file():
        raise not_ingested()
    return engine.open_database(settings.database_url, settings.home)


def open_catalog(settings: Settings) -> Catalog:
    """Open the catalog of an ingested book, without embedder, index or writer."""
    from bythebook.providers.sql.catalog import SqlCatalog

    return SqlCatalog(open_database(settings, new=False), settings.home)


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
