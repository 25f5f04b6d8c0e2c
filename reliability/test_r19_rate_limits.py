"""Of a thousand questions at once with one key, exactly a hundred are allowed in any minute."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.server.server_fixtures import new_key, serving
from tests.support.databases import address as address_of
from tests.support.servers import running_redis

from bythebook.config.settings import load_settings
from bythebook.providers.sql.access import SqlCounter
from bythebook.providers.sql.engine import open_access_database
from reliability.rows import Rows

pytestmark = pytest.mark.real

_READERS, _LIMIT, _MINUTE = 1000, 100, 60
_WORKERS = [(1, "memory"), (1, "database"), (2, "database"), (2, "redis"), (2, "postgres")]


async def test_exactly_a_hundred_of_a_thousand_are_allowed(
    rows: Rows, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    row = rows.add(
        "R19",
        "Send a thousand questions at once with one key",
        requirement="exactly 100 allowed in any 60 s",
    )
    allowed = []
    for workers, counts in _WORKERS:
        home = tmp_path / f"{workers} {counts}"
        home.mkdir()
        url = address_of("postgres", home, request) if counts == "postgres" else None
        for _ in range(rows.count(1, 3)):
            allowed.append(await _allowed(home, workers, counts, url))
    minutes = rows.count(4, 30)
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
