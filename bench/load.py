"""Many readers at once: a real server, real connections, and what queueing alone would explain.

    python bench/load.py --home HOME --questions QA.jsonl [--workers 2] [--write]

*Service time* S is what one question takes while nobody else asks, client included: both share the
machine. With c cores, n clients that ask again as soon as they are answered cannot be answered
faster than in n·S/c each; *over queueing* is the measured mean divided by that. Beside it stands
the processors' time for an answer, of server and client together: if it does not grow with the
clients, the server does no more for each of many than for one, and the rest is the machine's.
Streams are all begun at the same instant; of each, the numbers of its events must run without a
gap to one last event. With ``--write`` the figures go to ``bench/load.json`` and to the section
*Load* of ``bench/RESULTS.md``. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

HERE = Path(__file__).parent
RESULTS, FIGURES = HERE / "RESULTS.md", HERE / "load.json"
CLIENTS = (1, 10, 100, 200)
STREAMS = 200
COMMAND = "python bench/load.py --home bench/data/homes/sample --write"
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Load:
    clients: int
    answers: int
    per_second: float
    mean_ms: float
    median_ms: float
    p95_ms: float
    failed: int
    over_queueing: float
    cpu_ms: float  # of server and client, for each answer
    busy_cores: float  # of those, on average
    others_cores: float  # that worked for somebody else meanwhile: not the server's fault


@dataclass(frozen=True, slots=True)
class Answers:
    """What a number of clients got."""

    spent_s: list[float]
    failed: int
    seconds: float
    cpu_s: float
    others_cpu_s: float


@dataclass(frozen=True, slots=True)
class Streaming:
    streams: int
    events: int
    first_byte_median_ms: float
    first_byte_p95_ms: float
    last_event_p95_ms: float
    lost_doubled_reordered: int
    without_one_last_event: int


@dataclass(frozen=True, slots=True)
class Figures:
    cores: int
    workers: int
    service_ms: float
    loads: list[Load]
    streaming: Streaming


class Connection:
    """As little of an HTTP client as will do: it should weigh little beside the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, question: str) -> bool:
        """Whether it was answered with 200."""
        await self._send("/chat/run", question)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await self._reader.readexactly(int(length[1]))
        return head.startswith(b"HTTP/1.1 200")

    async def stream(self, question: str) -> tuple[float, float, list[tuple[str, int]]]:
        """When the first byte and the last event came, and each event's name and number."""
        began = time.perf_counter()
        await self._send("/chat/stream", question)
        await self._reader.readuntil(b"\r\n\r\n")
        text = await self._reader.read(1)
        first = time.perf_counter() - began
        while not text.endswith(b"0\r\n\r\n"):
            piece = await self._reader.read(65536)
            if not piece:
                break
            text += piece
        last = time.perf_counter() - began
        names = re.findall(rb"^event: (\w+)", text, re.M)
        numbers = re.findall(rb"^id: \w+\.(\d+)", text, re.M)
        return first, last, [(n.decode(), int(i)) for n, i in zip(names, numbers, strict=True)]

    async def _send(self, path: str, question: str) -> None:
        body = json.dumps({"message": question}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await self._writer.drain()


@asynccontextmanager
async def connections(port: int, count: int) -> AsyncIterator[list[Connection]]:
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    try:
        yield [Connection(reader, writer) for reader, writer in opened]
    finally:
        for _, writer in opened:
            writer.close()
        for _, writer in opened:
            with suppress(ConnectionError):
                await writer.wait_closed()


async def load(
    server: Server, clients: int, questions: Iterator[str], *, seconds: float
) -> Answers:
    spent: list[float] = []
    failed = 0

    async def ask(connection: Connection, until: float) -> None:
        nonlocal failed
        while time.perf_counter() < until:
            began = time.perf_counter()
            failed += not await connection.ask(next(questions))
            spent.append(time.perf_counter() - began)

    async with connections(server.port, clients) as opened:
        began, worked, all_worked = time.perf_counter(), server.cpu_seconds(), _machine_seconds()
        await asyncio.gather(*(ask(each, began + seconds) for each in opened))
        took = time.perf_counter() - began
        ours = server.cpu_seconds() - worked
        return Answers(spent, failed, took, ours, _machine_seconds() - all_worked - ours)


def unheard(questions: Sequence[str]) -> Iterator[str]:
    """The questions again and again, each time in other letters: none is known to the server."""
    for round_ in count(1):
        for question in questions:
            yield question.replace(" ", " " * round_, 1)


def weigh(clients: int, found: Answers, *, service_ms: float, cores: int) -> Load:
    mean_ms = statistics.mean(found.spent_s) * 1000
    return Load(
        clients=clients,
        answers=len(found.spent_s),
        per_second=round(len(found.spent_s) / found.seconds, 1),
        mean_ms=round(mean_ms, 1),
        median_ms=round(statistics.median(found.spent_s) * 1000, 1),
        p95_ms=round(p95(found.spent_s) * 1000, 1),
        failed=found.failed,
        over_queueing=round(mean_ms / (service_ms * max(1.0, clients / cores)), 3),
        cpu_ms=round(found.cpu_s / len(found.spent_s) * 1000, 1),
        busy_cores=round(found.cpu_s / found.seconds, 2),
        others_cores=round(max(0.0, found.others_cpu_s) / found.seconds, 2),
    )


async def streaming(port: int, questions: Iterator[str]) -> Streaming:
    firsts, lasts, broken, endless, events = [], [], 0, 0, 0
    for _ in range(ROUNDS):
        async with connections(port, STREAMS) as opened:
            asked = zip(opened, questions, strict=False)
            told = await asyncio.gather(*(each.stream(question) for each, question in asked))
        for first, last, seen in told:
            firsts.append(first)
            lasts.append(last)
            events += len(seen)
            broken += [number for _, number in seen] != list(range(1, len(seen) + 1))
            endless += [name in ("done", "error") for name, _ in seen].count(True) != 1
            endless += not seen or seen[-1][0] != "done"
    return Streaming(
        streams=len(firsts),
        events=events,
        first_byte_median_ms=round(statistics.median(firsts) * 1000, 1),
        first_byte_p95_ms=round(p95(firsts) * 1000, 1),
        last_event_p95_ms=round(p95(lasts) * 1000, 1),
        lost_doubled_reordered=broken,
        without_one_last_event=endless,
    )


async def measure(
    server: Server, questions: Iterator[str], workers: int, seconds: float
) -> Figures:
    cores = os.cpu_count() or 1
    await load(server, 4 * workers, questions, seconds=min(3.0, seconds))  # every worker warm
    loads, service_ms = [], 0.0
    for clients in CLIENTS:
        found = await load(server, clients, questions, seconds=seconds)
        service_ms = service_ms or statistics.mean(found.spent_s) * 1000
        loads.append(weigh(clients, found, service_ms=service_ms, cores=cores))
    told = await streaming(server.port, questions)
    return Figures(cores, workers, round(service_ms, 2), loads, told)


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> float:
        """What the processors have worked for the server and for us."""
        return sum(map(cpu_seconds, family(self.process.pid))) + time.process_time()


def family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from family(int(child))


def _machine_seconds() -> float:
    """What all processors have worked for anybody, or were taken away by the host."""
    line = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, line)
    worked = user + nice + system + irq + softirq + stolen
    return worked / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(home: Path, port: int, workers: int) -> Iterator[Server]:
    program = str(Path(sys.executable).with_name("bythebook"))
    command = [program, "serve", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        _wait(f"http://127.0.0.1:{port}/ready")
        yield Server(port, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _wait(url: str) -> None:
    for _ in range(600):
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def table(figures: Figures) -> str:
    rows = [
        f"`/chat/run` on {figures.cores} cores, {figures.workers} workers, clients on the same "
        f"machine; one question alone takes {figures.service_ms} ms.\n",
        "| clients | answers/s | mean ms | median ms | p95 ms | failed | over queueing "
        "| CPU ms an answer | busy cores | … for others |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {one.clients} | {one.per_second} | {one.mean_ms} | {one.median_ms} | {one.p95_ms} "
        f"| {one.failed} | {one.over_queueing:.2f} | {one.cpu_ms} "
        f"| {one.busy_cores} | {one.others_cores} |"
        for one in figures.loads
    ]
    told = figures.streaming
    rows += [
        f"\n{ROUNDS} times {STREAMS} streams at once:\n",
        "| streams | events | first byte median / p95 ms | last event p95 ms "
        "| lost, doubled or out of order | without exactly one last event |",
        "|---|---|---|---|---|---|",
        f"| {told.streams} | {told.events} "
        f"| {told.first_byte_median_ms} / {told.first_byte_p95_ms} | {told.last_event_p95_ms} "
        f"| {told.lost_doubled_reordered} | {told.without_one_last_event} |",
    ]
    return "\n".join(rows) + "\n"


def write(figures: Figures) -> None:
    FIGURES.write_text(json.dumps(asdict(figures), indent=1) + "\n", "utf-8")
    write_section("Load", COMMAND, table(figures))


def write_section(name: str, command: str, figures: str) -> None:
    """Put the figures, with what brings them, into their place in RESULTS.md."""
    text, title = RESULTS.read_text("utf-8"), f"## {name}\n"
    before, _, rest = text.partition(title)
    after = re.search(r"^## ", rest, re.M)
    told = f"{title}\n```sh\n{command}\n```\n\n{figures}"
    rest = "\n" + rest[after.start() :] if after else ""
    RESULTS.write_text(f"{before.rstrip()}\n\n{told}{rest}", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--home", type=Path, required=True, help="an ingested book")
    sample = HERE.parent / "examples" / "physical-ai-book" / "questions.jsonl"
    parser.add_argument("--questions", type=Path, default=sample)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=10, help="for each number of clients")
    parser.add_argument("--port", type=int, default=8790)
    parser.add_argument("--write", action="store_true", help="keep the figures")
    given = parser.parse_args()
    lines = given.questions.read_text("utf-8").splitlines()
    questions = unheard([json.loads(line)["question"] for line in lines if line.strip()])
    with serving(given.home, given.port, given.workers) as server:
        figures = asyncio.run(measure(server, questions, given.workers, given.seconds))
    print(table(figures))
    if given.write:
        write(figures)


if __name__ == "__main__":
    main()
