"""A connection and its headers in, the address of whoever asks out.

Each proxy appends the address it was called from, so that the list is read from its right end: as
long as a proxy of ours wrote an entry, it is believed. What stands further left was written by the
caller, who may write anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


def client_address(
    peer: str, forwarded: Sequence[str], trusted: Sequence[Network]
) -> Address | None:
    """The right-most address that no proxy of ours has; None for a peer without one.

    ``forwarded`` are the values of X-Forwarded-For, one for each header line.
    """
    address = read_address(peer)
    hops = [hop for line in forwarded for hop in line.split(",")]
    while hops and address is not None and _is_in(address, trusted):
        before = read_address(hops.pop())
        if before is None:  # "unknown", or nonsense: the proxy is all we know
            break
        address = before
    return address


def read_address(text: str) -> Address | None:
    """An address as proxies write it: bare, in quotes, in brackets, with a port or a zone."""
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
    """One name for one caller: whoever has one IPv6 address has the other 2⁶⁴ of its network."""
    if address is None:
        return "nowhere"
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach a server that listens there."""
    address = read_address(host)
    return host == "localhost" if address is None else address.is_loopback


def _is_in(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in trusted)
