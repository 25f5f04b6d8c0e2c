"""Limit the memory growth of a long-running server process; effective with glibc only."""

from __future__ import annotations

import asyncio
import ctypes
from contextlib import suppress

_EVERY_S = 60


def trim_heap() -> None:
    """Return free pages in the middle of the heap to the system.

    glibc keeps them: about 35 MB in a worker that has answered its first questions, and more later.
    """
    with suppress(AttributeError, TypeError):  # another libc; on Windows, none to load
        ctypes.CDLL(None).malloc_trim(0)


async def trim_heap_regularly() -> None:
    while True:
        await asyncio.to_thread(trim_heap)  # takes milliseconds; must not block the event loop
        await asyncio.sleep(_EVERY_S)
