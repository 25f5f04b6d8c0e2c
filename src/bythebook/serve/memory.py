"""A process that serves for weeks in; one that keeps no more memory than it uses out.

None of this changes what is served. Elsewhere than on glibc, the allocator keeps its own habits.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from contextlib import suppress

_M_ARENA_MAX = -8  # of glibc's mallopt()
_EVERY_S = 60
_NO_GLIBC = (AttributeError, TypeError)  # another libc; none that can be called, as on Windows


def share_among_threads() -> None:
    """glibc gives nearly every thread an arena of its own, and what is free in one is of no use to
    the others: after minutes of questions a worker holds 60 MB more, and goes on growing."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(*_NO_GLIBC):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def collect_often() -> None:
    """Rings that requests leave behind are looked for every few seconds, and only among what came
    after the start: what is there now stays, and would make each search long and rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def give_back() -> None:
    """Pages that are free in the middle of the heap, which glibc keeps: 45 MB of a worker that has
    answered its first questions, and slowly more."""
    with suppress(*_NO_GLIBC):
        ctypes.CDLL(None).malloc_trim(0)


async def give_back_often() -> None:
    while True:
        await asyncio.to_thread(give_back)  # some milliseconds, and not those of the loop
        await asyncio.sleep(_EVERY_S)
