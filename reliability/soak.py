"""Mixed readers that run at once for a given time, and a count of what they saw.

The right answer to each question is known from asking it alone, for each edition of the book. Any
other answer is wrong.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from tests.server.asgi_client import events_of
from tests.support.samples import SAMPLE_BOOK

_TURNS = 5  # of a conversation
_PAUSE_S = 0.02  # of a reader


@dataclass(frozen=True, slots=True)
class Asked:
    """One question asked in one way: of the whole book, as a stream, or of a selection."""

    way: str
    text: str
    selection: str | None = None


@dataclass
class Seen:
    """Counts of what the readers saw."""

    alone: dict[Asked, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    is_store_away: bool = False
    is_over: bool = False

    def judge(self, asked: Asked, answer: str | None, *, by_words: bool) -> None:
        """Compare an answer; None means a typed refusal to answer now, and keyword-only answers are
        compared with their own expectation.
        """
        if answer is None:
            self.counts["told to try again"] += 1
        elif by_words:
            self.counts["answered by words alone"] += 1
        elif answer in self.alone[asked]:
            self.counts["answered"] += 1
        else:
            self.wrong.append(f"{asked}: {answer}")


def questions(most: int) -> list[Asked]:
    """Return the questions of the sample book, in each way."""
    lines = (SAMPLE_BOOK / "questions.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines if line.strip()][:most]
    whole = [Asked(way, each["question"]) for each in found for way in ("ask", "stream")]
    told = [(each["question"], each["sentence"]) for each in found if each.get("sentence")]
    return [*whole, *(Asked("ask", question, sentence) for question, sentence in told)]


async def ask(client: httpx.AsyncClient, asked: Asked) -> tuple[str | None, bool]:
    """Return the answer with its citations, and whether only keyword search was used."""
    if asked.way == "stream":
        return await _stream(client, asked), False
    body: dict[str, Any] = {"text": asked.text}
    body |= {"selected_text": asked.selection} if asked.selection else {}
    response = await client.post("/ask", json=body)
    if response.status_code == 503:
        return None, False
    assert response.status_code == 200, response.text
    told = response.json()
    cited = [(each["number"], each["quote"]) for each in told["citations"]]
    return json.dumps([told["answer"], cited]), told["vectors"] != "ready"


async def _stream(client: httpx.AsyncClient, asked: Asked) -> str | None:
    text = ""
    async with client.stream("POST", "/chat/stream", json={"message": asked.text}) as response:
        if response.status_code == 503:
            return None
        assert response.status_code == 200
        async for piece in response.aiter_text():
            text += piece
    events = events_of(text)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    last = events[-1]
    if last.name == "error":
        return None
    said = "".join(event.body["text"] for event in events if event.name == "delta")
    assert last.name == "done"
    assert said in ("", last.body["response"]), "the deltas are not the answer"
    return str(last.body["response"])


async def reader(client: httpx.AsyncClient, seen: Seen, all_asked: list[Asked], seed: int) -> None:
    """Ask in every way."""
    chance = random.Random(seed)
    while not seen.is_over:
        asked, away = chance.choice(all_asked), seen.is_store_away
        answer, by_words = await ask(client, asked)
        by_words |= asked.way == "stream" and (away or seen.is_store_away)
        seen.judge(asked, answer, by_words=by_words)
        await asyncio.sleep(_PAUSE_S)


async def leaver(client: httpx.AsyncClient, seen: Seen, all_asked: list[Asked], seed: int) -> None:
    """Start to read an answer, then disconnect."""
    chance = random.Random(seed)
    while not seen.is_over:
        body = {"message": chance.choice(all_asked).text}
        async with client.stream("POST", "/chat/stream", json=body) as response:
            async for _ in response.aiter_raw():
                break
        seen.counts["left"] += 1
        await asyncio.sleep(_PAUSE_S)


async def talker(client: httpx.AsyncClient, seen: Seen, all_asked: list[Asked], seed: int) -> None:
    """Hold conversations and check that each contains only its own messages.

    Each conversation is marked by words of its own that occur in the book.
    """
    chance = random.Random(seed)
    words = sorted({word for asked in all_asked for word in asked.text.split()})
    words = [words[number % len(words)] for number in range(256)]
    while not seen.is_over:
        thread, kept, said = str(uuid.uuid4()), [], []
        mark = " ".join(words[int(thread[at : at + 2], 16)] for at in (0, 2, 4, 6))
        for turn in range(_TURNS):
            said.append(f"{chance.choice(all_asked).text} ({mark}, {turn})")
            body = {"message": said[-1], "session_id": thread}
            response = await client.post("/chat/run", json=body)
            assert response.status_code in (200, 503), response.text
            if response.status_code == 200 and response.json().get("persisted", True):
                kept.append(said[-1])
            await asyncio.sleep(_PAUSE_S)
        response = await client.get(f"/chat/threads/{thread}")
        if response.status_code == 503:
            seen.counts["told to try again"] += 1
            continue
        found = [] if response.status_code == 404 else response.json()["messages"]
        heard = [message["content"] for message in found if message["role"] == "user"]
        seen.counts["conversations"] += 1
        if not set(kept) <= set(heard) <= set(said) or len(heard) != len(set(heard)):
            seen.mixed.append(f"said {said}, kept {kept}, found {heard}")


Reader = Callable[[httpx.AsyncClient, Seen, list[Asked], int], Awaitable[None]]
CROWD: tuple[Reader, ...] = (reader, reader, reader, reader, leaver, talker, talker)


async def crowd(client: httpx.AsyncClient, seen: Seen, all_asked: list[Asked]) -> None:
    """Run all readers at once; record failures and restart the reader."""

    async def going_on(one: Reader, seed: int) -> None:
        while not seen.is_over:
            try:
                await one(client, seen, all_asked, seed)
            except (AssertionError, httpx.HTTPError, KeyError) as error:
                seen.broken.append(f"{one.__name__}: {error!r}")
                await asyncio.sleep(_PAUSE_S)

    await asyncio.gather(*(going_on(one, seed) for seed, one in enumerate(CROWD)))
