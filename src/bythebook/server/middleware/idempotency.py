"""Middleware for ``Idempotency-Key``: a repeated request gets the stored response."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.errors import InvalidInput, KeyReused, ServiceError
from bythebook.interfaces.access import HELD_EVERY_S, ClaimState, KeptReply, ReplyClaim, ReplyStore
from bythebook.server.middleware.api_keys import digest

_WAIT_S = 30.0  # for the response to the first request
_LOOK_AGAIN_S = 0.1  # interval for polling the state of another worker
_LONGEST_KEY = 255
_LARGEST_REPLY = 1024 * 1024
_UNKEPT = "envelope"  # "PostgreSQL does not store answer text or retrieved chunks"
_ENDS = (b"event: done\n", b"\ndata: [DONE]\n")  # of a complete stream

_log = logging.getLogger(__name__)


class IdempotencyMiddleware:
    """Process each key of a client once. Only successful responses are stored; retry the others.

    For the envelope contract only the fact of a response is stored: repeats are processed again.

    Storing is best effort: while the store is unavailable, requests are processed as if they had no
    key. Operations that must not run twice even then can use ``scope["state"]["request"]``, which
    is the same for each repeat of a request.
    """

    def __init__(self, app: ASGIApp, *, replies: ReplyStore, pepper: bytes) -> None:
        self._app = app
        self._replies = replies
        self._pepper = pepper
        self._running: dict[str, asyncio.Event] = {}
        self._held: dict[str, str] = {}  # tokens of the claims of this process, by key
        self._holding: asyncio.Task[None] | None = None
        self._is_away = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, state = Headers(scope=scope), scope["state"]
        given = headers.get("idempotency-key")
        # A resumed stream is identified by Last-Event-ID.
        asks = scope["method"] == "POST" and "last-event-id" not in headers
        if given is None or not asks or state["contract"] is None:
            await self._app(scope, receive, send)
            return
        if not (0 < len(given) <= _LONGEST_KEY and given.isascii() and given.isprintable()):
            raise InvalidInput(
                "The Idempotency-Key cannot be used.",
                hint=f"Send 1 to {_LONGEST_KEY} plain characters, such as a UUID.",
            )
        key = digest(self._pepper, f"{state['caller']}\n{given}")
        fingerprint = _fingerprint(scope, state["body"])
        state["request"] = hashlib.sha256(f"{key} {fingerprint}".encode()).hexdigest()
        claim = await self._claim(key, fingerprint)
        if claim is None:
            await self._app(scope, receive, send)
        elif claim.reply is not None and not _is_unkept(scope):
            await _give_again(claim.reply, send)
        elif claim.reply is not None:
            await self._app(scope, receive, send)
        else:
            await self._answer(key, claim.token, scope, receive, send)

    async def _claim(self, key: str, fingerprint: str) -> ReplyClaim | None:
        """Return a claim to process the request, or its stored reply; None if the store is down."""
        try:
            async with asyncio.timeout(_WAIT_S):
                while True:
                    claim = await self._replies.claim(key, fingerprint)
                    self._is_away = False
                    if claim.state is ClaimState.OTHER:
                        raise KeyReused(
                            "This Idempotency-Key came with another request before.",
                            hint="Use a new key for a new request.",
                        )
                    if claim.state is not ClaimState.RUNNING:
                        return claim
                    await self._until_done(key)
        except TimeoutError:
            raise ServiceError(
                "The first request with this Idempotency-Key is still being answered.",
                hint="Try again later.",
                retry_after=1.0,
            ) from None
        except ServiceError as error:
            self._note(error)
            return None

    async def _until_done(self, key: str) -> None:
        if (running := self._running.get(key)) is not None:
            await running.wait()
        else:
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _answer(
        self, key: str, token: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        done = self._running[key] = asyncio.Event()
        recorder = _Recorder(send)
        try:
            with self._hold(key, token):
                await self._app(scope, receive, recorder)
        finally:
            try:
                reply = recorder.reply()
                if reply is not None and _is_unkept(scope):
                    reply = KeptReply(reply.status, (), b"")
                await self._settle(key, token, reply)
            finally:
                del self._running[key]
                done.set()

    @contextmanager
    def _hold(self, key: str, token: str) -> Iterator[None]:
        self._held[key] = token
        if self._holding is None:
            self._holding = asyncio.create_task(self._go_on_holding())
        try:
            yield
        finally:
            del self._held[key]
            if not self._held:
                self._holding.cancel()
                self._holding = None

    async def _go_on_holding(self) -> None:
        """Renew the claims periodically; if this process dies, another one can take them over."""
        while True:
            await asyncio.sleep(HELD_EVERY_S)
            with suppress(ServiceError):
                await self._replies.hold(dict(self._held))

    async def _settle(self, key: str, token: str, reply: KeptReply | None) -> None:
        try:
            if reply is None:
                await self._replies.release(key, token)
            else:
                await self._replies.keep(key, token, reply)
        except ServiceError as error:
            self._note(error)

    def _note(self, error: ServiceError) -> None:
        if not self._is_away:
            _log.warning("requests are not told from repeated ones: %s", error.message)
        self._is_away = True


def _is_unkept(scope: Scope) -> bool:
    """Return whether the contract forbids stored answers, so that repeats are processed again."""
    return bool(scope["state"]["contract"].name == _UNKEPT)


def _fingerprint(scope: Scope, body: bytes) -> str:
    head = f"{scope['method']} {scope['path']}?".encode() + scope.get("query_string", b"")
    return hashlib.sha256(head + b"\n" + body).hexdigest()


class _Recorder:
    """Forward a response and record it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: dict[str, Any] = {}
        self._body = bytearray()
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = dict(message)
        elif message["type"] == "http.response.body":
            if len(self._body) <= _LARGEST_REPLY:
                self._body += message.get("body", b"")
            self._ended = not message.get("more_body", False)
        await self._send(message)

    def reply(self) -> KeptReply | None:
        """Return the response to store; None unless it is complete and successful."""
        if not self._ended or len(self._body) > _LARGEST_REPLY:
            return None
        status, headers = self._start["status"], self._start.get("headers", [])
        pairs = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        body = bytes(self._body)
        streamed = any(n.lower() == "content-type" and "event-stream" in v for n, v in pairs)
        # An interrupted stream has status 200, too; only its last event shows the difference.
        whole = not streamed or any(end in body for end in _ENDS)
        went_well = 200 <= status < 300 and whole
        return KeptReply(status, pairs, body) if went_well else None


async def _give_again(reply: KeptReply, send: Send) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    headers = MutableHeaders(raw=pairs)
    headers["Idempotent-Replayed"] = "true"
    await send({"type": "http.response.start", "status": reply.status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": reply.body})
