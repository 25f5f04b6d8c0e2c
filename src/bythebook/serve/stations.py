"""The stations of the door: each an ASGI application around the next, with one thing to decide.

What they know of a request they leave in ``scope["state"]``: the ``contract`` that is asked, the
``address`` and the ``owner`` (a key's id, or None), the ``caller`` who is counted, the ``body``.
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

from bythebook.errors import BookError, InvalidInput, KeyReused, NotAllowed, TooLarge
from bythebook.serve import addresses
from bythebook.serve.bodies import field_of, session_of
from bythebook.serve.contracts.wire import Call
from bythebook.serve.keys import KeyRing, is_ours
from bythebook.serve.limits import Limiter, Places, Rule
from bythebook.serve.routes import Fail, failed_call, failure
from bythebook.settings import Door as Rules

if TYPE_CHECKING:
    from bythebook.ports import ApiKey

_BODY_S = 8.0  # for a body to arrive: with its head, and its refusal, within ten
_LINGER_S, _LINGER_BYTES = 1.0, 1024 * 1024  # for one that is too large to end
_STREAM = "/chat/stream"
READER = "reader"  # the contract of the pages, beside those that answer
_BY_SESSION = "envelope"  # the contract that counts sessions and addresses
_BODILESS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Contract:
    """What the door knows of a route: whose it is, and how that says no."""

    name: str  # the tag of its routes: query, ask, envelope, plain, chat, openai …
    route: BaseRoute
    fail: Fail
    is_public: bool = False  # open without a key even where keys are asked for

    def is_asked(self, scope: Scope) -> bool:
        """Asked is what the route itself would answer, or refuse for its method."""
        return self.route.matches(scope)[0] is not Match.NONE


class Arrival:
    """Notes what every station needs: the contract that is asked, and by which address."""

    def __init__(
        self, app: ASGIApp, *, contracts: Sequence[Contract], proxies: Sequence[str]
    ) -> None:
        self._app = app
        self._contracts = contracts
        self._proxies = addresses.networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = (scope.get("client") or ("", 0))[0]
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        contract = next((c for c in self._contracts if c.is_asked(scope)), None)
        if contract is not None:
            scope["route"] = contract.route  # for the log, should the request come no further
        scope.setdefault("state", {}).update(
            contract=contract,
            address=addresses.client_address(peer, forwarded, self._proxies),
            owner=None,
            body=b"",
        )
        await self._app(scope, receive, send)


class Shape:
    """Turns an error of the door into an answer of the contract."""

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
            if started:  # an answer that broke off must not look like one that ended
                raise
            await refuse(error, scope, receive, send)


async def refuse(error: BookError, scope: Scope, receive: Receive, send: Send) -> None:
    contract: Contract | None = scope["state"]["contract"]
    answer = failure(error, failed_call(Request(scope)), contract.fail if contract else _plain)
    if isinstance(error, KeyReused):
        answer.status_code = 422  # not that the body is wrong, as with 400: it changed
    if isinstance(error, NotAllowed):
        answer.headers["WWW-Authenticate"] = "Bearer"
    await answer(scope, receive, send)


class PlainError(BaseModel):
    message: str


def _plain(error: BookError, call: Call | None = None, /) -> tuple[int, PlainError]:
    """For addresses that belong to no contract."""
    del call
    return 413 if isinstance(error, TooLarge) else 400, PlainError(message=str(error))


class Owner:
    """Names the key that asks; without one, only an open door lets in."""

    def __init__(self, app: ASGIApp, *, ring: KeyRing, required: bool) -> None:
        self._app = app
        self._ring = ring
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        key = await self._key(scope) if state["contract"] else None
        address = addresses.counted_as(state["address"])
        state["owner"] = key.id if key else None
        # Who shares a key with others, or has none, is told apart by address.
        shared = key is None or key.origins
        state["caller"] = f"{key.id if key else 'open'} {address if shared else ''}"
        await self._app(scope, receive, send)

    async def _key(self, scope: Scope) -> ApiKey | None:
        headers = Headers(scope=scope)
        text = _presented(headers)
        required = self._required and not scope["state"]["contract"].is_public
        if not required and not is_ours(text):
            return None  # an open door does not mind what it does not know
        if not text:
            raise NotAllowed(
                "An API key is needed.", cure="Send it as Authorization: Bearer or as X-API-Key."
            )
        key = await self._ring.holder(text)
        if key is None:
            raise NotAllowed(
                "This API key is not known or has been revoked.", cure="Ask for a new one."
            )
        if key.origins and headers.get("origin") not in key.origins:
            raise NotAllowed(
                "This key holds only on its own page.", cure="Use a secret key outside of it."
            )
        if key.origins and scope["method"] != "POST":
            raise NotAllowed("This key may only ask.", cure="Use a secret key, on a server.")
        return key


def _presented(headers: Headers) -> str:
    scheme, _, text = headers.get("authorization", "").partition(" ")
    bearer = text.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "").strip()


class Body:
    """Takes a body in before anyone works on it: whole, in time, and not too large."""

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
            raise InvalidInput("The body did not arrive in time.", cure="Send it again.") from None
        if body is None:
            return  # nobody is there to be answered
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
            f"The body has more than {self._largest} bytes.", cure="Ask with less text."
        )


async def _let_finish(receive: Receive) -> None:
    """Who is still sending does not read: a refusal would be lost with the connection."""
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while dropped < _LINGER_BYTES:
                message = await receive()
                dropped += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def _once(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever else the connection says."""
    pieces = [body]

    async def replay() -> Message:
        if pieces:
            return {"type": "http.request", "body": pieces.pop(), "more_body": False}
        return await receive()

    return replay


class Limits:
    """Holds the limits of the contract that is asked, and says how much is left of them."""

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
        """Envelope counts sessions and addresses; every other contract counts its caller.

        Who reads and searches as he types asks no question: that is counted by itself.
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
