"""Limit the memory growth of a long-running server process.

None of this changes what is served. The allocator settings have an effect on glibc only.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from contextlib import suppress

_M_ARENA_MAX = -8  # parameter of glibc's mallopt()
_EVERY_S = 60
_NO_GLIBC = (AttributeError, TypeError)  # another libc; on Windows, none to load


def share_among_threads() -> None:
    """Limit glibc to two arenas. By default nearly every thread has one, and cannot use the free
    memory of others: after minutes of questions a worker holds 60 MB more, and keeps growing."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(*_NO_GLIBC):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def collect_often() -> None:
    """Collect reference cycles of requests every few seconds. Objects that exist at startup are
    frozen: scanning them would make each collection slow and rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def give_back() -> None:
    """Return free pages in the middle of the heap to the system. glibc keeps them: 45 MB in a
    worker that has answered its first questions, and slowly more."""
    with suppress(*_NO_GLIBC):
        ctypes.CDLL(None).malloc_trim(0)


async def give_back_often() -> None:
    while True:
        await asyncio.to_thread(give_back)  # takes milliseconds; must not block the event loop
        await asyncio.sleep(_EVERY_S)
