"""Circuit breaker for hosted services.

It opens after five failures in a row and then allows one probe every ten seconds: clients need not
wait for calls that will fail, and a failing service is not overloaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bythebook.providers.http.errors import ErrorCode, ProviderError

FAILURES = 5
EVERY_S = 10.0


class CircuitBreaker:
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next = 0.0  # while open: when the next call may be made

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count the outcome of one call; raise instead of calling while the breaker is open.

        A non-retryable rejection, or a client that leaves, shows that the service is up.
        """
        if wait_s := self.wait_s():
            raise ProviderError(ErrorCode.CIRCUIT_OPEN, retry_after=wait_s)
        try:
            yield
        except ProviderError as fault:
            if fault.retryable:
                self.failed()
            else:
                self.succeeded()
            raise
        except GeneratorExit:
            self.succeeded()
            raise
        else:
            self.succeeded()

    def wait_s(self) -> float:
        """Return 0 if a call may be made (report its outcome), else the seconds until the next."""
        if self._failures < FAILURES:
            return 0.0
        now = self._clock()
        if now < self._next:
            return self._next - now
        self._next = now + EVERY_S  # later callers must wait: a probe is under way
        return 0.0

    def failed(self) -> None:
        self._failures += 1
        if self._failures == FAILURES:
            self._next = self._clock() + EVERY_S

    def succeeded(self) -> None:
        self._failures = 0
