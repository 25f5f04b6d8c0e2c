"""Test readers, who ask a served book and record every reply.

A ``Reader`` is one of many who ask a server in threads of their own and ask again what was not
answered; a ``LocalReader`` asks a book in this process, without a socket between them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from bythebook.book import Book
from bythebook.conversations.query_log import LogQueue
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import FakeEmbedder, MemoryGenerationStore
from bythebook.server.app import create_app

_GIVE_UP_S = 30.0
_AGAIN_S = 0.25  # after a connection that broke
_EXCHANGES = 8  # of a thread, before the reader begins another


class Asked(NamedTuple):
    text: str
    selection: str | None = None


class Told(NamedTuple):
    """The comparable parts of a reply: its text and its citations."""

    text: str
    urls: tuple[str, ...]

    @classmethod
    def of(cls, body: dict[str, Any]) -> Told:
        return cls(body["response"], tuple(source["url"] for source in body["sources"]))


@dataclass(frozen=True, slots=True)
class Exchange:
    thread: str
    question: Asked
    told: Told
    kept: bool  # the server said nothing to the contrary
    began: float
    waited_s: float  # from asking first to the answer


class NotAnswered(Exception):
    """A typed 503 or a broken connection; the question may be asked again."""

    def __init__(self, after_s: float = _AGAIN_S) -> None:
        super().__init__()
        self.after_s = after_s


@dataclass
class Reader:
    """Reader with one key that uses one connection and one thread after another."""

    url: str
    key: str | None
    questions: Iterator[Asked]
    streams: bool
    pause_s: float = 0.8
    said: list[Exchange] = field(default_factory=list)
    asking_since: float | None = None
    refused: int = 0  # typed, with a time to come again
    cut: int = 0  # connections
    wrong: list[str] = field(default_factory=list)  # whatever no client should ever see

    async def read(self, stop: asyncio.Event) -> None:
        async with self.client() as client:
            while not stop.is_set():
                thread = str(uuid.uuid4())
                for question in itertools.islice(self.questions, _EXCHANGES):
                    self.asking_since = time.monotonic()
                    await self._ask(client, thread, question)
                    self.asking_since = None
                    await asyncio.sleep(self.pause_s)
                    if stop.is_set():
                        break

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limits = httpx.Timeout(20, connect=2)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=limits)

    def longest_wait(self, *, since: float) -> float:
        """Return the longest wait since then, including questions still in progress."""
        now = time.monotonic() - self.asking_since if self.asking_since else 0.0
        return max([now, *(one.waited_s for one in self.said if one.began + one.waited_s >= since)])

    async def _ask(self, client: httpx.AsyncClient, thread: str, question: Asked) -> None:
        body = _body(question) | {"session_id": thread}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        began = time.monotonic()
        while time.monotonic() - began < _GIVE_UP_S:
            try:
                answer = await (_streamed if self.streams else _asked)(client, body, headers)
            except NotAnswered as error:
                self.refused += 1
                await asyncio.sleep(error.after_s)
            except httpx.TransportError:
                self.cut += 1
                await asyncio.sleep(_AGAIN_S)
            except AssertionError as error:
                self.wrong.append(str(error))
                return
            else:
                kept = answer.get("persisted", True)
                waited = time.monotonic() - began
                self.said.append(Exchange(thread, question, Told.of(answer), kept, began, waited))
                return
        self.wrong.append(f"no answer within {_GIVE_UP_S:.0f} s")


async def ask(client: httpx.AsyncClient, question: Asked) -> dict[str, Any]:
    """Ask once, and again while the server says that it cannot answer now."""
    began = time.monotonic()
    while True:
        try:
            return await _asked(client, _body(question), {})
        except NotAnswered as error:
            if time.monotonic() - began > _GIVE_UP_S:
                raise
            await asyncio.sleep(error.after_s)


def _body(question: Asked) -> dict[str, str]:
    selected = {"selected_text": question.selection} if question.selection else {}
    return {"message": question.text, **selected}


async def _asked(
    client: httpx.AsyncClient, body: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    return _answer(await client.post("/chat/run", json=body, headers=headers))


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.status_code == 503:
        assert response.json()["error_code"], response.text
        assert "Retry-After" in response.headers, response.text
        raise NotAnswered(float(response.headers["Retry-After"]))
    assert response.status_code == 200, f"{response.status_code} {response.text[:300]}"
    told: dict[str, Any] = response.json()
    return told


async def _streamed(
    client: httpx.AsyncClient, body: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    events: list[tuple[str, int, dict[str, Any]]] = []
    async with client.stream("POST", "/chat/stream", json=body, headers=headers) as response:
        if response.status_code != 200:
            await response.aread()
            return _answer(response)
        event: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                event[name] = value
            elif event:
                number = int(event["id"].rpartition(".")[2])
                events.append((event["event"], number, json.loads(event["data"])))
                event = {}
    assert [number for _, number, _ in events] == list(range(1, len(events) + 1)), "events lost"
    if not events or events[-1][0] not in ("done", "error"):
        raise httpx.RemoteProtocolError("the stream was cut off")
    name, _, last = events[-1]
    if name == "error":
        assert last["error_code"], last
        raise NotAnswered(1.0)
    pieces = "".join(data["text"] for kind, _, data in events if kind == "delta")
    assert pieces == last["response"], "the pieces are not the answer"
    return last


@dataclass(slots=True)
class Stored:
    """Compares what the server stored with what it acknowledged."""

    exchanges: int = 0
    lost: int = 0  # acknowledged, and not there, or not in order
    mixed: int = 0  # there, and never asked in this thread, or answered with another's answer
    doubled: int = 0  # kept once more, of what was cut off and asked again


async def compare(reader: Reader) -> Stored:
    found = Stored()
    threads = {
        one.thread: [o for o in reader.said if o.thread == one.thread] for one in reader.said
    }
    async with reader.client() as client:
        for thread, said in threads.items():
            response = await client.get(f"/chat/threads/{thread}")
            kept = _pairs(response.json()["messages"]) if response.status_code == 200 else []
            _count(kept, said, found)
    return found


def _pairs(messages: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    texts = [message["content"] for message in messages]
    return list(zip(texts[::2], texts[1::2], strict=True))


def _count(kept: list[tuple[str, str]], said: Sequence[Exchange], found: Stored) -> None:
    asked = {one.question.text for one in said}
    found.mixed += sum(question not in asked for question, _ in kept)
    left = iter(kept)
    for one in said:
        if one.kept:
            found.exchanges += 1
            found.lost += not any(_is_same(one, pair) for pair in left)  # in order: it is used up
    found.doubled += max(0, len(kept) - len(said))


def _is_same(one: Exchange, pair: tuple[str, str]) -> bool:
    """Return whether the stored answer equals the shown one without its disclaimer."""
    question, answer = pair
    return one.question.text == question and one.told.text.startswith(answer)


# --- in this process ---

TEXT = "At how many degrees does a kettle boil water?"


def library_on(database: str, home: Path, *, deadline_s: float, waiting: int = 1000) -> Book:
    """Open a book whose catalog, threads and log are in this database; everything else is in
    memory.
    """
    engine = open_database(database, home)
    return Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=SqlCatalog(engine, home),
        threads=SqlThreads(engine, deadline_s=deadline_s),
        log=LogQueue(SqlQueryLog(engine), capacity=waiting),
        deadline_s=deadline_s,
    )


@asynccontextmanager
async def open_for_readers(library: Book) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(library)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client,
    ):
        yield client


@dataclass
class LocalReader:
    """Reader in this process, who repeats one question and records the replies."""

    client: httpx.AsyncClient
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    asked: int = 0
    kept: int = 0  # exchanges that were said to be kept
    failed: int = 0  # answers with a status of 500 and above
    wrong: int = 0  # that do not say what the book says

    async def talk(self) -> bool:
        """Ask the next question of a thread; return whether the reply says that it was stored."""
        body = {"message": TEXT, "session_id": self.session}
        response = await self.client.post("/chat/run", json=body)
        self._note(response, "response")
        kept = response.status_code == 200 and response.json().get("persisted", True)
        self.kept += kept
        return kept

    async def query(self) -> None:
        self._note(await self.client.post("/query", json={"text": TEXT}), "answer")

    def _note(self, response: httpx.Response, name: str) -> None:
        self.asked += 1
        self.failed += response.status_code >= 500
        self.wrong += response.status_code < 500 and "100 degrees" not in response.json()[name]


async def is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/ready")).status_code == 200
