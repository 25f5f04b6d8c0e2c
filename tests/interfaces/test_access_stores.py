"""API keys, rate counters and replies, on every store."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.interfaces.access import (
    ABANDONED_S,
    KEPT_S,
    ApiKey,
    ClaimState,
    KeptReply,
    RateCounter,
)
from bythebook.providers.rate_limits import MemoryCounter, RedisCounter
from bythebook.providers.sql.access import SqlCounter, SqlKeys, SqlReplies
from bythebook.providers.sql.engine import open_access_database
from tests.interfaces.conftest import PATIENT_S
from tests.support.databases import POSTGRES, address
from tests.support.servers import running_redis

_REPLY = KeptReply(200, (("content-type", "application/json"),), b'{"answer": "\xc3\xa9"}')


@pytest.fixture
async def keys(engine: sa.Engine) -> AsyncIterator[SqlKeys]:
    store = SqlKeys(engine, deadline_s=PATIENT_S)
    yield store
    await store.close()


@pytest.fixture(
    params=["memory", "sqlite", POSTGRES, pytest.param("redis", marks=pytest.mark.real)]
)
async def counter(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RateCounter]:
    with ExitStack() as stack:
        store: RateCounter = MemoryCounter()
        if request.param == "redis":
            store = RedisCounter(stack.enter_context(running_redis(tmp_path)), wait_s=60)
        elif request.param != "memory":
            engine = open_access_database(address(request.param, tmp_path, request), tmp_path)
            store = SqlCounter(engine, deadline_s=PATIENT_S)
        yield store
        await store.close()


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def replies(engine: sa.Engine, clock: Clock) -> AsyncIterator[SqlReplies]:
    store = SqlReplies(engine, clock=clock, deadline_s=PATIENT_S)
    yield store
    await store.close()


def _key(key_id: str, *origins: str) -> ApiKey:
    return ApiKey(key_id, "0" * 64, "for tests", datetime.now(UTC), origins)


async def test_keys_are_read_back_unchanged(keys: SqlKeys) -> None:
    added = [_key("a" * 16), _key("b" * 16, "https://book.example", "http://localhost:3000")]
    for key in added:
        await keys.add(key)
    assert await keys.all() == added


async def test_a_key_is_revoked_once(keys: SqlKeys) -> None:
    await keys.add(_key("a" * 16))
    first = datetime(2026, 1, 1, tzinfo=UTC)
    assert await keys.revoke("a" * 16, first)
    assert await keys.revoke("a" * 16, datetime(2026, 2, 2, tzinfo=UTC))
    assert [key.revoked_at for key in await keys.all()] == [first]
    assert not await keys.revoke("b" * 16, first)


async def test_exactly_the_limit_is_allowed_of_concurrent_requests(counter: RateCounter) -> None:
    name = uuid.uuid4().hex
    taken = [counter.take(name, limit=100, seconds=60) for _ in range(1000)]
    counts = await asyncio.gather(*taken)
    assert sum(count.allowed for count in counts) == 100
    assert min(count.remaining for count in counts) == 0
    assert all(0 < count.reset_s <= 60 for count in counts if not count.allowed)


async def test_keys_are_counted_separately(counter: RateCounter) -> None:
    for name in ("one", "other"):
        assert (await counter.take(name, limit=1, seconds=60)).allowed
        assert not (await counter.take(name, limit=1, seconds=60)).allowed


async def test_the_window_moves_and_allows_no_double_burst(counter: RateCounter) -> None:
    """Whenever it is asked, no more than the limit within any second."""
    allowed: list[tuple[float, float]] = []  # before and after it was counted
    while len(allowed) < 11:
        before = time.monotonic()
        if (await counter.take("edge", limit=5, seconds=1)).allowed:
            allowed.append((before, time.monotonic()))
        await asyncio.sleep(0.01)
    for (first, _), (_, sixth) in zip(allowed, allowed[5:], strict=False):
        assert sixth - first > 0.95, "six within a second"


async def test_sql_deletes_expired_windows(tmp_path: Path, clock: Clock) -> None:
    engine = open_access_database(None, tmp_path)
    counter = SqlCounter(engine, clock=clock, deadline_s=PATIENT_S)
    for n in range(5):
        await counter.take(f"old {n}", limit=1, seconds=60)
    clock.now += 200
    await counter.take("new", limit=1, seconds=60)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT key FROM rate_windows").scalars().all()
    assert rows == ["new"]


async def test_the_first_claim_is_the_only_one(replies: SqlReplies) -> None:
    claims = await asyncio.gather(*(replies.claim("k", "f") for _ in range(50)))
    assert sorted(claim.state for claim in claims) == ["mine"] + ["running"] * 49


async def test_a_kept_reply_is_returned_again(replies: SqlReplies, clock: Clock) -> None:
    mine = await replies.claim("k", "f")
    await replies.keep("k", mine.token, _REPLY)
    clock.now += KEPT_S - 1
    again = await replies.claim("k", "f")
    assert (again.state, again.reply) == (ClaimState.DONE, _REPLY)
    assert (await replies.claim("k", "another body")).state is ClaimState.OTHER
    clock.now += 2
    assert (await replies.claim("k", "f")).state is ClaimState.MINE


async def test_a_released_key_can_be_claimed_again(replies: SqlReplies) -> None:
    mine = await replies.claim("k", "f")
    await replies.release("k", mine.token)
    assert (await replies.claim("k", "f")).state is ClaimState.MINE


async def test_a_claim_holds_while_it_is_renewed(replies: SqlReplies, clock: Clock) -> None:
    mine = await replies.claim("k", "f")
    for _ in range(3):
        clock.now += ABANDONED_S - 1
        await replies.hold({"k": mine.token, "never claimed": "a token"})
        await replies.hold({"k": "another's token"})
    assert (await replies.claim("k", "f")).state is ClaimState.RUNNING
    await replies.keep("k", mine.token, _REPLY)
    assert (await replies.claim("k", "f")).reply == _REPLY


async def test_an_abandoned_claim_expires(replies: SqlReplies, clock: Clock) -> None:
    dead = await replies.claim("k", "f")
    clock.now += ABANDONED_S - 1
    assert (await replies.claim("k", "f")).state is ClaimState.RUNNING
    clock.now += 2
    heir = await replies.claim("k", "f")
    assert heir.state is ClaimState.MINE
    await replies.keep("k", dead.token, _REPLY)  # the dead one was only slow
    await replies.release("k", dead.token)
    assert (await replies.claim("k", "f")).state is ClaimState.RUNNING
    await replies.keep("k", heir.token, _REPLY)
    assert (await replies.claim("k", "f")).state is ClaimState.DONE
