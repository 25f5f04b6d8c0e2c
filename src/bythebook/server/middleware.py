"""ASGI middleware that every request passes: its contract, client, errors and body."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.contracts.errors import Fail
from bythebook.contracts.fields import DEGRADED_HEADER, degraded
from bythebook.errors import BookError, InvalidInput, TooLarge
from bythebook.server.requests import answer_error
from bythebook.types import VectorState

READER = "reader"  # tag of the routes of the book's pages, which do not answer


@dataclass(frozen=True, slots=True)
class ContractRoute:
    """A route with its contract and the contract's error format."""

    name: str  # the tag of its routes: query, ask, envelope, plain, chat, openai …
    route: BaseRoute
    fail: Fail
    is_public: bool = False  # needs no key even if keys are required

    def is_asked(self, scope: Scope) -> bool:
        """Return whether the route matches the path, even if not the method."""
        return self.route.matches(scope)[0] is not Match.NONE


class RequestMiddleware:
    """Find the contract and the client of a request; answer the errors of other middleware."""

    def __init__(
        self, app: ASGIApp, *, contracts: Sequence[ContractRoute], proxies: Sequence[str]
    ) -> None:
        self._app = app
        self._contracts = contracts
        self._proxies = networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_head = scope["method"] == "HEAD"
        if is_head:  # wherever GET is allowed
            scope["method"] = "GET"
        state = self._share(scope)
        sent = Headers(scope=scope)
        unread = sent.get("content-length", "0") != "0" or "transfer-encoding" in sent
        started = False

        async def receive_noted() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def send_completed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": list(message.get("headers", ()))}
                _complete(MutableHeaders(scope=message), state)
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self._app(scope, receive_noted, send_completed)
        except BookError as error:
            if started:  # an interrupted response must not look complete
                raise
            if unread and not await _drain(receive):  # the connection must not be used again
                state["headers"]["Connection"] = "close"
            response = await answer_error(Request(scope), error)
            await response(scope, receive, send_completed)

    def _share(self, scope: Scope) -> dict[str, Any]:
        contract = next((each for each in self._contracts if each.is_asked(scope)), None)
        if contract is not None:
            scope["route"] = contract.route  # for the log, in case the request is rejected
        peer = (scope.get("client") or ("", 0))[0]
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        state: dict[str, Any] = scope.setdefault("state", {})
        state |= {
            "contract": contract,
            "address": client_address(peer, forwarded, self._proxies),
            "owner": None,
            "body": b"",
            "headers": {},
            "began": time.perf_counter(),
        }
        return state


def _complete(headers: MutableHeaders, state: dict[str, Any]) -> None:
    """Add the headers that are the same for all contracts: a reply is for its reader only."""
    headers.update(state["headers"])
    if state["contract"] is not None:
        headers.setdefault("Cache-Control", "no-store")
    value = degraded(state.get("vectors", VectorState.READY))
    if value is not None:
        headers[DEGRADED_HEADER] = value


# --- addresses ------------------------------------------------------------------------------------

# Each proxy appends the address it was called from, so the list is read from the right: an entry
# is trusted only if a trusted proxy wrote it. Entries further left come from the client, who can
# forge them.

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


def client_address(
    peer: str, forwarded: Sequence[str], trusted: Sequence[Network]
) -> Address | None:
    """Return the right-most address that is not a trusted proxy; None if the peer has none.

    ``forwarded`` contains the values of X-Forwarded-For, one per header line.
    """
    address = read_address(peer)
    hops = [hop for line in forwarded for hop in line.split(",")]
    while hops and address is not None and any(address in network for network in trusted):
        before = read_address(hops.pop())
        if before is None:  # "unknown" or invalid: only the proxy is known
            break
        address = before
    return address


def read_address(text: str) -> Address | None:
    """Parse an address as proxies write it: bare, quoted, in brackets, with a port or a zone."""
    bare = text.strip().strip('"')
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def counted_as(address: Address | None) -> str:
    """Return the rate limit key of an address: IPv6 by /64, as a client has all 2⁶⁴ addresses."""
    if address is None:
        return "nowhere"
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on ``host``."""
    address = read_address(host)
    return host == "localhost" if address is None else address.is_loopback


# --- bodies ---------------------------------------------------------------------------------------

_TIMEOUT_S = 7.0  # for a body; with headers, ``_drain`` and error response, under ten
_LINGER_S, _LINGER_BYTES = 1.0, 1024 * 1024  # read from a too large body before rejecting it


class BodyLimitMiddleware:
    """Read the whole body of a request first, with a timeout and a size limit."""

    def __init__(self, app: ASGIApp, *, largest: int, timeout_s: float = _TIMEOUT_S) -> None:
        self._app = app
        self._largest = largest
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self._largest:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await self._read(receive)
        except TimeoutError:
            raise InvalidInput("The body did not arrive in time.", hint="Send it again.") from None
        scope["state"]["body"] = body
        pieces = [body]

        async def replay() -> Message:
            if pieces:
                return {"type": "http.request", "body": pieces.pop(), "more_body": False}
            return await receive()

        await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":  # or its chunks cannot be parsed
                raise InvalidInput("The body is incomplete or malformed.", hint="Send it again.")
            body += message.get("body", b"")
            if len(body) > self._largest:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The body has more than {self._largest} bytes.", hint="Ask with less text."
        )


async def _drain(receive: Receive) -> bool:
    """Read on for a while, as a client that is still sending would miss the error response.

    Return whether the body has ended, so that the connection can be used again.
    """
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while dropped < _LINGER_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return True
    return False
