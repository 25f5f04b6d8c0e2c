"""``bythebook threads …``: manage stored conversation threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bythebook.cli import options
from bythebook.cli.output import echo, print_json

if TYPE_CHECKING:
    from bythebook.conversations.retention import Archiver
    from bythebook.interfaces.conversations import Thread, ThreadSummary
    from bythebook.providers.sql.threads import SqlThreads

T = TypeVar("T")

app = options.command(
    help="View, archive, delete and export conversations.",
    no_args_is_help=True,
)

ThreadId = Annotated[str, typer.Argument(metavar="ID", help="The thread's id.")]
_PAGE = 200  # threads that an export lists at a time
_PATIENCE_S = 30.0  # a command-line user can wait for a busy database


@app.command("list")
def list_threads(
    home: options.Home = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Threads to list.")] = 20,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Threads to skip.")] = 0,
    as_json: options.Json = False,
) -> None:
    """List threads, most recently updated first."""
    from bythebook.interfaces.conversations import ANYONE

    page = _run(home, lambda store, _: store.list(owner=ANYONE, limit=limit, offset=offset))
    if as_json:
        print_json([asdict(thread) for thread in page])
    else:
        for thread in page:
            echo(_line(thread))


@app.command("show")
def show(
    thread_id: ThreadId,
    home: options.Home = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Show all messages, not only the last 50.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show a thread's messages with their citations."""
    thread = _run(home, lambda store, _: _read(store, thread_id, whole=whole))
    if as_json:
        print_json(asdict(thread))
    else:
        _print_thread(thread)


@app.command("delete")
def delete(thread_id: ThreadId, home: options.Home = None, as_json: options.Json = False) -> None:
    """Delete a thread permanently."""
    from bythebook.interfaces.conversations import ANYONE, no_such_thread

    if not _run(home, lambda store, _: store.delete(thread_id, owner=ANYONE)):
        raise no_such_thread()
    _report({"threads_deleted": 1}, as_json=as_json)


@app.command("archive")
def archive(
    thread_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Only this thread, idle or not.", show_default=False),
    ] = None,
    home: options.Home = None,
    as_json: options.Json = False,
) -> None:
    """Archive idle threads, as a server does automatically. The next message resumes them."""

    async def work(store: SqlThreads, archiver: Archiver) -> int:
        if thread_id is not None:
            await _read(store, thread_id, whole=False)
        return await archiver.archive(only=thread_id)

    _report({"threads_archived": _run(home, work)}, as_json=as_json)


@app.command("purge")
def purge(
    days: Annotated[
        float | None,
        typer.Option("--days", min=0, help="Delete threads without a message in this many days."),
    ] = None,
    home: options.Home = None,
    as_json: options.Json = False,
) -> None:
    """Delete threads and logged questions older than the retention settings."""
    age = None if days is None else timedelta(days=days)
    swept = _run(home, lambda _, archiver: archiver.purge(threads_older_than=age))
    counts = {"threads_purged": swept.threads_purged, "queries_purged": swept.queries_purged}
    _report(counts, as_json=as_json)


@app.command("export")
def export(
    thread_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Export only this thread.", show_default=False),
    ] = None,
    home: options.Home = None,
    as_json: options.Json = False,
) -> None:
    """Export whole threads with archived messages: one JSON line each, or one list with --json."""

    async def work(store: SqlThreads, _: Archiver) -> list[dict[str, Any]]:
        if thread_id is not None:
            return [asdict(await _read(store, thread_id, whole=True))]
        return [asdict(thread) async for thread in _all_threads(store)]

    exported = _run(home, work)
    if as_json:
        print_json(exported)
    else:
        for thread in exported:
            print_json(thread, indent=None)


def _run(home: Path | None, work: Callable[[SqlThreads, Archiver], Awaitable[T]]) -> T:
    from bythebook.wiring import Providers

    async def whole() -> T:
        settings = options.load(home=home, database={"timeout_s": _PATIENCE_S})
        async with Providers(settings) as providers:
            assert providers.archiver is not None
            return await work(providers.threads, providers.archiver)

    return asyncio.run(whole())


async def _read(store: SqlThreads, thread_id: str, *, whole: bool) -> Thread:
    from bythebook.interfaces.conversations import ANYONE, no_such_thread

    thread = await store.read(thread_id, owner=ANYONE, whole=whole)
    if thread is None:
        raise no_such_thread()
    return thread


async def _all_threads(store: SqlThreads) -> AsyncIterator[Thread]:
    """Yield each thread once, even if threads change meanwhile: list the ids first, then read."""
    from bythebook.interfaces.conversations import ANYONE

    ids: dict[str, None] = {}
    while page := await store.list(owner=ANYONE, limit=_PAGE, offset=len(ids)):
        count = len(ids)
        ids.update(dict.fromkeys(thread.id for thread in page))
        if len(ids) == count:
            break
    for thread_id in ids:
        if (thread := await store.read(thread_id, owner=ANYONE, whole=True)) is not None:
            yield thread


_ONE = {"threads": "thread", "queries": "query"}


def _report(counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json(counts)
        return
    for what, count in counts.items():
        noun, _, done = what.partition("_")
        echo(f"{count} {noun if count != 1 else _ONE[noun]} {done}")


def _line(thread: ThreadSummary) -> str:
    state = "archived" if thread.archived_at else "live"
    topic = thread.topic_summary or ""
    moment = thread.updated_at.isoformat(timespec="seconds")
    return f"{thread.id}  {moment}  {thread.messages:>4} messages  {state:<8}  {topic}".rstrip()


def _print_thread(thread: Thread) -> None:
    if thread.topic_summary:
        echo(thread.topic_summary, bold=True)
    if thread.earlier:
        echo(f"({thread.earlier} earlier messages: --all)", dim=True)
    for message in thread.messages:
        moment = message.timestamp.isoformat(timespec="seconds")
        echo(f"\n{message.role.value}, {moment}", fg="cyan")
        echo(message.content)
        for cited in message.citations:
            echo(f"  [{cited.source}] {cited.place.path}  {cited.url}", dim=True)
