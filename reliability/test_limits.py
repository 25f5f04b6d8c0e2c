"""One key gets its share and no more, and a repeated request is answered once."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.server import access_fixtures
from tests.server.access_fixtures import AWAY, access_of
from tests.server.server_fixtures import new_key, serving
from tests.support.databases import address as address_of
from tests.support.samples import small_book
from tests.support.servers import running_redis
from tests.support.writers import library_with

from bythebook.access_stores import open_access_stores
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import load_settings
from bythebook.providers.sql.access import SqlCounter
from bythebook.providers.sql.engine import open_access_database
from bythebook.server.app import create_app
from bythebook.types import Evidence, Message, Question
from reliability.rows import Row

_READERS, _LIMIT, _MINUTE = 1000, 100, 60
_WORKERS = [(1, "memory"), (1, "database"), (2, "database"), (2, "redis"), (2, "postgres")]


@pytest.mark.real
@pytest.mark.row(
    "R19",
    "Send a thousand questions at once with one key",
    "exactly 100 allowed in any 60 s",
)
async def test_exactly_a_hundred_of_a_thousand_are_allowed(
    row: Row, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    allowed = []
    for workers, counts in _WORKERS:
        home = tmp_path / f"{workers} {counts}"
        home.mkdir()
        url = address_of("postgres", home, request) if counts == "postgres" else None
        for _ in range(row.count(1, 3)):
            allowed.append(await _allowed(home, workers, counts, url))
    minutes = row.count(4, 30)
    most = await _most_in_a_minute(tmp_path, minutes)
    row.record(
        f"{_READERS} hits at once, {len(allowed)} times: on one worker and on two that count in "
        "SQLite, Redis or PostgreSQL; and hits at random over the edges of "
        f"{minutes} minutes",
        f"allowed {', '.join(map(str, sorted(set(allowed))))} of {_READERS}; at most {most} in any "
        "60 s over the edges",
        passed=set(allowed) == {_LIMIT} and most == _LIMIT,
    )


async def _allowed(home: Path, workers: int, counts: str, url: str | None) -> int:
    key = await new_key(load_settings({"home": home, "database_url": url}, environ={}))
    with ExitStack() as stack:
        if counts == "redis":
            counts = stack.enter_context(running_redis(home))
        counts = "database" if url else counts
        server = stack.enter_context(serving(home, workers=workers, counts=counts, database=url))
        start = time.monotonic()
        answers = await asyncio.gather(*(_ask(server.url, key) for _ in range(_READERS)))
        assert time.monotonic() - start < _MINUTE, "the first ones left the window meanwhile"
    statuses = Counter(status for status, _ in answers)
    assert set(statuses) == {200, 429}
    # One of them may be so quick that all who are allowed are its.
    asked = {body["worker"] for _, body in answers}
    assert len(asked) == workers, "not every worker was asked"
    return statuses[200]


async def _ask(address: str, text: str) -> tuple[int, dict[str, object]]:
    """Ask on a raw connection of its own: a client's pool would serialise the requests."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ["POST /chat/run HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {text}"]
    lines += ["Content-Length: 0", "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


async def _most_in_a_minute(folder: Path, minutes: int) -> int:
    """Return the most hits allowed in any 60 s, by the test's own clock."""
    chance, now = random.Random(19), 0.0
    counter = SqlCounter(open_access_database(None, folder), clock=lambda: now)
    allowed: list[float] = []
    while now < minutes * _MINUTE:
        now += chance.choice([0.0, 0.01, 0.2, chance.uniform(0, 30)])
        for _ in range(chance.randint(1, 40)):
            count = await counter.take("key", limit=_LIMIT, seconds=_MINUTE)
            allowed += [now] if count.allowed else []
    await counter.close()
    return max(
        sum(moment <= each < moment + _MINUTE for each in allowed) for moment in set(allowed)
    )


_AT_ONCE = 50


@pytest.mark.real
@pytest.mark.row(
    "R20",
    "Repeat a request with one Idempotency-Key",
    "one generation, also across a crash; another body gets 422",
)
async def test_a_repeated_request_is_answered_once(row: Row, tmp_path: Path) -> None:
    rounds = row.count(2, 20)
    keys = [{"Idempotency-Key": str(uuid.uuid4())} for _ in range(rounds)]
    first: list[bytes] = []
    doubled = unlike = accepted = 0
    with serving(tmp_path, workers=2, counts="database") as server:
        for key in keys:
            async with httpx.AsyncClient(base_url=server.url, headers=key, timeout=60) as client:
                answers = await asyncio.gather(
                    *(client.post("/chat/run", json={"message": "?"}) for _ in range(_AT_ONCE))
                )
                changed = await client.post("/chat/run", json={"message": "!"})
            assert {answer.status_code for answer in answers} == {200}
            doubled += sum("idempotent-replayed" not in each.headers for each in answers) - 1
            unlike += len({answer.content for answer in answers}) - 1
            accepted += changed.status_code != 422
            first.append(answers[0].content)
        server.kill()
    with serving(tmp_path, workers=2, counts="database") as server:
        for key, before in zip(keys, first, strict=True):
            async with httpx.AsyncClient(base_url=server.url, headers=key, timeout=60) as client:
                again = await client.post("/chat/run", json={"message": "?"})
            doubled += "idempotent-replayed" not in again.headers
            unlike += again.content != before
    row.record(
        f"{rounds} keys, {_AT_ONCE} requests at once on two workers for each, all killed, and "
        "repeated on new ones",
        f"{doubled} answered a second time, {unlike} replies unlike the first, {accepted} other "
        "bodies accepted",
        passed=doubled == unlike == accepted == 0,
    )


_ASKED = "At how many degrees does a kettle boil water?"
_WAYS = (
    ("/chat/run", {"message": _ASKED}),
    ("/chat/stream", {"message": _ASKED}),
    ("/ask", {"text": _ASKED}),
    ("/query", {"text": _ASKED}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": _ASKED}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": _ASKED}], "stream": True}),
)


class Slow:
    """Model that counts concurrent calls."""

    name = "fake:slow"

    def __init__(self) -> None:
        self.calls = self.open = self.most = 0

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        self.calls += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(0.02)
            yield f"{evidence.hits[0].passage.unit_text(evidence.hits[0].passage.units[0])} [1]"
        finally:
            self.open -= 1


async def _asked_at_once(folder: Path, requests: int) -> tuple[Slow, list[int]]:
    model, stores = Slow(), open_access_stores()
    library = await library_with(small_book(folder), lambda _: model)
    key, _ = await access_fixtures.new_key(stores)
    app = create_app(library, access=access_of(Rules(), stores, needs_keys=True))
    transport = httpx.ASGITransport(app, client=(AWAY, 50_000))
    headers = {"X-API-Key": key}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://server", headers=headers, timeout=60
    ) as client:
        ways = [_WAYS[number % len(_WAYS)] for number in range(requests)]
        asked = [client.post(path, json=body) for path, body in ways]
        return model, [answer.status_code for answer in await asyncio.gather(*asked)]


@pytest.mark.row(
    "S9",
    "One client uses up the model (unbounded consumption)",
    "at most 5 calls running and 100 a minute",
)
async def test_one_key_cannot_use_up_the_model(row: Row, tmp_path: Path) -> None:
    model, codes = await _asked_at_once(tmp_path / "docs", 1_000)
    row.record(
        f"1,000 questions of one key at once over {len(_WAYS)} contracts and streams",
        f"{model.most} calls under way at most, {model.calls} made, {codes.count(429)} refused",
        passed=model.most <= 5 and 0 < model.calls <= 100 and set(codes) == {200, 429},
    )
