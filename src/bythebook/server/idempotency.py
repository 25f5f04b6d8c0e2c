"""Middleware for ``Idempotency-Key``: a repeated request gets the stored response."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.errors import InvalidInput, KeyReused, ServiceError
from bythebook.interfaces.access import HELD_EVERY_S, ClaimState, KeptReply, ReplyClaim
from bythebook.server.access import digest

if TYPE_CHECKING:
    from bythebook.providers.sql.access import SqlReplies

_WAIT_S = 30.0  # for the response to the first request
_POLL_S = 0.1  # interval of asking whether the first request has ended
_LONGEST_KEY = 255
_LARGEST_REPLY = 1024 * 1024
_NOT_STORED = "envelope"  # "PostgreSQL does not store answer text or retrieved chunks"
_LAST_EVENTS = (b"event: done\n", b"\ndata: [DONE]\n")  # of a complete stream

_log = logging.getLogger(__name__)


class IdempotencyMiddleware:
    """Process each key of a client once. Only successful responses are stored; retry the others.

    For the envelope contract only the fact of a response is stored: repeats are processed again.

    Storing is best effort: while the store is unavailable, requests are processed as if they had no
    key. Operations that must not run twice even then can use ``scope["state"]["request"]``, which
    is the same for each repeat of a request.
    """

    def __init__(self, app: ASGIApp, *, replies: SqlReplies, pepper: bytes) -> None:
        self._app = app
        self._replies = replies
        self._pepper = pepper
        self._claims: dict[str, str] = {}  # key -> token, of the requests in progress here
        self._renewing: asyncio.Task[None] | None = None
        self._is_store_down = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, state = Headers(scope=scope), scope["state"]
        given = headers.get("idempotency-key")
        # A resumed stream is identified by Last-Event-ID.
        applies = scope["method"] == "POST" and "last-event-id" not in headers
        if given is None or not applies or state["contract"] is None:
            await self._app(scope, receive, send)
            return
        if not (0 < len(given) <= _LONGEST_KEY and given.isascii() and given.isprintable()):
            raise InvalidInput(
                "The Idempotency-Key cannot be used.",
                hint=f"Send 1 to {_LONGEST_KEY} plain characters, such as a UUID.",
            )
        key = digest(self._pepper, f"{state['caller']}\n{given}")
        head = f"{scope['method']} {scope['path']}?".encode() + scope.get("query_string", b"")
        fingerprint = hashlib.sha256(head + b"\n" + state["body"]).hexdigest()
        state["request"] = hashlib.sha256(f"{key} {fingerprint}".encode()).hexdigest()
        may_store = state["contract"].name != _NOT_STORED
        claim = await self._claim(key, fingerprint)
        if claim is not None and claim.reply is None:
            recorder = _Recorder(send, may_store=may_store)
            await self._process(key, claim.token, scope, receive, recorder)
        elif claim is not None and claim.reply is not None and may_store:
            await _replay(claim.reply, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _claim(self, key: str, fingerprint: str) -> ReplyClaim | None:
        """Return a claim to process the request, or its stored reply; None if the store is down."""
        try:
            async with asyncio.timeout(_WAIT_S):
                while True:
                    claim = await self._replies.claim(key, fingerprint)
                    self._is_store_down = False
                    if claim.state is ClaimState.OTHER:
                        raise KeyReused(
                            "This Idempotency-Key came with another request before.",
                            hint="Use a new key for a new request.",
                        )
                    if claim.state is not ClaimState.RUNNING:
                        return claim
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise ServiceError(
                "The first request with this Idempotency-Key is still being answered.",
                hint="Try again later.",
                retry_after=1.0,
            ) from None
        except ServiceError as error:
            self._log_down(error)
            return None

    async def _process(
        self, key: str, token: str, scope: Scope, receive: Receive, recorder: _Recorder
    ) -> None:
        """Process a claimed request; store its response, or release the claim."""
        self._claims[key] = token
        self._renewing = self._renewing or asyncio.create_task(self._renew())
        try:
            await self._app(scope, receive, recorder)
        finally:
            del self._claims[key]
            if not self._claims:
                self._renewing.cancel()
                self._renewing = None
            reply = recorder.reply()
            try:
                if reply is None:
                    await self._replies.release(key, token)
                else:
                    await self._replies.keep(key, token, reply)
            except ServiceError as error:
                self._log_down(error)

    async def _renew(self) -> None:
        """Renew the claims periodically; if this process dies, another one can take them over."""
        while True:
            await asyncio.sleep(HELD_EVERY_S)
            with suppress(ServiceError):
                await self._replies.hold(dict(self._claims))

    def _log_down(self, error: ServiceError) -> None:
        if not self._is_store_down:
            _log.warning("idempotency store unavailable, replays disabled: %s", error.message)
        self._is_store_down = True


class _Recorder:
    """Forward a response and record it."""

    def __init__(self, send: Send, *, may_store: bool) -> None:
        self._send = send
        self._may_store = may_store
        self._start: Message = {}
        self._body = bytearray()
        self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            if len(self._body) <= _LARGEST_REPLY:
                self._body += message.get("body", b"")
            self._ended = not message.get("more_body", False)
        await self._send(message)

    def reply(self) -> KeptReply | None:
        """Return the response to store; None unless it is complete and successful."""
        if not self._ended or len(self._body) > _LARGEST_REPLY:
            return None
        status, body = self._start["status"], bytes(self._body)
        headers = Headers(raw=self._start["headers"])
        # An interrupted stream has status 200, too; only its last event shows the difference.
        is_stream = "event-stream" in headers.get("content-type", "")
        is_whole = not is_stream or any(end in body for end in _LAST_EVENTS)
        if not (200 <= status < 300 and is_whole):
            return None
        if not self._may_store:
            return KeptReply(status, (), b"")
        return KeptReply(status, tuple(headers.items()), body)


async def _replay(reply: KeptReply, scope: Scope, receive: Receive, send: Send) -> None:
    response = Response(reply.body, reply.status)
    response.raw_headers = Headers(dict(reply.headers)).raw
    response.headers["Idempotent-Replayed"] = "true"
    await response(scope, receive, send)
