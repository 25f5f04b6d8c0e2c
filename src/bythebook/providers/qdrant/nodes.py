"""Calls to a Qdrant server or cluster, with timeout and failover to the next node.

Errors are translated to ``BookError`` and contain neither address nor key.
"""

from __future__ import annotations

import asyncio
import logging
import math
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import (
    ApiException,
    ResponseHandlingException,
    UnexpectedResponse,
)

from bythebook.errors import RETRY_AFTER_S, BookError, StoreFailed
from bythebook.interfaces.store import Filters, index_missing
from bythebook.providers.http.transport import Transport

T = TypeVar("T")

_log = logging.getLogger(__name__)
_LONGEST_S = 120  # the client's own timeout, above every timeout given to call()
# A server closes connections idle for 5 s: one that is nearly as old is not reused.
_KEPT = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=3)
_NOT_KEPT = httpx.Limits(max_connections=100, max_keepalive_connections=0)
# The client asserts that a response has a result, and other servers send none.
_FAILURES = (ApiException, QdrantException, OSError, ValueError, AssertionError)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Server:
    """Addresses of the nodes, and how a collection is distributed over them."""

    urls: tuple[str, ...]
    api_key: str | None = field(default=None, repr=False)
    replication: int = 1
    shards: int = 1
    timeout_s: float = 1.0


class Nodes:
    """One client per address; the one that answered last is tried first."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._clients: list[AsyncQdrantClient] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._good = 0

    async def call(
        self,
        work: Callable[[AsyncQdrantClient], Awaitable[T]],
        *,
        seconds: float | None = None,
    ) -> T:
        """Return the first answer of a node; by default, within ``server.timeout_s``."""
        loop = asyncio.get_running_loop()
        clients = self._clients_on(loop)
        seconds = self._server.timeout_s if seconds is None else seconds
        deadline, first = loop.time() + seconds, self._good
        failures: list[Exception] = []
        for tried in range(len(clients)):
            node = (first + tried) % len(clients)
            # A hanging node may use its share of the time; a node that fails at once leaves its
            # share.
            share = (deadline - loop.time()) / (len(clients) - tried)
            try:
                async with asyncio.timeout(share):
                    answer = await work(clients[node])
            except _FAILURES as error:
                failures.append(error)
                if not _another_may_answer(error):
                    break
            else:
                self._good = node
                return answer
        # The index is missing only if no node has it: one that has just restarted may not know it.
        failure = next((error for error in failures if not _is_missing(error)), failures[-1])
        raise _translate(failure, seconds) from failure

    async def close(self) -> None:
        clients, self._clients, self._loop = self._clients, [], None
        for client in clients:
            await client.close()

    def _clients_on(self, loop: asyncio.AbstractEventLoop) -> list[AsyncQdrantClient]:
        # Connections belong to the event loop that opened them; a script may run several in turn.
        if self._loop is not loop:
            self._clients = [_connect(url, self._server.api_key) for url in self._server.urls]
            self._loop = loop
        return self._clients


def _connect(url: str, api_key: str | None) -> AsyncQdrantClient:
    parts = urlsplit(url)
    if api_key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        _log.warning("the key of the Qdrant server is sent unencrypted: use an https address")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # logged above, and not for loopback addresses
        # The version check would open a separate connection, on a thread.
        return AsyncQdrantClient(
            url=url,
            api_key=api_key,
            timeout=_LONGEST_S,
            check_compatibility=False,
            transport=Transport(
                limits=_NOT_KEPT if parts.hostname in _LOOPBACK else _KEPT,
                verify=parts.scheme == "https",  # loading certificates is slow, skip it for http
                trust_env=True,  # for custom certificates
            ),
        )


def to_filter(filters: Filters, fields: Mapping[str, str] | None = None) -> models.Filter | None:
    """Return a condition on payload fields, which ``fields`` may rename."""
    names = fields or {}
    must = [
        models.FieldCondition(key=names.get(name, name), match=models.MatchValue(value=value))
        for name, value in filters.items()
    ]
    return models.Filter(must=must) if must else None


def _is_missing(error: Exception) -> bool:
    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def _another_may_answer(error: Exception) -> bool:
    if isinstance(error, UnexpectedResponse):
        return _is_missing(error) or (error.status_code or 500) >= 500
    return isinstance(error, ResponseHandlingException | OSError)


def _translate(error: Exception, seconds: float) -> BookError:
    if isinstance(error, TimeoutError):
        return StoreFailed(
            f"The Qdrant server did not answer within {math.ceil(seconds * 1000)} ms.",
            hint="Try again; if this persists, check the server or raise qdrant.timeout_s.",
            timed_out=True,
            retry_after=RETRY_AFTER_S,
        )
    if isinstance(error, UnexpectedResponse):
        return _translate_status(error.status_code or 0)
    source = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(source, ValueError | AssertionError):
        return StoreFailed(
            "This is not a Qdrant server, or not a supported version.",
            hint="Check QDRANT_URL and the server's version.",
        )
    if isinstance(error, ResponseHandlingException | OSError):
        return StoreFailed(
            "The Qdrant server cannot be reached.",
            hint="Start it, or check QDRANT_URL.",
            retry_after=RETRY_AFTER_S,
        )
    return _busy()


def _translate_status(status: int) -> BookError:
    if status == 404:
        return index_missing()
    if status in (401, 403):
        return StoreFailed("The Qdrant server refuses the key.", hint="Check QDRANT_API_KEY.")
    if status == 429:
        return _busy()
    return StoreFailed(
        f"The Qdrant server answered with the error {status}.",
        hint="See its log; the book served before is unchanged.",
        retry_after=RETRY_AFTER_S,
    )


def _busy() -> StoreFailed:
    return StoreFailed(
        "The Qdrant server is too busy.", hint="Try again in a moment.", retry_after=RETRY_AFTER_S
    )
