"""Cache of the reader's responses, which are constant within a generation of the book."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from cachetools import LRUCache
from fastapi import Request, Response

from bythebook.server.single_flight import SingleFlight
from bythebook.server.static_file import StaticFile

T = TypeVar("T")

READER_HEADERS = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}
_CACHED = 256  # responses
# Threads that no question needs: two, so that other pages do not wait for one long page.
_RENDERING = ThreadPoolExecutor(2, "rendering")


async def render(work: Callable[[], T]) -> T:
    """Run the work on a thread of the reader and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_RENDERING, work)


class FileCache:
    """Responses by generation and name; each has an ETag, and is made at the first request."""

    def __init__(self) -> None:
        self._files: LRUCache[tuple[str, str], StaticFile] = LRUCache(_CACHED)
        self._making = SingleFlight[tuple[str, str], StaticFile]()

    async def respond(
        self,
        request: Request,
        generation: str,
        name: str,
        make: Callable[[], Awaitable[StaticFile]],
    ) -> Response:
        key = generation, name

        async def kept() -> StaticFile:
            file = self._files[key] = await make()
            await render(lambda: file.compressed)  # not on the event loop, which would stand still
            return file

        file = self._files.get(key) or await self._making.run(key, kept)
        return await file.respond(request)
