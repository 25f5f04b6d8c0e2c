"""Serve unchanging content, compressed with gzip, and keep what is made on demand."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources
from typing import Any, Generic, TypeVar

from cachetools import LRUCache
from fastapi import Request, Response


def read_static(name: str) -> str:
    """Return the text of a file in ``static/``."""
    return resources.files("bythebook.server").joinpath("static", name).read_text("utf-8")


class StaticFile:
    """Content with an ETag; it is compressed at the first request and kept in both forms."""

    def __init__(self, content: str, media_type: str, headers: Mapping[str, str]) -> None:
        self.content = content.encode()
        self._media_type = media_type
        self._headers = {"Vary": "Accept-Encoding", **headers}
        self._digest = hashlib.sha256(self.content).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    async def respond(self, request: Request) -> Response:
        """Return the content, or 304 if the client has it in the form that it accepts."""
        is_gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))
        # Both forms need an ETag of their own, as their bytes differ.
        tag = f'"{self._digest}-gzip"' if is_gzip else f'"{self._digest}"'
        headers = {**self._headers, "ETag": tag}
        cached = request.headers.get("if-none-match", "").split(",")
        if tag in (one.strip().removeprefix("W/") for one in cached):
            return Response(status_code=304, headers=headers)
        if is_gzip:
            headers["Content-Encoding"] = "gzip"
        content = self.compressed if is_gzip else self.content
        return Response(content, headers=headers, media_type=self._media_type)


def _accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding allows gzip: by name, else by ``*``, with a weight > 0."""
    weights = {}
    for part in header.lower().split(","):
        name, _, parameter = part.partition(";")
        weights[name.strip()] = parameter.partition("=")[2].strip() or "1"
    return weights.get("gzip", weights.get("*", "0")).strip("0.") != ""


# --- files made on demand -------------------------------------------------------------------------


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Work in progress by its key. It goes on if those who wait for it leave."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return the result of the running work with this key; without one, start it."""
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(task)


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
