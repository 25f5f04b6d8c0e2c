"""Measure what a question and an open stream cost each service of the scaled-out deployment.

    python -m bench.capacity [--questions 400] [--streams 200] [--write]

Starts ``tools/local_deployment.py`` with the sample book, lets it idle, and asks new questions
as the widget asks them: streamed, in a thread, with an ``Idempotency-Key`` and one of
several API keys. For every service it records memory and CPU time, and for the database commits and
storage, minus the idle load. Streams are held open by a writer that takes five seconds for a
hundred sentences (``tests/server/slow_server.py``). ``docs/operators/scale.md`` uses the figures.
``--write`` stores them in ``bench/capacity.json`` and in the section *Capacity* of
``bench/RESULTS.md``. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import httpx
import psycopg
from bench.load import HERE, connections, family, unheard, write_section
from tests.server.running_server import slow_server
from tests.support.samples import SAMPLE_BOOK
from tools.local_deployment import Deployment, running_deployment

FIGURES = HERE / "capacity.json"
COMMAND = "python -m bench.capacity --write"
AT_ONCE = 4
REST_S = 5.0
PER_KEY = 90  # questions a minute that a key may ask, and a little room
SETTLES_S = 1.5  # until PostgreSQL has counted what it did, and the log is written
_DATABASE = """
SELECT xact_commit, pg_database_size(datname), pg_total_relation_size('kept_replies')
FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    memory_mb: float
    question_ms: float  # CPU time
    rest_cores: float


@dataclass(frozen=True, slots=True)
class Stream:
    streams: int
    memory_kb: float  # of each open stream
    event_ms: float  # CPU time of an event
    alone_mb: float  # memory of the server without streams


@dataclass(frozen=True, slots=True)
class Kept:
    """Database cost of a question."""

    transactions: float
    kb: float  # its exchange, its citations and its line of the log, with indexes
    day_kb: float  # the reply as it left, for as long as the request may be repeated


@dataclass(frozen=True, slots=True)
class Capacity:
    questions: int
    per_second: float  # with this machine's cores, clients and all
    parts: list[Part]
    kept: Kept
    stream: Stream


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    cpu_s: dict[str, float]
    transactions: int
    kb: float
    day_kb: float

    @classmethod
    def of(cls, deployment: Deployment) -> Moment:
        at = time.perf_counter()
        spent = {name: sum(map(_worked_s, pids)) for name, pids in _pids(deployment).items()}
        time.sleep(SETTLES_S)
        with psycopg.connect(deployment.environment["DATABASE_URL"]) as connection:
            found = connection.execute(_DATABASE).fetchone()
        assert found is not None
        transactions, size, replies = found
        return cls(at, spent, transactions, (size - replies) / 1024, replies / 1024)


def _pids(deployment: Deployment) -> dict[str, list[int]]:
    """Return the processes of the deployment, grouped by service."""
    found: dict[str, list[int]] = {}
    for name, part in deployment.parts.items():
        kind = name.rstrip("123 ")
        found.setdefault(kind, []).extend(family(part.process.pid))
    return found


def ask(deployment: Deployment, questions: Sequence[str]) -> float:
    """Ask the questions and return the seconds it took."""

    async def one(client: httpx.AsyncClient, mine: Sequence[str]) -> None:
        thread = str(uuid.uuid4())
        for question in mine:
            body = {"message": question, "session_id": thread}
            once = {"Idempotency-Key": str(uuid.uuid4())}
            answer = await client.post("/chat/stream", json=body, headers=once)
            assert "event: done" in answer.raise_for_status().text

    async def all_of_them() -> float:
        shares = [questions[n : n + PER_KEY] for n in range(0, len(questions), PER_KEY)]
        keys = [await deployment.new_key() for _ in shares]
        await asyncio.sleep(1)  # the servers read the keys twice a second
        began = time.perf_counter()
        for some, key in zip(shares, keys, strict=True):
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx.AsyncClient(
                base_url=deployment.url, headers=headers, timeout=60
            ) as client:
                await asyncio.gather(*(one(client, some[n::AT_ONCE]) for n in range(AT_ONCE)))
        return time.perf_counter() - began

    return asyncio.run(all_of_them())


