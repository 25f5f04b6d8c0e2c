"""Rules and counts in, verdicts out."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bythebook.errors import RateLimited, ServiceError
from bythebook.interfaces.access import RateCount
from bythebook.providers.memory import MemoryCounter
from bythebook.providers.rate_limit_fallback import FallbackCounter
from bythebook.server.middleware.rate_limit import Limiter, Places, Rule

_PEPPER = b"a pepper for the tests"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class FragileCounter(MemoryCounter):
    broken = False
    asked = 0

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        self.asked += 1
        if self.broken:
            raise ServiceError("The Redis that counts did not answer.")
        return await super().take(key, limit=limit, seconds=seconds)


class WritingCounter(MemoryCounter):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
        self.names.append(key)
        return await super().take(key, limit=limit, seconds=seconds)


async def test_the_headers_count_down_and_say_when() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    rule = Rule("key", "k1", 3)
    left = [dict((await limiter.admit([rule])).headers) for _ in range(3)]
    assert [headers["RateLimit-Remaining"] for headers in left] == ["2", "1", "0"]
    verdict = await limiter.admit([rule])
    assert isinstance(verdict.refusal, RateLimited)
    assert 1 <= verdict.refusal.retry_after <= 60
    headers = dict(verdict.headers)
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == ("3", "0")
    assert headers["RateLimit-Policy"] == '"key";q=3;w=60'
    assert 1 <= int(headers["RateLimit-Reset"]) <= 60


async def test_what_the_narrow_rule_refuses_costs_the_wide_one_nothing() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    wide = Rule("address", "a", 20)
    for session in ("one", "two"):
        narrow = Rule("session", session, 10)
        verdicts = [await limiter.admit([narrow, wide]) for _ in range(30)]
        assert sum(verdict.refusal is None for verdict in verdicts) == 10
    third = await limiter.admit([Rule("session", "three", 10), wide])
    assert third.refusal is not None and "address" in third.refusal.message


async def test_the_tightest_rule_is_named() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    verdict = await limiter.admit([Rule("session", "s", 10), Rule("address", "a", 2)])
    assert dict(verdict.headers)["RateLimit-Limit"] == "2"
    assert (await limiter.admit([])).headers == ()


async def test_neither_address_nor_session_is_written_anywhere() -> None:
    counter = WritingCounter()
    await Limiter(counter, _PEPPER).admit([Rule("address", "198.51.100.9", 5)])
    await Limiter(counter, b"another pepper").admit([Rule("address", "198.51.100.9", 5)])
    assert all("198" not in name and len(name) == 64 for name in counter.names)
    assert len(set(counter.names)) == 2


async def test_a_store_that_is_away_is_stood_in_for(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = FragileCounter(), Clock()
    counter = FallbackCounter(store, MemoryCounter(), clock=clock)
    store.broken = True
    allowed = [(await counter.take("k", limit=3, seconds=60)).allowed for _ in range(5)]
    assert allowed == [True] * 3 + [False] * 2, "questions go on, and are still counted"
    assert store.asked == 1, "and do not wait for it again and again"
    clock.now += 6
    await counter.take("k", limit=3, seconds=60)
    assert (store.asked, len(caplog.records)) == (2, 1)
    store.broken = False
    clock.now += 6
    assert (await counter.take("k", limit=3, seconds=60)).allowed
    assert store.asked == 3


async def test_so_many_places_and_each_is_given_back() -> None:
    places = Places(2)
    at_once = partial(places.taken_by, waits=False)
    async with at_once("a"), at_once("a"):
        with pytest.raises(RateLimited):
            async with at_once("a"):
                raise AssertionError("a third place")
        async with at_once("b"):
            pass
    with pytest.raises(ZeroDivisionError):
        async with at_once("a"):
            raise ZeroDivisionError
    for _ in range(3):
        async with at_once("a"), at_once("a"):
            pass


async def test_who_waits_comes_in_when_a_place_is_free() -> None:
    places, inside, most = Places(2), 0, 0

    async def come() -> None:
        nonlocal inside, most
        async with places.taken_by("a", waits=True):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(come() for _ in range(20)))
    assert (inside, most) == (0, 2)
