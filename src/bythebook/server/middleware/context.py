"""Determine the contract and the client address of a request, for all other middleware.

The middleware shares data of a request in ``scope["state"]``: the matching ``contract``, the
``address`` and ``owner`` (a key's id, or None), the ``caller`` for rate limits, the ``body``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.server.middleware import addresses
from bythebook.server.routes import Fail


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


class RequestContextMiddleware:
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
