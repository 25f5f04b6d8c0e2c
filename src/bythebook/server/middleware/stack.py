"""The middleware classes of access control; each wraps the next and makes one decision.

They share data of a request in ``scope["state"]``: the matching ``contract``, the ``address`` and
``owner`` (a key's id, or None), the ``caller`` for rate limits, the ``body``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.config.settings import AccessSettings as Rules
from bythebook.errors import BookError, InvalidInput, KeyReused, NotAllowed, TooLarge
from bythebook.server.contracts.wire_types import Call
from bythebook.server.middleware import addresses
from bythebook.server.middleware.api_keys import KeyRing, is_ours
from bythebook.server.middleware.rate_limit import Limiter, Places, Rule
from bythebook.server.middleware.request_body import field_of, session_of
from bythebook.server.routes import Fail, failed_call, failure

if TYPE_CHECKING:
    from bythebook.interfaces.access import ApiKey

_BODY_S = 8.0  # timeout for a body; with headers and error response, under ten
_LINGER_S, _LINGER_BYTES = 1.0, 1024 * 1024  # read from a too large body before rejecting it
_STREAM = "/chat/stream"
READER = "reader"  # the contract of the reader pages, which do not answer
_BY_SESSION = "envelope"  # the contract limited by session and address
_BODILESS = ("GET", "HEAD", "OPTIONS")


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


class RequestContext:
    """Determine the contract and the client address, for all other middleware."""

    def __init__(
        self, app: ASGIApp, *, contracts: Sequence[ContractRoute], proxies: Sequence[str]
    ) -> None:
        self._app = app
        self._contracts = contracts
        self._proxies = addresses.networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = (scope.get("client") or ("", 0))[0]
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        contract = next((c for c in self._contracts if c.is_asked(scope)), None)
        if contract is not None:
            scope["route"] = contract.route  # for the log, in case the request is rejected
        scope.setdefault("state", {}).update(
            contract=contract,
            address=addresses.client_address(peer, forwarded, self._proxies),
            owner=None,
            body=b"",
        )
        await self._app(scope, receive, send)


class ErrorResponses:
    """Convert errors of the middleware to error responses of the contract."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except BookError as error:
            if started:  # an interrupted response must not look complete
                raise
            await refuse(error, scope, receive, send)


async def refuse(error: BookError, scope: Scope, receive: Receive, send: Send) -> None:
    contract: ContractRoute | None = scope["state"]["contract"]
    answer = failure(error, failed_call(Request(scope)), contract.fail if contract else _plain)
    if isinstance(error, KeyReused):
        answer.status_code = 422  # the body is not invalid (400) but has changed
    if isinstance(error, NotAllowed):
        answer.headers["WWW-Authenticate"] = "Bearer"
    await answer(scope, receive, send)


class PlainError(BaseModel):
    message: str


def _plain(error: BookError, call: Call | None = None, /) -> tuple[int, PlainError]:
    """Return the error of a path without a contract."""
    del call
    return 413 if isinstance(error, TooLarge) else 400, PlainError(message=str(error))


class Authentication:
    """Identify the API key; reject requests without one if keys are required."""

    def __init__(self, app: ASGIApp, *, ring: KeyRing, required: bool) -> None:
        self._app = app
        self._ring = ring
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        key = await self._key(scope) if state["contract"] else None
        address = addresses.counted_as(state["address"])
        state["owner"] = key.id if key else None
        # Clients with a shared (publishable) key or without one are told apart by address.
        shared = key is None or key.origins
        state["caller"] = f"{key.id if key else 'open'} {address if shared else ''}"
        await self._app(scope, receive, send)

    async def _key(self, scope: Scope) -> ApiKey | None:
        headers = Headers(scope=scope)
        text = _presented(headers)
        required = self._required and not scope["state"]["contract"].is_public
        if not required and not is_ours(text):
            return None  # keys are optional: ignore foreign credentials
        if not text:
            raise NotAllowed(
                "An API key is needed.", hint="Send it as Authorization: Bearer or as X-API-Key."
            )
        key = await self._ring.holder(text)
        if key is None:
            raise NotAllowed(
                "This API key is not known or has been revoked.", hint="Ask for a new one."
            )
        if key.origins and headers.get("origin") not in key.origins:
            raise NotAllowed(
                "This key holds only on its own page.", hint="Use a secret key outside of it."
            )
        if key.origins and scope["method"] != "POST":
            raise NotAllowed("This key may only ask.", hint="Use a secret key, on a server.")
        return key


def _presented(headers: Headers) -> str:
    scheme, _, text = headers.get("authorization", "").partition(" ")
    bearer = text.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "").strip()


class BodyLimit:
    """Read the whole body first, with a timeout and a size limit."""

    def __init__(self, app: ASGIApp, *, largest: int, wait_s: float = _BODY_S) -> None:
        self._app = app
        self._largest = largest
        self._wait_s = wait_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _BODILESS:
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        try:
            async with asyncio.timeout(self._wait_s):
                if announced.isdecimal() and int(announced[:20]) > self._largest:
                    raise self._too_large()
                body = await self._read(receive)
        except TooLarge:
            await _let_finish(receive)
            raise
        except TimeoutError:
            raise InvalidInput("The body did not arrive in time.", hint="Send it again.") from None
        if body is None:
            return  # the client has disconnected
        scope["state"]["body"] = body
        await self._app(scope, _once(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._largest:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The body has more than {self._largest} bytes.", hint="Ask with less text."
        )


async def _let_finish(receive: Receive) -> None:
    """Read on for a while: a client that is still sending would miss the error response."""
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while dropped < _LINGER_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that yields the whole body, then the messages of the connection."""
    pieces = [body]

    async def replay() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await receive()

    return replay


class RateLimiting:
    """Apply the rate limits of the contract and report the remaining quota in headers."""

    def __init__(self, app: ASGIApp, *, rules: Rules, limiter: Limiter) -> None:
        self._app = app
        self._rules = rules
        self._limiter = limiter
        self._places = Places(rules.streams_per_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        if state["contract"] is None or self._is_exempt(state):
            await self._app(scope, receive, send)
            return
        verdict = await self._limiter.admit(self._rules_of(state))

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                MutableHeaders(scope=message).update(dict(verdict.headers))
            await send(message)

        if verdict.refusal is not None:
            await refuse(verdict.refusal, scope, receive, told)
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, told)
            return
        streamed = scope["path"] == _STREAM or field_of(state["body"], "stream") is True
        async with self._places.taken_by(state["caller"], waits=not streamed):
            await self._app(scope, receive, told)

    def _is_exempt(self, state: dict[str, Any]) -> bool:
        address = state["address"]
        at_home = address is not None and address.is_loopback and state["owner"] is None
        return at_home and not self._rules.limit_loopback

    def _rules_of(self, state: dict[str, Any]) -> list[Rule]:
        """Return the limits: envelope by session and address, every other contract by client.

        Reading pages and searching as you type are no questions and have a limit of their own.
        """
        if state["contract"].name == READER:
            return [Rule("reader", state["caller"], self._rules.per_reader)]
        if state["contract"].name != _BY_SESSION:
            each = "key" if state["owner"] else "address"
            return [Rule(each, state["caller"], self._rules.per_key)]
        who = addresses.counted_as(state["address"])
        by_address = Rule("address", who, self._rules.per_address)
        session = session_of(state["body"])
        if session is None:
            return [by_address]
        of_session = Rule("session", f"{state['owner']} {session}", self._rules.per_session)
        return [of_session, by_address]
