"""Convert errors of the middleware to error responses of the contract."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.errors import BookError, KeyReused, NotAllowed
from bythebook.server.contracts.errors import sentence_of, status_of
from bythebook.server.middleware.context import ContractRoute
from bythebook.server.middleware.messages import drain, edit_headers
from bythebook.server.routes import Call, failed_call, failure


class ErrorMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        headers = Headers(scope=scope)
        unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

        async def receive_noted() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive_noted, send_noted)
        except BookError as error:
            if started:  # an interrupted response must not look complete
                raise
            if unread and not await drain(receive):  # the client must not use the connection again
                send = edit_headers(send, lambda answer: answer.update({"Connection": "close"}))
            await send_error(error, scope, receive, send)


async def send_error(error: BookError, scope: Scope, receive: Receive, send: Send) -> None:
    contract: ContractRoute | None = scope["state"]["contract"]
    response = failure(error, failed_call(Request(scope)), contract.fail if contract else fail)
    if isinstance(error, KeyReused):
        response.status_code = 422  # the body is not invalid (400) but has changed
    if isinstance(error, NotAllowed):
        response.headers["WWW-Authenticate"] = "Bearer"
    await response(scope, receive, send)


class PageError(BaseModel):
    message: str


def fail(error: BookError, _: Call | None = None, /) -> tuple[int, PageError]:
    """Return the error of the pages, the reader and the report, which have no contract."""
    return status_of(error), PageError(message=sentence_of(error))
