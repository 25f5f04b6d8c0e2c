"""Deadlines, failover between the nodes of a cluster, and what is told of their errors."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.providers.qdrant.nodes import Nodes, Server

_THREE = Server(tuple(f"http://127.0.0.1:{port}" for port in (1, 2, 3)))


class Told:
    """What each node says in turn: a status, or that it has what was asked for."""

    def __init__(self, *statuses: int) -> None:
        self._left = list(statuses)

    async def __call__(self, _: AsyncQdrantClient) -> str:
        status = self._left.pop(0)
        if status != 200:
            raise UnexpectedResponse(status, "", b"", httpx.Headers())
        return "found"


@pytest.mark.parametrize("statuses", [(200,), (404, 200), (500, 404, 200)])
async def test_the_next_node_is_tried_until_one_answers(statuses: tuple[int, ...]) -> None:
    nodes = Nodes(_THREE)
    assert await nodes.call(Told(*statuses), seconds=60) == "found"
    await nodes.close()


@pytest.mark.parametrize(
    ("statuses", "error"),
    [
        ((404, 404, 404), IndexDamaged),
        ((404, 404, 503), StoreFailed),
        ((503, 404, 404), StoreFailed),
        ((401,), StoreFailed),
    ],
)
async def test_a_collection_is_missing_only_if_no_node_has_it(
    statuses: tuple[int, ...], error: type[BookError]
) -> None:
    nodes = Nodes(_THREE)
    with pytest.raises(error):
        await nodes.call(Told(*statuses), seconds=60)
    await nodes.close()


async def test_server_that_sends_no_result_is_not_taken_for_qdrant() -> None:
    async def ask(_: AsyncQdrantClient) -> str:
        raise AssertionError("Get collection aliases returned None")  # as the client does

    nodes = Nodes(_THREE)
    with pytest.raises(StoreFailed, match="not a Qdrant server"):
        await nodes.call(ask, seconds=60)
    await nodes.close()


async def test_a_node_that_hangs_leaves_time_for_the_next_and_is_not_asked_first_again() -> None:
    asked: list[AsyncQdrantClient] = []

    async def ask(client: AsyncQdrantClient) -> str:
        asked.append(client)
        if client is asked[0]:
            await asyncio.sleep(3600)
        return "found"

    nodes = Nodes(_THREE)
    assert await nodes.call(ask, seconds=3) == "found"
    assert await nodes.call(ask, seconds=60) == "found"
    assert asked[1] is asked[2]
    await nodes.close()


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("hangs", "said"), [(True, "did not answer within 200 ms"), (False, "cannot be reached")]
)
async def test_without_any_node_the_error_comes_in_time_and_names_no_address(
    hangs: bool, said: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, and no more
        port = server.getsockname()[1]
        if not hangs:
            server.close()
        nodes = Nodes(Server((f"http://127.0.0.1:{port}",)))
        with pytest.raises(StoreFailed, match=said) as failure:
            await nodes.call(lambda node: node.get_collections(), seconds=0.2 if hangs else 60)
        await nodes.close()
    assert "127.0.0.1" not in str(failure.value)
