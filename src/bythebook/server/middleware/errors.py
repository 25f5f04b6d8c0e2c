"""Convert errors of the middleware to error responses of the contract."""

from __future__ import annotations

from pydantic import BaseModel
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.errors import BookError, KeyReused, NotAllowed, TooLarge
from bythebook.server.middleware.context import ContractRoute
from bythebook.server.routes import Call, failed_call, failure


class ErrorMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except BookError as error:
            if started:  # an interrupted response must not look complete
                raise
            await send_error(error, scope, receive, send)


async def send_error(error: BookError, scope: Scope, receive: Receive, send: Send) -> None:
    contract: ContractRoute | None = scope["state"]["contract"]
    response = failure(error, failed_call(Request(scope)), contract.fail if contract else _plain)
    if isinstance(error, KeyReused):
        response.status_code = 422  # the body is not invalid (400) but has changed
    if isinstance(error, NotAllowed):
        response.headers["WWW-Authenticate"] = "Bearer"
    await response(scope, receive, send)


class UnroutedError(BaseModel):
    message: str


def _plain(error: BookError, _: Call | None = None, /) -> tuple[int, UnroutedError]:
    """Return the error of a path without a contract."""
    return 413 if isinstance(error, TooLarge) else 400, UnroutedError(message=str(error))
