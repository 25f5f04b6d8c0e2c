"""Determine the contract and the client address of a request, for all other middleware.

The middleware shares data of a request in ``scope["state"]``: the matching ``contract``, the
``address`` and ``owner`` (a key's id, or None), the ``caller`` for rate limits, the ``body``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

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
        self._proxies = networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = (scope.get("client") or ("", 0))[0]
        forwarded = Headers(scope=scope).getlist("x-forwarded-for")
        contract = next((c for c in self._contracts if c.is_asked(scope)), None)
        if contract is not None:
            scope["route"] = contract.route  # for the log, in case the request is rejected
        scope.setdefault("state", {}).update(
            contract=contract,
            address=client_address(peer, forwarded, self._proxies),
            owner=None,
            body=b"",
        )
        await self._app(scope, receive, send)


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
    while hops and address is not None and _is_in(address, trusted):
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


def _is_in(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)
