"""A provider that is down gets at most one call in ten seconds, and its return is noticed.

The test's own clock lets minutes pass at once.
"""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from tests.providers.hosted import drafted, writer_at
from tests.providers.loopback import Loopback, Step, chat, refuse

from bythebook.errors import WriterFailed
from bythebook.providers.http.client import EVERY_S, FAILURES, CircuitBreaker
from reliability.rows import Rows

pytestmark = pytest.mark.loopback

_AT_ONCE = 20  # readers who ask in the same second
_CALM = {"timeout_s": 30.0, "first_token_timeout_s": 30.0, "idle_timeout_s": 30.0}
_DOWN: list[Step] = refuse(500, retry_after="60")  # so long a wait that no call is repeated


async def _outage(seconds: int) -> tuple[int, int, int]:
    """Return calls beyond the first failures, refusals without a wait, and calls after recovery."""
    now = [1000.0]
    calls: list[float] = []

    def down(_: object) -> list[Step]:
        calls.append(now[0])
        return _DOWN

    with Loopback(down) as provider:
        breaker = CircuitBreaker(clock=lambda: now[0])
        async with writer_at(provider.url, breaker=breaker, **_CALM) as writer:

            async def ask() -> WriterFailed | None:
                try:
                    await drafted(writer)
                except WriterFailed as error:
                    return error
                return None

            for _ in range(FAILURES):
                await ask()
            silent = 0
            for second in range(seconds):
                now[0] = 1000.0 + second
                refused = await asyncio.gather(*(ask() for _ in range(_AT_ONCE)))
                silent += sum(error is None or error.retry_after is None for error in refused)
            probes = calls[FAILURES:]
            gaps = [later - sooner for sooner, later in itertools.pairwise(probes)]
            crowded = sum(gap < EVERY_S for gap in gaps)
            provider.script = lambda _: chat("A kite.")
            now[0] += EVERY_S
            answered = [await ask() is None for _ in range(_AT_ONCE)]
    assert calls[:FAILURES] == [1000.0] * FAILURES
    return crowded + max(0, len(probes) - seconds // int(EVERY_S)), silent, sum(answered)


def _walk(steps: int, chance: random.Random) -> int:
    """Return how often the breaker decided wrongly over random outcomes and waits."""
    now, in_a_row, last_probe, wrong = 0.0, 0, -EVERY_S, 0
    breaker = CircuitBreaker(clock=lambda: now)
    for _ in range(steps):
        now += chance.choice([0.0, 0.0, 3.0])
        wait = breaker.wait_s()
        is_due = in_a_row < FAILURES or now >= last_probe + EVERY_S
        wrong += (wait == 0) != is_due
        if wait:
            wrong += abs(wait - (last_probe + EVERY_S - now)) > 1e-6
        elif chance.random() < 0.1:
            breaker.succeeded()
            in_a_row = 0
        else:
            breaker.failed()
            in_a_row, last_probe = in_a_row + 1, now
    return wrong


async def test_who_is_down_is_asked_once_in_ten_seconds_until_it_is_back(rows: Rows) -> None:
    row = rows.add(
        "R11",
        "Keep a provider down",
        requirement=(
            "five failures, then at most one call in 10 s; the first success closes the circuit"
        ),
    )
    seconds, steps = rows.count(60, 600), rows.count(20_000, 1_000_000)
    crowded, silent, answered = await _outage(seconds)
    wrong = _walk(steps, random.Random(11))
    row.record(
        f"{seconds} s of outage with {_AT_ONCE} questions a second, by a clock of our own; {steps} "
        "random outcomes and waits",
        f"{crowded} calls too many, {silent} refusals that do not say when, {wrong} wrong "
        f"decisions; {answered} of {_AT_ONCE} answered once it was back",
        passed=crowded == silent == wrong == 0 and answered == _AT_ONCE,
    )
