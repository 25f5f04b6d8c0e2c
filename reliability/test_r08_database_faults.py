"""While the database is stopped, refuses, hangs or is slow, readers lose only their history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.databases import Postgres, running_postgres
from tests.support.samples import read

from bythebook.book import Book
from bythebook.errors import DatabaseFailed
from bythebook.providers.sql.engine import open_database
from reliability.client import Reader, is_ready, library_on, open_for_readers
from reliability.proxy import Faults, FaultyLine, faulty_line
from reliability.rows import Rows

pytestmark = pytest.mark.real

_DEADLINE_S = 1.0
_AT_ONCE = 20

Fault = Callable[[Postgres, FaultyLine], AbstractContextManager[None]]


@contextmanager
def _stopped(server: Postgres, line: FaultyLine) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def _hanging(server: Postgres, line: FaultyLine) -> Iterator[None]:
    with server.hanging():
        yield


def _line_that(faults: Faults) -> Fault:
    @contextmanager
    def faulty(server: Postgres, line: FaultyLine) -> Iterator[None]:
        line.faults = faults
        try:
            yield
        finally:
            line.faults = Faults()

    return faulty


_FAULTS: dict[str, Fault] = {
    "stopped": _stopped,
    "refusing": _line_that(Faults(reset_after=0)),
    "hanging": _hanging,
    "silent": _line_that(Faults(stall_after=0)),
    "slow by 5 s": _line_that(Faults(latency_s=5.0)),
    "cut off": _line_that(Faults(cut_after=20)),
}


class Count:
    def __init__(self) -> None:
        self.asked = self.failed = self.falsely_kept = self.falsely_ready = 0
        self.differing = self.overfull = 0
        self.slowest = self.back = 0.0

    @property
    def clean(self) -> bool:
        said = self.falsely_kept or self.falsely_ready or self.differing
        return not (self.failed or said or self.overfull)


async def test_answers_without_a_database(rows: Rows, book_folder: Path, tmp_path: Path) -> None:
    row = rows.add(
        "R8",
        "Stop, refuse, hang or slow down the database",
        requirement=(
            "0 errors on /query, `persisted` never falsely true, readiness fails, at "
            "most 1,000 log rows queued"
        ),
    )
    count, waiting = Count(), rows.count(100, 1000)
    with running_postgres() as server, faulty_line(("127.0.0.1", server.port)) as line:
        url = server.new_database().replace(f":{server.port}/", f":{line.port}/")
        library = library_on(url, tmp_path, deadline_s=_DEADLINE_S, waiting=waiting)
        await library.ingest(read(book_folder))
        async with open_for_readers(library) as client:
            await _until_ready(client)
            for fault in _FAULTS.values():
                await _go_through(fault(server, line), library, client, count)
            with _stopped(server, line):
                await _fill_the_queue(library, client, count, waiting)
                _check_that_it_cannot_be_opened(url, tmp_path)
            await _until_ready(client)
    row.record(
        f"{count.asked:,} questions while it was {', '.join(_FAULTS)}; more than {waiting:,} rows "
        "for the log meanwhile",
        f"{count.failed} errors or wrong answers, {count.falsely_kept} falsely kept, "
        f"{count.falsely_ready} times falsely ready, {count.differing} histories other than said, "
        f"{count.overfull} rows too many waiting; {_AT_ONCE} at once in {count.slowest:.1f} s, "
        f"ready again after {count.back:.1f} s at most",
        passed=count.clean,
    )


async def _go_through(
    fault: AbstractContextManager[None], library: Book, client: httpx.AsyncClient, count: Count
) -> None:
    before, reader = Reader(client), Reader(client)
    assert await before.talk()
    await asyncio.to_thread(fault.__enter__)
    try:
        began = time.monotonic()
        kept = await asyncio.gather(*(before.talk() for _ in range(_AT_ONCE // 2)))
        await asyncio.gather(*(reader.query() for _ in range(_AT_ONCE // 2)))
        count.slowest = max(count.slowest, time.monotonic() - began)
        count.falsely_kept += sum(kept)
        count.falsely_ready += await is_ready(client)
    finally:
        await asyncio.to_thread(fault.__exit__, None, None, None)
    count.back = max(count.back, await _until_ready(client))
    thread = await library.threads.read(before.session, owner=None)
    # What was said to be lost does not come up later.
    count.differing += thread is None or len(thread.messages) != 2
    count.asked += before.asked + reader.asked
    count.failed += before.failed + before.wrong + reader.failed + reader.wrong


async def _fill_the_queue(
    library: Book, client: httpx.AsyncClient, count: Count, capacity: int
) -> None:
    assert library.log is not None
    await library.log.flush()
    already = library.log.waiting
    reader = Reader(client)
    more = capacity + capacity // 10
    for start in range(0, more, _AT_ONCE):
        await asyncio.gather(*(reader.query() for _ in range(min(_AT_ONCE, more - start))))
    count.overfull += max(0, library.log.waiting - capacity)
    assert library.log.waiting + library.log.dropped >= already + more
    count.asked += reader.asked
    count.failed += reader.failed + reader.wrong


def _check_that_it_cannot_be_opened(url: str, home: Path) -> None:
    with pytest.raises(DatabaseFailed) as told:
        open_database(url, home)
    assert "127.0.0.1" not in str(told.value)


async def _until_ready(client: httpx.AsyncClient, seconds: float = 30) -> float:
    began = time.monotonic()
    while not (await is_ready(client) and await Reader(client).talk()):
        assert time.monotonic() - began < seconds, "it does not become ready again"
        await asyncio.sleep(0.05)
    return time.monotonic() - began
