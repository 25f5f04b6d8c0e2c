"""Run blocking work on a worker thread without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


async def offload(work: Callable[[], T]) -> T:
    """Run the work on a worker thread and return its result.

    A thread cannot be stopped: a cancelled caller still waits for the work to finish, so that a
    lock is never released before the work that it protects is done.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


@asynccontextmanager
async def offloaded(held: AbstractContextManager[None]) -> AsyncIterator[None]:
    """Enter and exit a blocking context manager on worker threads."""
    stack = ExitStack()
    try:
        await offload(lambda: stack.enter_context(held))
        yield
    finally:
        await offload(stack.close)
