"""Access control of a server: API keys, rate limits, allowed origins and stored replies.

``middleware/stack.py`` applies it to the requests.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import APIRouter

from bythebook.config.sections import AccessSettings
from bythebook.errors import ConfigurationError, ServiceError
from bythebook.server.middleware.addresses import is_loopback
from bythebook.server.middleware.api_keys import KeyRing, pepper_of
from bythebook.server.middleware.context import ContractRoute
from bythebook.server.routes import Fail
from bythebook.wiring import AccessStores, open_access_stores

if TYPE_CHECKING:
    from bythebook.config.settings import Settings


def contracts_of(
    routers: Sequence[APIRouter], *, is_public: bool = False
) -> Iterator[ContractRoute]:
    """Yield the routes that have a contract; health, metrics and static pages have none."""
    for router in routers:
        for route in router.routes:
            fail: Fail | None = getattr(route, "fail", None)
            if fail is not None:
                yield ContractRoute(str(router.tags[0]), route, fail, is_public)


def needs_keys(settings: Settings) -> bool:
    """Return whether API keys are required: by default, if other machines can reach the server."""
    if settings.access.keys != "auto":
        return settings.access.keys == "required"
    return is_reachable(settings)


def is_reachable(settings: Settings) -> bool:
    """Return whether other machines can reach the server, directly or through a proxy."""
    return not is_loopback(settings.server.host) or bool(settings.access.trusted_proxies)


@dataclass
class AccessControl:
    """The rules of access, and the stores behind them."""

    rules: AccessSettings
    stores: AccessStores
    needs_keys: bool
    pepper: bytes  # secret of all digests
    ring: KeyRing = field(init=False)

    def __post_init__(self) -> None:
        self.ring = KeyRing(self.stores.keys, self.pepper)

    async def origins(self) -> frozenset[str]:
        """Return the origins whose pages may use this server."""
        try:
            return frozenset(self.rules.origins) | await self.ring.origins()
        except ServiceError:
            return frozenset(self.rules.origins)

    async def close(self) -> None:
        for store in (self.stores.keys, self.stores.counter, self.stores.replies):
            await store.close()


def open_access(settings: Settings) -> AccessControl:
    required = needs_keys(settings)
    try:
        pepper = pepper_of(settings)
    except ConfigurationError:
        if required:
            raise
        pepper = secrets.token_bytes(32)  # without keys, no digest must outlive this process
    return AccessControl(settings.access, open_access_stores(settings), required, pepper)


def open_local_access() -> AccessControl:
    """Open access control for local use: no keys, no persistent counters or replies."""
    return AccessControl(
        AccessSettings(), open_access_stores(), needs_keys=False, pepper=secrets.token_bytes(32)
    )
