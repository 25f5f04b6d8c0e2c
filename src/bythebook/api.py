"""The Python API for scripts and notebooks: single calls, and a book that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bythebook.book import Book
from bythebook.config.settings import Settings, limits_of, load_settings
from bythebook.contracts.ask import ResultSet, show_results
from bythebook.contracts.query import Query, Response, read, show
from bythebook.offload import offload
from bythebook.types import FilterValue, Question, Reply

if TYPE_CHECKING:
    from bythebook.ingestion.indexer import IngestProgress, IngestResult
    from bythebook.ingestion.read_book import ParsedBook
    from bythebook.retrieval.search import Findings

T = TypeVar("T")


# --- an open book ---------------------------------------------------------------------------------


def open_book(
    home: str | Path | Settings | None = None,
    *,
    settings: Settings | None = None,
    new: bool = False,
    **options: Any,
) -> SyncBook:
    """Open a book: ``with`` gives its blocking methods, ``async with`` a ``Book``.

    ``home`` is the folder of an ingested book; ``new`` creates it if it does not exist. Embedder,
    reader and writer are names of providers, or objects with their methods.
    """
    if isinstance(home, Settings):
        home, settings = None, home
    names: dict[str, Any] = {**options}
    given = ("embedder", "reader", "writer")
    objects = {each: names.pop(each) for each in given if not isinstance(names.get(each, ""), str)}
    settings = settings or load_settings({"home": home, **names})
    return SyncBook(lambda: Book(settings, new=new, **objects))


class SyncBook:
    """A book with blocking methods, for any number of threads; open within its ``with``.

    Its event loop runs on a thread of its own, so it also works where a loop is running already,
    as in a notebook.
    """

    def __init__(self, open_it: Callable[[], Book]) -> None:
        self._open = open_it

    async def __aenter__(self) -> Book:
        self._book = await offload(self._open)
        return self._book

    async def __aexit__(self, *_: object) -> None:
        await self._book.close()

    def __enter__(self) -> Self:
        opened: Future[None] = Future()

        async def stay_open() -> None:
            try:
                async with self:
                    self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
                    opened.set_result(None)
                    await self._stop.wait()
            except BaseException as error:
                if opened.done():
                    raise
                opened.set_exception(error)

        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="book")
        self._closed = self._thread.submit(lambda: asyncio.run(stay_open()))
        try:
            opened.result()
        except BaseException:
            self._thread.shutdown()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the book and end its thread."""
        if not self._closed.done():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.shutdown()
        self._closed.result()

    def ask(self, question: Question | str) -> Reply:
        """Ask a question and return the reply, whose outcome is an Answer or a Refusal."""
        return self.run(lambda book: book.ask(question))

    def search(self, question: Question | str) -> Findings:
        """Return passages for a question, best first, without writing an answer."""
        return self.run(lambda book: book.search(question))

    def ingest(
        self,
        docs: str | Path | ParsedBook,
        *,
        progress: IngestProgress | None = None,
        allow_removal: bool = False,
    ) -> IngestResult:
        """Read the sources, embed what changed and serve the result (see ``Book.ingest``)."""
        return self.run(
            lambda book: book.ingest(docs, progress=progress, allow_removal=allow_removal)
        )

    def run(self, work: Callable[[Book], Awaitable[T]]) -> T:
        """Run a coroutine with the asynchronous book; cancel it if this call is interrupted."""

        async def whole() -> T:
            return await work(self._book)

        if self._closed.done():
            raise RuntimeError("the book is closed")
        running = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise


# --- single calls ---------------------------------------------------------------------------------


def ingest(
    docs: str | Path,
    *,
    progress: IngestProgress | None = None,
    allow_removal: bool = False,
    home: str | Path | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> IngestResult:
    """Read a book's sources and make them searchable in ``home``; only changes are embedded."""
    from bythebook.ingestion.read_book import check_exists

    check_exists(Path(docs))  # before the home is created
    with open_book(home, settings=settings, new=True, **options) as book:
        return book.ingest(docs, progress=progress, allow_removal=allow_removal)


def ask(
    text: str,
    *,
    selected_text: str | None = None,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    home: str | Path | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Reply:
    """Ask the book in ``home`` and return a reply whose outcome is an Answer or a Refusal."""
    settings = settings or load_settings({"home": home, **options})
    question = settings.limits.question(
        text,
        top_k=top_k,
        relevance_threshold=relevance_threshold,
        selection=selected_text,
    )
    return _use_book(settings, lambda book: book.ask(question))


def search(
    query: str,
    *,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    filters: Mapping[str, FilterValue] | None = None,
    home: str | Path | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Findings:
    """Search the book in ``home``: no answer, and no hits below the threshold."""
    settings = settings or load_settings({"home": home, **options})
    question = settings.limits.question(
        query, top_k=top_k, relevance_threshold=relevance_threshold, filters=filters
    )
    return _use_book(settings, lambda book: book.search(question)).at_least(question.min_score)


def semantic_search(
    query: str,
    *,
    top_k: int | None = None,
    relevance_threshold: float | None = None,
    filters: Mapping[str, FilterValue] | None = None,
    home: str | Path | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> ResultSet:
    """Search the book in ``home`` and return the document of ``search --json``."""
    settings = settings or load_settings({"home": home, **options})
    question = settings.limits.question(
        query, top_k=top_k, relevance_threshold=relevance_threshold, filters=filters
    )
    found = _use_book(settings, lambda book: book.search(question))
    return show_results(question, found, reader=settings.server.reader)


def respond(
    query: Query | str,
    *,
    home: str | Path | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Response:
    """Return the query contract's Response to a Query or its text, within that contract's limits.

    In ``bythebook.Query(text=…, timestamp=…)``, a timestamp without a time zone is read as UTC.
    """
    settings = settings or load_settings({"home": home, **options})
    if not isinstance(query, Query):
        query = Query(text=limits_of("query").check_question(query))
    question = read(query)
    return show(_use_book(settings, lambda book: book.ask(question)))


def _use_book(settings: Settings, work: Callable[[Book], Awaitable[T]]) -> T:
    with open_book(settings) as book:
        return book.run(work)
