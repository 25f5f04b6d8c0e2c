"""The application in, the application behind its door out: who may ask, how often, how much.

Each station is a small ASGI application of its own; ``Door.wrap`` says in which order a request
passes them. What a station refuses leaves in the shape of the contract that was asked.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.assemble import DoorStores, open_door_stores
from bythebook.errors import ConfigurationError, ServiceError
from bythebook.serve.addresses import is_loopback
from bythebook.serve.cors import Cors
from bythebook.serve.keys import KeyRing, pepper_of
from bythebook.serve.limits import Limiter
from bythebook.serve.repeats import Repeats
from bythebook.serve.routes import Fail
from bythebook.serve.stations import Arrival, Body, Contract, Limits, Owner, Shape
from bythebook.settings import Door as Rules

if TYPE_CHECKING:
    from bythebook.settings import Settings


def contracts_of(routers: Sequence[APIRouter], *, is_public: bool = False) -> Iterator[Contract]:
    """The routes that ask the book; health, metrics and the page have no contract."""
    for router in routers:
        for route in router.routes:
            fail: Fail | None = getattr(route, "fail", None)
            if fail is not None:
                yield Contract(str(router.tags[0]), route, fail, is_public)


def needs_keys(settings: Settings) -> bool:
    """Whether asking needs a key: by default, where other machines can reach the server."""
    if settings.door.keys != "auto":
        return settings.door.keys == "required"
    return is_reachable(settings)


def is_reachable(settings: Settings) -> bool:
    """Whether other machines can reach the server, by itself or through a proxy."""
    return not is_loopback(settings.server.host) or bool(settings.door.trusted_proxies)


class Door:
    def __init__(
        self, rules: Rules, stores: DoorStores, *, needs_keys: bool, pepper: bytes
    ) -> None:
        self._rules = rules
        self._stores = stores
        self._needs_keys = needs_keys
        self._pepper = pepper
        self._ring = KeyRing(stores.keys, pepper)

    def wrap(self, app: ASGIApp, contracts: Sequence[Contract]) -> ASGIApp:
        """The stations, inside out: a request passes the last one first."""
        limiter = Limiter(self._stores.counter, self._pepper)
        inner: ASGIApp = Repeats(app, replies=self._stores.replies, pepper=self._pepper)
        inner = Limits(inner, rules=self._rules, limiter=limiter)
        inner = Body(inner, largest=self._rules.body_bytes)
        inner = Owner(inner, ring=self._ring, required=self._needs_keys)
        inner = Shape(inner)
        inner = Cors(inner, origins=self._origins)
        inner = Arrival(inner, contracts=contracts, proxies=self._rules.trusted_proxies)

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            await (inner if scope["type"] == "http" else app)(scope, receive, send)

        return door

    async def close(self) -> None:
        for store in (self._stores.keys, self._stores.counter, self._stores.replies):
            await store.close()

    async def _origins(self) -> frozenset[str]:
        try:
            return frozenset(self._rules.origins) | await self._ring.origins()
        except ServiceError:
            return frozenset(self._rules.origins)


def open_door(settings: Settings) -> Door:
    required = needs_keys(settings)
    try:
        pepper = pepper_of(settings)
    except ConfigurationError:
        if required:
            raise
        pepper = secrets.token_bytes(32)  # nothing to recognise beyond this process
    stores = open_door_stores(settings)
    return Door(settings.door, stores, needs_keys=required, pepper=pepper)


def open_here() -> Door:
    """For this machine alone: no keys, nothing counted, nothing kept beyond the process."""
    return Door(Rules(), open_door_stores(), needs_keys=False, pepper=secrets.token_bytes(32))
