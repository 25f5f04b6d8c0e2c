"""Test readers of a served book: they ask and stream in their own threads, retry what was not
answered, and record every reply.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

_GIVE_UP_S = 30.0
_AGAIN_S = 0.25  # after a connection that broke
_EXCHANGES = 8  # of a thread, before the reader begins another


@dataclass(frozen=True, slots=True)
class Told:
    """The comparable parts of a reply: its text and its citations."""

    text: str
    urls: tuple[str, ...]

    @classmethod
    def of(cls, body: dict[str, Any]) -> Told:
        return cls(body["response"], tuple(source["url"] for source in body["sources"]))


@dataclass(frozen=True, slots=True)
class Exchange:
    thread: str
    question: str
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
    key: str
    questions: Iterator[str]
    streams: bool
    pause_s: float = 0.8
    said: list[Exchange] = field(default_factory=list)
    asking_since: float | None = None
    refused: int = 0  # typed, with a time to come again
    cut: int = 0  # connections
    wrong: list[str] = field(default_factory=list)  # whatever no client should ever see

    async def read(self, stop: asyncio.Event) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=httpx.Timeout(20, connect=2)
        ) as client:
            while not stop.is_set():
                thread = str(uuid.uuid4())
                for question in itertools.islice(self.questions, _EXCHANGES):
                    self.asking_since = time.monotonic()
                    await self._ask(client, thread, question)
                    self.asking_since = None
                    await asyncio.sleep(self.pause_s)
                    if stop.is_set():
                        break

    def longest_wait(self, *, since: float) -> float:
        """Return the longest wait since then, including questions still in progress."""
        now = time.monotonic() - self.asking_since if self.asking_since else 0.0
        return max([now, *(one.waited_s for one in self.said if one.began + one.waited_s >= since)])

    async def _ask(self, client: httpx.AsyncClient, thread: str, question: str) -> None:
        body = {"message": question, "session_id": thread}
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


async def _asked(
    client: httpx.AsyncClient, body: dict[str, str], headers: dict[str, str]
) -> dict[str, Any]:
    response = await client.post("/chat/run", json=body, headers=headers)
    return _answer(response)


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


@dataclass
class Notebook:
    """Compares what the server stored with what it acknowledged."""

    exchanges: int = 0
    lost: int = 0  # acknowledged, and not there, or not in order
    mixed: int = 0  # there, and never asked in this thread, or answered with another's answer
    doubled: int = 0  # kept once more, of what was cut off and asked again


async def compare(reader: Reader) -> Notebook:
    found = Notebook()
    headers = {"Authorization": f"Bearer {reader.key}"}
    threads = {
        one.thread: [o for o in reader.said if o.thread == one.thread] for one in reader.said
    }
    async with httpx.AsyncClient(base_url=reader.url, headers=headers, timeout=20) as client:
        for thread, said in threads.items():
            response = await client.get(f"/chat/threads/{thread}")
            kept = _pairs(response.json()["messages"]) if response.status_code == 200 else []
            _count(kept, said, found)
    return found


def _pairs(messages: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    texts = [message["content"] for message in messages]
    return list(zip(texts[::2], texts[1::2], strict=True))


def _count(kept: list[tuple[str, str]], said: Sequence[Exchange], found: Notebook) -> None:
    asked = {one.question for one in said}
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
    return one.question == question and one.told.text.startswith(answer)
