"""Cache of the reader's responses, which are constant within a generation of the book."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cachetools import LRUCache
from fastapi import Request, Response

from bythebook.server.static_file import StaticFile

READER_HEADERS = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}
_CACHED = 256  # responses


class FileCache:
    """Responses by generation and name; each has an ETag, and is made at the first request."""

    def __init__(self) -> None:
        self._files: LRUCache[tuple[str, str], StaticFile] = LRUCache(_CACHED)

    async def respond(
        self,
        request: Request,
        generation: str,
        name: str,
        make: Callable[[], Awaitable[StaticFile]],
    ) -> Response:
        key = generation, name
        if (file := self._files.get(key)) is None:
            file = self._files[key] = await make()
        return await file.respond(request)
