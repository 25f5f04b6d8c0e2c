"""How calls went in; whether the next may be made out.

Five failures in a row and a service is left alone, but for one call in ten seconds that finds out
whether it is back: readers need not wait for what will fail, and who is down is not besieged.
"""

from __future__ import annotations

import time
from collections.abc import Callable

FAILURES = 5
EVERY_S = 10.0


class Breaker:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next = 0.0  # while open: when the next call may be made

    def wait_s(self) -> float:
        """0: call now, and say how it went. Otherwise the seconds until somebody may."""
        if self._failures < FAILURES:
            return 0.0
        now = self._clock()
        if now < self._next:
            return self._next - now
        self._next = now + EVERY_S  # whoever asks next finds the probe under way
        return 0.0

    def failed(self) -> None:
        self._failures += 1
        if self._failures == FAILURES:
            self._next = self._clock() + EVERY_S

    def succeeded(self) -> None:
        self._failures = 0
