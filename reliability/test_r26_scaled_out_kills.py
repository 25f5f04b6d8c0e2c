"""Two servers, PostgreSQL, Redis, three Qdrant nodes and nginx: any one may be killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.support.samples import SAMPLE_BOOK
from tests.support.servers import Service, free_ports
from tools.local_deployment import Deployment, Part, running_deployment

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.errors import StoreFailed
from bythebook.server.contracts.chat import answers as chat
from reliability.conversations import Exchange, Reader, Told, compare
from reliability.rows import Rows

pytestmark = pytest.mark.real

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


@pytest.mark.alone
async def test_any_one_process_may_go(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R26",
        "Scaled out: kill any one process",
        requirement=(
            "0 acknowledged lost, 0 mixed, 0 stored twice, 0 wrong; no client waits more "
            "than 5 s for an answer"
        ),
    )
    with running_deployment(tmp_path, SAMPLE_BOOK / "docs") as deployment:
        questions = _questions()
        alone = await _asked_alone(deployment, questions)
        by_words = await _asked_by_words(deployment, questions)
        readers = [await _reader(deployment, questions, number) for number in range(_READERS)]
        kills = list(_parts(deployment).items()) * rows.count(1, 3)
        waits = await _kill_while_reading(readers, kills)
        kept = [await compare(reader) for reader in readers]
    told = [one for reader in readers for one in reader.said]
    without_vectors = [one for one in told if one.told != alone[one.question]]
    other = [one for one in without_vectors if one.told != by_words.get(one.question)]
    wrong = [text for reader in readers for text in reader.wrong]
    lost, mixed = sum(one.lost for one in kept), sum(one.mixed for one in kept)
    doubled = sum(one.doubled for one in kept)
    longest = max(waits, key=lambda name: waits[name])
    row.record(
        f"{len(kills)} kills of {len(_parts(deployment))} processes in turn, each restarted after "
        f"{_DOWN_S:.0f} s, under {_READERS} readers who got {len(told)} answers",
        f"{lost} of {sum(one.exchanges for one in kept)} acknowledged exchanges lost, {mixed} "
        f"mixed, {doubled} kept twice; {len(other)} answers other than "
        f"alone, {len(without_vectors) - len(other)} by words alone; {len(wrong)} wrong responses"
        f"{': ' + wrong[0] if wrong else ''}{_first_difference(other, alone)}; "
        f"{sum(r.refused for r in readers)} typed 503 and {sum(r.cut for r in readers)} broken "
        f"connections, asked again; longest wait {waits[longest]:.1f} s ({longest})",
        passed=not (lost or mixed or doubled or other or wrong)
        and waits[longest] <= _LONGEST_WAIT_S,
    )


def _first_difference(other: Sequence[Exchange], alone: Mapping[str, Told]) -> str:
    if not other:
        return ""
    one = other[0]
    return f": {one.question!r}: {one.told} instead of {alone[one.question]}"


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


def _questions() -> list[str]:
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    known = [json.loads(line)["question"] for line in lines]
    return known[:: len(known) // _QUESTIONS][:_QUESTIONS]


async def _reader(deployment: Deployment, questions: Sequence[str], number: int) -> Reader:
    """Half of the readers stream, and no two ask the same question at the same time."""
    order = [*questions[number:], *questions[:number]]
    return Reader(
        deployment.url, await deployment.new_key(), itertools.cycle(order), streams=number % 2 == 1
    )


async def _asked_alone(deployment: Deployment, questions: Sequence[str]) -> Mapping[str, Told]:
    headers = {"Authorization": f"Bearer {await deployment.new_key()}"}
    async with httpx.AsyncClient(base_url=deployment.url, headers=headers, timeout=30) as client:
        answers = {q: await client.post("/chat/run", json={"message": q}) for q in questions}
    return {question: Told.of(answer.json()) for question, answer in answers.items()}


async def _asked_by_words(deployment: Deployment, questions: Sequence[str]) -> Mapping[str, Told]:
    """Return the answers of the book without an index."""
    (closed,) = free_ports(1)
    nowhere = {**deployment.environment, "QDRANT_URL": f"http://127.0.0.1:{closed}"}
    library = Book(load_settings(environ=nowhere, directory=deployment.folder))
    told = {}
    try:
        for question in questions:
            asked = chat.read(chat.ChatRequest(message=question))
            with suppress(StoreFailed):  # what keywords do not find is an error for now
                reply = chat.show(await library.reply(asked))
                told[question] = Told.of(reply.model_dump(mode="json"))
    finally:
        await library.close()
    return told
