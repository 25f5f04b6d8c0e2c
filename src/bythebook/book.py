"""The ``Book``: one open book that answers questions and ingests its sources."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bythebook.answering.pipeline import Event, respond
from bythebook.answering.routing import mode_of
from bythebook.conversations.query_log import LoggedRequest
from bythebook.conversations.session import open_conversation
from bythebook.errors import BookError, NotFound, StoreFailed
from bythebook.generations import Generations, index_differs
from bythebook.interfaces.conversations import Asker
from bythebook.offload import offload
from bythebook.retrieval.search import Findings, search
from bythebook.text.outline import Contents, list_contents
from bythebook.types import Message, Passage, Question, Reply, TextKind, VectorState
from bythebook.wiring import Providers

if TYPE_CHECKING:
    from bythebook.answering.generation import AnswerContext
    from bythebook.config.settings import Settings
    from bythebook.conversations.query_log import LogQueue
    from bythebook.conversations.retention import Archiver
    from bythebook.ingestion.indexer import IngestProgress, IngestResult
    from bythebook.ingestion.ingest import Ingest
    from bythebook.ingestion.read_book import ParsedBook
    from bythebook.providers.sql.query_log import SqlFeedback
    from bythebook.providers.sql.threads import SqlThreads

Observer = Callable[[Reply, str], None]  # a reply, and the generation it came from

ReadPage = Callable[[str], Awaitable[tuple[Passage, ...]]]  # a page's URL -> its passages


class ReplyStream(AsyncGenerator[Event, None]):
    """The answer to one question: await it for the reply, or iterate over its events."""

    def __init__(self, events: AsyncGenerator[Event, None]) -> None:
        self._events = events

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._reply().__await__()

    async def asend(self, value: None) -> Event:
        return await self._events.asend(value)

    async def athrow(self, *error: Any) -> Event:
        return await self._events.athrow(*error)

    async def aclose(self) -> None:
        """Stop answering; needed if the iteration ends before the reply."""
        await self._events.aclose()

    async def _reply(self) -> Reply:
        async with aclosing(self._events):
            async for event in self._events:
                if isinstance(event, Reply):
                    return event
        raise AssertionError("the last event is the reply")


class Book:
    """An open book. Picks up a newly published generation between two questions.

    Opening blocks while it opens the database; models are loaded on first use. ``parts`` replace
    providers that the settings name (``embedder=``, ``writer=``, … as in ``wiring.Providers``).
    """

    def __init__(
        self, settings: Settings | None = None, *, new: bool = False, **parts: object
    ) -> None:
        self._providers = Providers(settings, new=new, **parts)
        self._generations = Generations(self._providers)
        cache = self._providers.answer_cache
        self._respond = cache.respond if cache else respond
        self._contents: Contents | None = None
        self._listing = asyncio.Lock()
        self._background: asyncio.Task[None] | None = None
        self.asked = self._generations.question_vectors
        self.observers: list[Observer] = []

    @property
    def threads(self) -> SqlThreads:
        return self._providers.threads

    @property
    def log(self) -> LogQueue | None:
        return self._providers.log

    @property
    def archiver(self) -> Archiver | None:
        return self._providers.archiver

    @property
    def feedback(self) -> SqlFeedback | None:
        return self._providers.feedback

    # --- questions ------------------------------------------------------------------------------

    def ask(
        self,
        question: Question | str,
        *,
        asker: Asker | None = None,
        history: Sequence[Message] = (),
    ) -> ReplyStream:
        """Ask a question: ``await`` gives the reply, ``async for`` each event up to the reply.

        ``history`` holds earlier messages kept by the client instead of in a thread.
        Questions are logged, except those without an asker, as in an evaluation.
        """
        question = Question(question) if isinstance(question, str) else question
        return ReplyStream(self._answer(question, asker, history))

    async def reply(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> Reply:
        return await self.ask(question, asker=asker, history=history)

    async def _answer(
        self, question: Question, asker: Asker | None, history: Sequence[Message]
    ) -> AsyncGenerator[Event, None]:
        asked_at = datetime.now(UTC)
        entry = self._log_entry(question, asker)
        conversation = None
        try:
            async with self.reading() as context:
                if question.thread is not None:
                    conversation = await open_conversation(self.threads, question, asker or Asker())
                    history = (*conversation.history, *history)
                async with aclosing(self._respond(question, context, history)) as events:
                    async for event in events:
                        if isinstance(event, Reply):
                            reply = replace(event, asked_at=asked_at, answered_at=datetime.now(UTC))
                            if conversation is not None:
                                reply = await conversation.keep(reply)
                            if entry is not None:
                                entry.end(reply)
                            for observe in self.observers:
                                observe(reply, context.index.generation)
                            yield reply
                        else:
                            yield event
        except BookError:
            if entry is not None:
                entry.end(None)
            raise

    def _log_entry(self, question: Question, asker: Asker | None) -> LoggedRequest | None:
        if asker is None or self.log is None:
            return None
        return LoggedRequest(question, asker, mode=mode_of(question).value, log=self.log)

    async def search(self, question: Question | str) -> Findings:
        """Return passages for a question, best first, without writing an answer."""
        question = Question(question) if isinstance(question, str) else question
        async with self.reading() as context:
            findings = await search(question, context.index, hidden={TextKind.INSTRUCTION})
        if findings.failure is not None and not findings.at_least(question.min_score).hits:
            # No keyword hits does not mean that the book lacks an answer: report the failure.
            raise findings.failure.with_traceback(None)
        return findings

    async def context(self) -> AnswerContext:
        """Return the current answer context. A later generation may close it: see ``reading``."""
        async with self.reading() as context:
            return context

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AnswerContext]:
        """Yield the newest generation, which stays open for as long as this request uses it."""
        async with self._generations.reading() as context:
            contents = partial(self._contents_of, context.index.generation)
            yield replace(context, index=replace(context.index, contents=contents))

    # --- contents -------------------------------------------------------------------------------

    async def section(self, url: str) -> tuple[str, tuple[Passage, ...]]:
        """Return the passages of a section, or of a page (url without anchor), in reading order.

        Accepts the link of a citation: its text fragment (``:~:``) is ignored.
        """
        url = url.partition(":~:")[0].removesuffix("#")
        async with self.reading_pages() as (_, read):
            passages = await read(url)
        if not passages:
            raise NotFound("The book has no such section.", hint="Take the url of a source.")
        return url, passages

    @asynccontextmanager
    async def reading_pages(self) -> AsyncIterator[tuple[Contents, ReadPage]]:
        """Yield the contents, and a function that reads a page; both of the same generation."""
        async with self.reading() as context:
            contents = await self._contents_of(context.index.generation)

            async def read(url: str) -> tuple[Passage, ...]:
                entries = await context.index.store.fetch(contents.passages.get(url, ()))
                return tuple(entry.passage for entry in entries)

            yield contents, read

    async def contents(self) -> Contents:
        """Return the pages of the served generation, in reading order."""
        async with self.reading() as context:
            return await self._contents_of(context.index.generation)

    async def _contents_of(self, generation: str) -> Contents:
        """Return the cached contents; built on first use, because it reads the whole catalog."""
        async with self._listing:
            if self._contents is None or self._contents.generation != generation:
                passages = list((await self._generations.passages()).values())
                self._contents = await offload(lambda: list_contents(generation, passages))
            return self._contents

    # --- ingest ---------------------------------------------------------------------------------

    async def ingest(
        self,
        docs: Path | str | ParsedBook,
        *,
        progress: IngestProgress | None = None,
        origin: str | None = None,
        allow_removal: bool = False,
    ) -> IngestResult:
        """Read the sources, embed what changed and serve the result.

        ``docs`` is the folder of the sources, or a book that was read already. A folder is not
        read again if its last ingest is recorded and nothing has changed since. ``origin`` names
        the sources in the index; by default, the folder and the site options. A book without any
        passages, or one with errors and less than half of the passages, does not replace the
        served one unless ``allow_removal`` is set: ``published`` of the result is False then.
        """
        return await self.ingesting().ingest(
            docs, progress=progress, origin=origin, allow_removal=allow_removal
        )

    def ingesting(self) -> Ingest:
        """Return what reads sources into this book's stores; asking never loads it."""
        from bythebook.ingestion.ingest import Ingest

        return Ingest(self._providers, self._generations)

    # --- operation ------------------------------------------------------------------------------

    async def health(self) -> dict[str, str]:
        """Return the state of each service, "ok" or an error message; never raises.

        Without its reader, the book goes on answering by the retrieval signals. The writer's state
        is that of its last call, as a call costs money.
        """
        states = {**await self.stores(), "embedder": await _state(self._embed_something)}
        if (reader := self._providers.reader) is not None:
            states["reader"] = await _state(reader.prepare)
        if (writer_failure := self._providers.writer_failure) is not None:
            failure = writer_failure()
            states["writer"] = failure.message if failure else "ok"
        if states["database"] == "ok" and self.log is not None and self.log.failure is not None:
            states["database"] = f"Nothing can be stored: {self.log.failure.message}"
        return states

    async def stores(self) -> dict[str, str]:
        """Return the states of database and index, without the embedder; never raises."""
        return {
            "database": await _state(self._check_database),
            "index": await _state(self._check_passages),
        }

    async def warm_up(self) -> None:
        """Load everything that the first question would otherwise wait for."""
        await self.context()
        await self._embed_something()

    def start_background_jobs(self) -> None:
        """Start archiving idle threads in the background, until the book is closed."""
        if self.archiver is not None and self._background is None:
            self._background = asyncio.create_task(self.archiver.run())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections to the store and the database; the next call opens them again."""
        background, self._background = self._background, None
        if background is not None:
            background.cancel()
            await asyncio.wait([background])
        await self._generations.close()
        await self._providers.close()

    async def _check_passages(self) -> None:
        async with self.reading() as context:
            if context.index.vectors is VectorState.AWAY:
                raise StoreFailed("The index does not answer.")
            if await context.index.store.count() != context.index.vocabulary.passages:
                raise index_differs()

    async def _check_database(self) -> None:
        await self._generations.check_database()
        await self.threads.list(owner=None, limit=1)

    async def _embed_something(self) -> None:
        await self._generations.embedder.embed(["Is the book open?"], role="query")


async def _state(probe: Callable[[], Awaitable[None]]) -> str:
    try:
        await probe()
    except BookError as error:
        return error.message
    return "ok"
