"""Open the generations of a book's index: the served one, newer ones, and a keyword fallback."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bythebook.answering.generation import AnswerContext
from bythebook.errors import (
    BookError,
    DatabaseFailed,
    EmbedderMismatch,
    IndexDamaged,
    StoreFailed,
    damaged_catalog,
)
from bythebook.grounding.verifier import SentenceVerifier
from bythebook.language.terms import Vocabulary
from bythebook.providers.sql.executor import DeadlineExecutor
from bythebook.retrieval.embeddings import QuestionVectors
from bythebook.retrieval.score import marks_of
from bythebook.retrieval.search import KEYWORDS_ONLY, SearchContext
from bythebook.types import Passage, VectorState
from bythebook.wiring import not_ingested

if TYPE_CHECKING:
    from bythebook.interfaces.store import Generation, GenerationStore, PassageStore
    from bythebook.wiring import Providers

_log = logging.getLogger(__name__)

_MOST_WITHOUT_INDEX = 50_000  # passages of a keyword store: takes half a minute and half a GB
_PATIENCE = 60  # deadlines of a catalog call that nothing can stand in for


@dataclass(slots=True, eq=False)
class OpenGeneration:
    """An open generation, and the number of requests that use it."""

    context: AnswerContext
    readers: int = 0
    retry_at: float = math.inf  # with the keyword fallback: when to try the index again

    @property
    def name(self) -> str:
        return self.context.index.generation


class Generations:
    """Follows the catalog: each request reads the generation that is served when it begins."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers
        self._catalog = providers.catalog
        self._executor = DeadlineExecutor(2, deadline_s=providers.deadline_s)
        self.embedder = providers.embedder
        self.store = providers.store
        self._former_stores: list[GenerationStore] = []  # of the embedders used before
        self._open: OpenGeneration | None = None
        self._outdated: list[OpenGeneration] = []  # used by requests that began before a swap
        self._opening = asyncio.Lock()
        self._keyword_store: tuple[str, PassageStore] | None = None  # with its generation's name
        self._building = asyncio.Lock()
        self.question_vectors = QuestionVectors()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AnswerContext]:
        """Yield the newest generation, which stays open for as long as this request uses it."""
        generation = await self._newest()
        try:
            yield generation.context
        finally:
            generation.readers -= 1
            await self._close_unused()

    def current(self) -> Generation:
        """Return the served generation as the catalog records it. Blocks."""
        generation = self._catalog.current()
        if generation is None:
            raise not_ingested()
        return generation

    async def passages(self) -> dict[str, Passage]:
        return await self._executor.run(self._catalog.passages, deadlines=_PATIENCE)

    async def check_database(self) -> None:
        await self._executor.run(self._catalog.served)

    def use_embedder(self, name: str) -> None:
        """Switch to the embedder of a generation, or raise EmbedderMismatch."""
        if name == self.embedder.name:
            return
        if self._providers.switch_embedder is None:
            raise EmbedderMismatch(
                f"This book was ingested with {name}, but the settings say {self.embedder.name}.",
                hint=f"Set embedder to {name}, or ingest the book again.",
            )
        self._former_stores.append(self.store)
        self.embedder, self.store = self._providers.switch_embedder(name)

    async def close(self) -> None:
        """Close every open generation and the stores; the next request opens them again."""
        generations = [*self._outdated, *([self._open] if self._open else [])]
        self._open, self._outdated = None, []
        for generation in generations:
            await generation.context.index.store.close()
        former_stores, self._former_stores = self._former_stores, []
        for store in (*former_stores, self.store):
            await store.close()
        self._executor.close()

    async def _newest(self) -> OpenGeneration:
        """Return the generation that the catalog names; if the catalog fails, the open one."""
        try:
            deadlines = 1 if self._open else _PATIENCE
            served = await self._executor.run(self._catalog.served, deadlines=deadlines)
        except DatabaseFailed:
            if self._open is None:
                raise
            served = self._open.name
        async with self._opening:
            if not self._is_open(served):
                await self._open_served()
            assert self._open is not None
            self._open.readers += 1
            return self._open

    def _is_open(self, name: str | None) -> bool:
        return (
            self._open is not None
            and self._open.name == name
            and self._open.retry_at >= time.monotonic()
        )

    async def _open_served(self) -> None:
        """Replace the open generation; the old one stays open for the requests that use it."""
        generation = await self._executor.run(self.current)
        while not self._is_open(generation.name):
            try:
                opened = await self._open_generation(generation)
            except IndexDamaged:
                # An ingest may have deleted it since the catalog was read.
                later = await self._executor.run(self.current)
                if later.name == generation.name:
                    raise
                generation = later
            else:
                self._outdated += [self._open] if self._open else []
                self._open = opened
                return

    async def _open_generation(self, generation: Generation) -> OpenGeneration:
        """Open a generation: embedder, passages, vocabulary, cosine marks and writer.

        If its index does not respond, open it for keyword search, and retry the index later.
        """
        self.use_embedder(generation.embedder)
        vocabulary = _vocabulary_of(generation)
        keyword_store = partial(self._make_keyword_store, generation.name, vocabulary)
        may_fall_back = self._providers.make_keyword_store is not None
        failure: StoreFailed | None = None
        try:
            store = await self._open_passages(generation)
        except StoreFailed as error:
            if not may_fall_back:
                raise
            _log.warning(KEYWORDS_ONLY, error)
            store, failure = await keyword_store(), error
        index = SearchContext(
            generation=generation.name,
            embedder=self.embedder,
            store=store,
            vocabulary=vocabulary,
            marks=marks_of(generation),
            vectors=generation.vectors,
            question_vectors=self.question_vectors,
            open_keyword_store=keyword_store if may_fall_back else None,
            reader=self._providers.reader,
        )
        if failure is None:
            return OpenGeneration(self._answer_context(index))
        context = self._answer_context(index.keywords_only(store, failure))
        return OpenGeneration(context, retry_at=time.monotonic() + self._providers.retry_s)

    async def _open_passages(self, generation: Generation) -> PassageStore:
        """Open the passage store; meanwhile load the model that questions will need."""
        opening = asyncio.create_task(self.store.open(generation.name))
        reader = self._providers.reader
        models = [reader.prepare()] if reader else []
        if generation.vectors is VectorState.READY:
            models.append(self.embedder.prepare())
        for failure in await asyncio.gather(*models, return_exceptions=True):
            # The question will report it, or be answered without; the book opens.
            if failure is not None and not isinstance(failure, BookError):
                raise failure
        store = await opening
        if await store.count() != generation.passages:
            raise index_differs()
        return store

    def _answer_context(self, index: SearchContext) -> AnswerContext:
        parts = self._providers
        fallback = parts.make_fallback(index) if parts.make_fallback else None
        model_only = parts.settings.verifier == "model"
        return AnswerContext(
            index,
            parts.make_writer(index),
            parts.context_tokens,
            fallback,
            SentenceVerifier(index.embedder, parts.reader, parts.support_model, model_only),
        )

    async def _make_keyword_store(self, generation: str, vocabulary: Vocabulary) -> PassageStore:
        """Return the keyword store; built on first use, because it reads the whole catalog."""
        make = self._providers.make_keyword_store
        assert make is not None
        async with self._building:
            if self._keyword_store is None or self._keyword_store[0] != generation:
                if vocabulary.passages > _MOST_WITHOUT_INDEX:
                    raise StoreFailed("The index does not answer.", hint="Check its server.")
                passages = await self.passages()
                store = await asyncio.to_thread(make, passages.values(), vocabulary)
                self._keyword_store = generation, store
            return self._keyword_store[1]

    async def _close_unused(self) -> None:
        unused = [generation for generation in self._outdated if not generation.readers]
        self._outdated = [generation for generation in self._outdated if generation.readers]
        for generation in unused:
            await generation.context.index.store.close()


def _vocabulary_of(generation: Generation) -> Vocabulary:
    try:
        return Vocabulary.from_bytes(generation.vocabulary)
    except ValueError:
        raise damaged_catalog("vocabulary") from None


def index_differs() -> IndexDamaged:
    return IndexDamaged(
        "The index does not hold what the catalog says.", hint="Run the ingest again."
    )