def measure_questions(count: int) -> tuple[float, list[Part], Kept]:
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    questions = unheard([json.loads(line)["question"] for line in lines])
    with (
        tempfile.TemporaryDirectory() as folder,
        running_deployment(Path(folder), SAMPLE_BOOK / "docs") as deployment,
    ):
        ask(deployment, list(islice(questions, 100)))  # everything is warm
        rested = Moment.of(deployment)
        time.sleep(REST_S)
        began = Moment.of(deployment)
        seconds = ask(deployment, list(islice(questions, count)))
        ended = Moment.of(deployment)
        memory = {name: sum(map(_memory_mb, pids)) for name, pids in _pids(deployment).items()}
    parts = list(_parts(rested, began, ended, memory, count))
    return round(count / seconds, 1), parts, _kept(rested, began, ended, count)


def _kept(rested: Moment, began: Moment, ended: Moment, count: int) -> Kept:
    rest = (began.transactions - rested.transactions) / (began.at - rested.at)
    worked = ended.transactions - began.transactions - rest * (ended.at - began.at)
    return Kept(
        transactions=round(worked / count, 1),
        kb=round((ended.kb - began.kb) / count, 1),
        day_kb=round((ended.day_kb - began.day_kb) / count, 1),
    )


def _parts(
    rested: Moment, began: Moment, ended: Moment, memory: dict[str, float], count: int
) -> Iterator[Part]:
    for name, mb in memory.items():
        rest = (began.cpu_s[name] - rested.cpu_s[name]) / (began.at - rested.at)
        worked = ended.cpu_s[name] - began.cpu_s[name] - rest * (ended.at - began.at)
        yield Part(name, round(mb), round(max(0.0, worked) / count * 1000, 1), round(rest, 3))


def measure_streams(count: int) -> Stream:
    with tempfile.TemporaryDirectory() as folder, slow_server(Path(folder)) as server:
        port, pid = int(server.url.rpartition(":")[2]), server.process.pid
        asyncio.run(_stream(port, pid, count))  # what is allocated once is allocated now
        return asyncio.run(_stream(port, pid, count))


async def _stream(port: int, pid: int, count: int) -> Stream:
    async with connections(port, count) as opened:
        before, worked = _of_family(pid, _memory_mb), _of_family(pid, _worked_s)
        telling = asyncio.gather(*(each.stream("How hot is a kettle?") for each in opened))
        highest = before
        while not telling.done():
            await asyncio.sleep(0.25)
            highest = max(highest, _of_family(pid, _memory_mb))
        events = sum(len(seen) for _, _, seen in await telling)
        spent = _of_family(pid, _worked_s) - worked
    return Stream(
        streams=count,
        memory_kb=round((highest - before) * 1024 / count, 1),
        event_ms=round(spent / events * 1000, 3),
        alone_mb=round(before),
    )


def _of_family(pid: int, figure: object) -> float:
    assert callable(figure)
    return float(sum(map(figure, family(pid))))


def _worked_s(pid: int) -> float:
    """Return the CPU seconds of a process and its ended children."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    """Return the proportional set size of a process, in MB."""
    lines = _read(pid, "smaps_rollup").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _read(pid: int, name: str) -> str:
    """Read a file of /proc; empty if the process has ended, as some of PostgreSQL do."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def table(found: Capacity) -> str:
    rows = [
        f"{found.questions} questions about the sample book, {AT_ONCE} concurrently, streamed, in "
        f"threads: {found.per_second} per second. Each row sums all processes of a service.\n",
        "| service | memory MB | CPU ms per question | cores when idle |",
        "|---|---|---|---|",
    ]
    rows += [
        f"| {one.name} | {one.memory_mb:.0f} | {one.question_ms} | {one.rest_cores} |"
        for one in found.parts
    ]
    told = found.stream
    rows.append(
        f"\nA question takes {found.kept.transactions} transactions. The question and its answer "
        f"add {found.kept.kb} KB to the database; the reply kept for its `Idempotency-Key` adds "
        f"{found.kept.day_kb} KB for a day."
    )
    rows.append(
        f"\n{told.streams} open streams on one worker: {told.memory_kb} KB each, "
        f"{told.event_ms} ms of CPU time per event. Without streams the worker uses "
        f"{told.alone_mb:.0f} MB."
    )
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="store the figures")
    given = parser.parse_args()
    per_second, parts, kept = measure_questions(given.questions)
    stream = measure_streams(given.streams)
    found = Capacity(given.questions, per_second, parts, kept, stream)
    print(table(found))
    if given.write:
        FIGURES.write_text(json.dumps(asdict(found), indent=1) + "\n", "utf-8")
        write_section("Capacity", COMMAND, table(found))


if __name__ == "__main__":
    main()
