"""The cache of the reader's responses: one rendering for all who ask for it."""

import asyncio

import pytest
from starlette.requests import Request

from bythebook.errors import StoreFailed
from bythebook.server.static_files import FileCache, StaticFile, render


def _request() -> Request:
    return Request({"type": "http", "method": "GET", "headers": []})


async def test_a_page_is_made_once_for_all_who_wait_for_it() -> None:
    cache, made, go_on = FileCache(), [], asyncio.Event()

    async def make() -> StaticFile:
        made.append("page")
        await go_on.wait()
        return StaticFile("text", "text/plain", {})

    waiting = [
        asyncio.create_task(cache.respond(_request(), "one", "page", make)) for _ in range(8)
    ]
    await asyncio.sleep(0)
    waiting[0].cancel()  # who leaves takes nothing from the others
    go_on.set()
    responses = await asyncio.gather(*waiting[1:])
    assert [response.body for response in responses] == [b"text"] * 7
    await cache.respond(_request(), "one", "page", make)
    assert made == ["page"]
    await cache.respond(_request(), "two", "page", make)
    assert made == ["page", "page"]


async def test_a_failure_is_not_kept() -> None:
    cache, failures = FileCache(), [StoreFailed("away")]

    async def make() -> StaticFile:
        if failures:
            raise failures.pop()
        return StaticFile("text", "text/plain", {})

    with pytest.raises(StoreFailed):
        await cache.respond(_request(), "one", "page", make)
    assert (await cache.respond(_request(), "one", "page", make)).body == b"text"


async def test_long_renderings_leave_the_threads_of_questions_free() -> None:
    from threading import Event

    go_on = Event()
    pages = [asyncio.create_task(render(lambda: go_on.wait(60))) for _ in range(64)]
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "answered"), 30) == "answered"
    finally:
        go_on.set()
    assert all(await asyncio.gather(*pages))
