"""Readers get right answers while books change, parts restart and pages are very long."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import statistics
import time
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bench.load import family
from tests.server.event_reader import client_of, files_of, memory_of
from tests.server.running_server import book_server, ingest
from tests.support.databases import Postgres, running_postgres
from tests.support.samples import SAMPLE_BOOK, small_book
from tests.support.servers import Node, Service, free_ports, running_server
from tools.local_deployment import Deployment, Part, running_deployment

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.contracts import chat
from bythebook.errors import StoreFailed
from bythebook.ingestion.read_book import read_book
from reliability.readers import (
    Asked,
    Exchange,
    LocalReader,
    Reader,
    Stored,
    Told,
    ask,
    compare,
    library_on,
    open_for_readers,
)
from reliability.rows import Row

Answers = Mapping[Asked, set[Told]]


def _questions(most: int, *, selections: bool = False) -> list[Asked]:
    """Return questions of the sample book, also asked of the sentence that answers them."""
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    known = [json.loads(line) for line in lines if line.strip()]
    some = known[:: max(1, len(known) // most)][:most]
    asked = [Asked(each["question"]) for each in some]
    if selections:
        asked += [Asked(e["question"], e["sentence"]) for e in some if e.get("sentence")]
    return asked


async def _ask_alone(reader: Reader, questions: Sequence[Asked], alone: Answers) -> None:
    """Add the answer to each question while nobody else asks."""
    async with reader.client() as client:
        for question in questions:
            alone[question].add(Told.of(await ask(client, question)))


def _sum(kept: Sequence[Stored]) -> Stored:
    return Stored(*(sum(getattr(one, name) for one in kept) for name in Stored.__slots__))


# --- the book changes, database and store restart ------------------------------------------------

_PAGE = "# Zeppelins\n\nThe colour of a zeppelin is silver.\n"
_CROWD = 6
_AWAY_S = 1.0
_RECOVERY_S = 10.0  # until every worker has found the store again


@dataclass(frozen=True)
class Plan:
    """Durations. During warm-up, caches fill and each server is restarted once."""

    rounds: int
    round_s: float
    warming: int  # of the rounds, the first ones


@dataclass
class Author:
    """Publishes two editions of the book in turn."""

    docs: Path
    home: Path
    environ: dict[str, str]
    editions: int = 0

    async def publish(self) -> None:
        page = self.docs / "zeppelin.md"
        if self.editions % 2:
            page.write_text(_PAGE)
        else:
            page.unlink(missing_ok=True)
        self.editions += 1
        await asyncio.to_thread(ingest, self.docs, self.home, environ=self.environ)


@dataclass
class Gauge:
    """Memory and open files of the server's processes, once per second."""

    process: int
    moments: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    async def watch(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with suppress(FileNotFoundError):
                family_now = list(family(self.process))
                memory, files = map(memory_of, family_now), map(files_of, family_now)
                self.memory.append(sum(memory))
                self.files.append(sum(files))
                self.moments.append(time.monotonic())
            await asyncio.sleep(1)

    def growth(self, *, since: float) -> tuple[float, float]:
        """Return bytes per minute by linear regression, and the growth of open files."""
        first = bisect(self.moments, since)
        fit = statistics.linear_regression(self.moments[first:], self.memory[first:])
        rest = self.files[first:]
        third = max(1, len(rest) // 3)
        return fit.slope * 60, statistics.median(rest[-third:]) - statistics.median(rest[:third])


async def _go_on(
    author: Author, database: Postgres, store: Node, plan: Plan, over: asyncio.Event
) -> tuple[float, float]:
    """Restart the database in one round and the store in another; change the book in the others.

    Return from when to when the store was away for some worker.
    """
    began, away = time.monotonic(), (0.0, 0.0)
    for number in range(plan.rounds):
        await asyncio.sleep(max(0.0, began + plan.round_s * number - time.monotonic()))
        if number == plan.warming // 4:
            await asyncio.to_thread(database.stop)
            await asyncio.sleep(_AWAY_S)
            await asyncio.to_thread(database.start)
        elif number == plan.warming - 1:
            left = time.monotonic()
            await asyncio.to_thread(store.kill)
            await asyncio.sleep(_AWAY_S)
            await asyncio.to_thread(store.restart)
            await asyncio.sleep(_RECOVERY_S)
            away = (left, time.monotonic())
        else:
            await author.publish()
    await asyncio.sleep(max(0.0, began + plan.rounds * plan.round_s - time.monotonic()))
    over.set()
    return away


async def _leave(url: str, questions: Sequence[Asked], over: asyncio.Event) -> int:
    """Begin to read an answer, then disconnect; return how often."""
    left = 0
    async with client_of(url) as client:
        for question in itertools.cycle(questions):
            if over.is_set():
                break
            body = {"message": question.text}
            async with client.stream("POST", "/chat/stream", json=body) as response:
                async for _ in response.aiter_raw():
                    break
            left += 1
            await asyncio.sleep(0.02)
    return left


def _in_turn(questions: Sequence[Asked], number: int) -> Iterator[Asked]:
    """Return the questions again and again; no two readers ask the same one at the same time."""
    return itertools.cycle([*questions[number:], *questions[:number]])


@pytest.mark.real
@pytest.mark.row(
    "R22",
    "Run mixed traffic for minutes while the book changes and its servers restart",
    "0 wrong answers, 0 mixed threads, no unhandled errors; memory grows by less than 1 MB a "
    "minute, open files not at all",
)
async def test_a_crowd_of_readers_gets_what_each_would_get_alone(row: Row, tmp_path: Path) -> None:
    plan = Plan(rounds=row.count(4, 14), round_s=row.count(3, 60), warming=row.count(2, 4))
    docs = tmp_path / "docs"
    shutil.copytree(SAMPLE_BOOK / "docs", docs)
    alone: Answers = defaultdict(set)
    questions, over = _questions(row.count(10, 60), selections=True), asyncio.Event()
    with running_postgres() as database, running_server(tmp_path / "qdrant") as store:
        environ = {"DATABASE_URL": database.new_database(), "QDRANT_URL": store.url}
        author = Author(docs, tmp_path / "home", environ)
        await author.publish()
        with book_server(author.home, tmp_path / "log", workers=2, environ=environ) as server:
            readers = [
                Reader(server.url, None, _in_turn(questions, n), streams=n % 2 == 1, pause_s=0.02)
                for n in range(_CROWD)
            ]
            await _ask_alone(readers[0], questions, alone)
            await author.publish()
            await _ask_alone(readers[0], questions, alone)
            gauge, began = Gauge(server.process.pid), time.monotonic()
            away, left, *_ = await asyncio.gather(
                _go_on(author, database, store, plan, over),
                _leave(server.url, questions, over),
                gauge.watch(over),
                *(reader.read(over) for reader in readers),
            )
            lasted = time.monotonic() - began
            kept = _sum([await compare(reader) for reader in readers])
            code, _ = await asyncio.to_thread(server.stop)
    log = server.log.read_text()
    unhandled = log.count("never retrieved") + log.count("Traceback")
    bytes_a_minute, more_files = gauge.growth(since=began + plan.warming * plan.round_s)
    told = [one for reader in readers for one in reader.said]
    other = [one for one in told if one.told not in alone[one.question]]
    by_words = [one for one in other if one.began < away[1] and one.began + one.waited_s > away[0]]
    wrong = [text for reader in readers for text in reader.wrong]
    cut = sum(reader.cut for reader in readers)
    row.record(
        f"{lasted:.0f} s of {_CROWD} readers and one who leaves on two workers, PostgreSQL and a "
        f"Qdrant server, both restarted once, {author.editions - 2} ingests: {len(told)} answered, "
        f"{sum(r.refused for r in readers)} told to try again, {left} left",
        f"{len(other) - len(by_words)} wrong answers, {len(by_words)} by words alone; {kept.lost} "
        f"of {kept.exchanges} exchanges lost, {kept.mixed} mixed; {len(wrong) + cut} requests that "
        f"broke, {unhandled} unhandled; memory {bytes_a_minute / 1e6:+.1f} MB a minute and files "
        f"{more_files:+.0f} in the last {(plan.rounds - plan.warming) * plan.round_s:.0f} s"
        + "".join(f"; {each}" for each in [*wrong, *other][:3]),
        passed=len(other) == len(by_words)
        and not (kept.lost or kept.mixed or wrong or cut)
        and unhandled == code == 0
        # Seconds say nothing about minutes: in a quick count connections come and go, and only
        # what leaks with each of a thousand requests would show.
        and more_files <= (2 if row.full else 16)
        and (bytes_a_minute < 1e6 or not row.full),
    )


# --- any process of a deployment dies ------------------------------------------------------------

_READERS = 6
_QUESTIONS = 16
_DOWN_S, _UP_S = 2.0, 1.5  # how long a part is away, and how long readers ask before the next
_LONGEST_WAIT_S = 5.0


@dataclass
class OneProcess:
    """The first process of a server, or one of its workers."""

    server: Service
    first: bool

    def kill(self) -> None:
        pid = self.server.process.pid
        if self.first:
            self.server.process.kill()
            self.server.process.wait(timeout=15)
        else:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGKILL)

    def restart(self) -> None:
        """Wait for the first process to start another worker, or restart the first process."""
        if self.first:
            self.server.start()
        self.server.wait()


@pytest.mark.real
@pytest.mark.alone
@pytest.mark.row(
    "R26",
    "Scaled out: kill any one process",
    "0 acknowledged lost, 0 mixed, 0 stored twice, 0 wrong; no client waits more than 5 s for"
    " an answer",
)
async def test_any_one_process_may_go(row: Row, tmp_path: Path) -> None:
    with running_deployment(tmp_path, SAMPLE_BOOK / "docs") as deployment:
        questions = _questions(_QUESTIONS)
        alone: Answers = defaultdict(set)
        readers = [
            Reader(
                deployment.url,
                await deployment.new_key(),
                _in_turn(questions, n),
                streams=n % 2 == 1,
            )
            for n in range(_READERS)
        ]
        await _ask_alone(readers[0], questions, alone)
        by_words = await _asked_by_words(deployment, questions)
        parts = _parts(deployment)
        kills = list(parts.items()) * row.count(1, 3)
        waits = await _kill_while_reading(readers, kills)
        kept = _sum([await compare(reader) for reader in readers])
    told = [one for reader in readers for one in reader.said]
    without_vectors = [one for one in told if one.told not in alone[one.question]]
    other = [one for one in without_vectors if one.told != by_words.get(one.question)]
    wrong = [text for reader in readers for text in reader.wrong]
    longest = max(waits, key=lambda name: waits[name])
    row.record(
        f"{len(kills)} kills of {len(parts)} processes in turn, each restarted after "
        f"{_DOWN_S:.0f} s, under {_READERS} readers who got {len(told)} answers",
        f"{kept.lost} of {kept.exchanges} acknowledged exchanges lost, {kept.mixed} "
        f"mixed, {kept.doubled} kept twice; {len(other)} answers other than "
        f"alone, {len(without_vectors) - len(other)} by words alone; {len(wrong)} wrong responses"
        f"{': ' + wrong[0] if wrong else ''}{_first_difference(other, alone)}; "
        f"{sum(r.refused for r in readers)} typed 503 and {sum(r.cut for r in readers)} broken "
        f"connections, asked again; longest wait {waits[longest]:.1f} s ({longest})",
        passed=not (kept.lost or kept.mixed or kept.doubled or other or wrong)
        and waits[longest] <= _LONGEST_WAIT_S,
    )


def _first_difference(other: Sequence[Exchange], alone: Answers) -> str:
    return "".join(f": {o.question}: {o.told} instead of {alone[o.question]}" for o in other[:1])


def _parts(deployment: Deployment) -> Mapping[str, Part]:
    return {
        **deployment.parts,
        "a server's worker": OneProcess(deployment.servers[0], first=False),
        "a server's first process": OneProcess(deployment.servers[1], first=True),
    }


async def _kill_while_reading(
    readers: Sequence[Reader], kills: Sequence[tuple[str, Part]]
) -> Mapping[str, float]:
    """Return the longest wait of any reader for each killed process."""
    stop, waits = asyncio.Event(), dict.fromkeys((name for name, _ in kills), 0.0)
    async with asyncio.TaskGroup() as group:
        for reader in readers:
            group.create_task(reader.read(stop))
        await asyncio.sleep(_UP_S)
        for name, part in kills:
            began = time.monotonic()
            await asyncio.to_thread(part.kill)
            await asyncio.sleep(_DOWN_S)
            await asyncio.to_thread(part.restart)
            await asyncio.sleep(_UP_S)
            since = [reader.longest_wait(since=began) for reader in readers]
            waits[name] = max(waits[name], *since)
        stop.set()
    return waits


async def _asked_by_words(
    deployment: Deployment, questions: Sequence[Asked]
) -> Mapping[Asked, Told]:
    """Return the answers of the book without an index."""
    (closed,) = free_ports(1)
    nowhere = {**deployment.environment, "QDRANT_URL": f"http://127.0.0.1:{closed}"}
    library = Book(load_settings(environ=nowhere, directory=deployment.folder))
    told = {}
    try:
        for question in questions:
            asked = chat.read(chat.ChatRequest(message=question.text))
            with suppress(StoreFailed):  # what keywords do not find is an error for now
                reply = chat.show(await library.reply(asked))
                told[question] = Told.of(reply.model_dump(mode="json"))
    finally:
        await library.close()
    return told


_AT_ONCE = 8
_ASKED_S, _SHOWN_S = 5.0, 60.0


@pytest.mark.alone
@pytest.mark.row(
    "R31",
    "Read one very long page at once",
    "questions asked meanwhile are answered within 5 s, the pages within 60 s",
)
async def test_one_long_page_and_eight_readers(row: Row, tmp_path: Path) -> None:
    items = row.count(60_000, 120_000)
    folder = small_book(tmp_path / "docs")
    lines = "\n".join(f"- screw {n}" for n in range(items))
    (folder / "crate.md").write_text(f"# Crate\n\n{lines}\n", "utf-8")
    library = library_on(f"sqlite:///{tmp_path}/book.db", tmp_path, deadline_s=30)
    await library.ingest(read_book(folder))
    async with open_for_readers(library) as client:
        asking = LocalReader(client)
        await asking.query()  # the first one warms up
        began = time.monotonic()
        pages = [
            asyncio.create_task(client.get("/reader/page?path=docs/crate")) for _ in range(_AT_ONCE)
        ]
        spent = []
        while not all(page.done() for page in pages) or not spent:
            asked = time.monotonic()
            await asking.query()
            spent.append(time.monotonic() - asked)
        shown = [(await page).json()["html"].count("<li") for page in pages]
        seconds = time.monotonic() - began
    await library.close()
    row.record(
        f"{_AT_ONCE} readers of a page with {items} items, beside one who asks",
        f"{shown.count(items)} of {_AT_ONCE} pages complete after {seconds:.1f} s; {asking.asked} "
        f"questions, {asking.failed + asking.wrong} wrong, the slowest took {max(spent):.1f} s",
        passed=shown.count(items) == _AT_ONCE
        and not asking.failed + asking.wrong
        and seconds < _SHOWN_S
        and max(spent) < _ASKED_S,
    )
