"""LRU cache with a time-to-live."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """Hold at most ``most`` values for ``fresh_s`` seconds each; evict the least recently used."""

    def __init__(
        self, most: int, *, fresh_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._fresh_s = fresh_s
        self._clock = clock
        self._kept: dict[K, tuple[V, float]] = {}  # ordered by last use

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        value, until = self._kept.pop(key, (None, 0.0))
        if value is None or self._clock() >= until:
            return None
        self._kept[key] = value, until
        return value

    def put(self, key: K, value: V) -> None:
        self._kept.pop(key, None)
        self._kept[key] = value, self._clock() + self._fresh_s
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
