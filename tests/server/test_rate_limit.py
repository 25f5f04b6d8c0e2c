"""Rules and counts in, decisions out."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bythebook.errors import RateLimited, ServiceError
from bythebook.interfaces.access import RateCount
from bythebook.providers.rate_limits import FallbackCounter, MemoryCounter
from bythebook.server.middleware.rate_limit import Limiter, LimitRule, RequestSlots

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


async def test_headers_report_remaining_quota_and_reset_time() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    rule = LimitRule("key", "k1", 3)
    left = [(await limiter.admit([rule])).headers for _ in range(3)]
    assert [headers["RateLimit-Remaining"] for headers in left] == ["2", "1", "0"]
    decision = await limiter.admit([rule])
    assert isinstance(decision.error, RateLimited)
    assert 1 <= decision.error.retry_after <= 60
    headers = decision.headers
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == ("3", "0")
    assert headers["RateLimit-Policy"] == '"key";q=3;w=60'
    assert 1 <= int(headers["RateLimit-Reset"]) <= 60


async def test_requests_rejected_by_the_session_limit_do_not_count_for_the_address() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    wide = LimitRule("address", "a", 20)
    for session in ("one", "two"):
        narrow = LimitRule("session", session, 10)
        decisions = [await limiter.admit([narrow, wide]) for _ in range(30)]
        assert sum(decision.error is None for decision in decisions) == 10
    third = await limiter.admit([LimitRule("session", "three", 10), wide])
    assert third.error is not None and "address" in third.error.message


async def test_headers_report_the_rule_with_least_quota_left() -> None:
    limiter = Limiter(MemoryCounter(), _PEPPER)
    decision = await limiter.admit([LimitRule("session", "s", 10), LimitRule("address", "a", 2)])
    assert decision.headers["RateLimit-Limit"] == "2"
    assert (await limiter.admit([])).headers == {}


async def test_addresses_are_stored_as_keyed_digests_only() -> None:
    counter = WritingCounter()
    await Limiter(counter, _PEPPER).admit([LimitRule("address", "198.51.100.9", 5)])
    await Limiter(counter, b"another pepper").admit([LimitRule("address", "198.51.100.9", 5)])
    assert all("198" not in name and len(name) == 64 for name in counter.names)
    assert len(set(counter.names)) == 2


async def test_unavailable_counter_store_falls_back_to_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
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


async def test_slots_are_limited_per_caller_and_released() -> None:
    slots = RequestSlots(2)
    at_once = partial(slots.taken_by, waits=False)
    async with at_once("a"), at_once("a"):
        with pytest.raises(RateLimited):
            async with at_once("a"):
                raise AssertionError("a third slot was given")
        async with at_once("b"):
            pass
    with pytest.raises(ZeroDivisionError):
        async with at_once("a"):
            raise ZeroDivisionError
    for _ in range(3):
        async with at_once("a"), at_once("a"):
            pass


async def test_waiting_requests_never_exceed_the_slots() -> None:
    slots, inside, most = RequestSlots(2), 0, 0

    async def enter() -> None:
        nonlocal inside, most
        async with slots.taken_by("a", waits=True):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter() for _ in range(20)))
    assert (inside, most) == (0, 2)
