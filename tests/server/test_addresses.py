"""Who is calling, by what proxies say and what callers claim."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.server.middleware import client_address, counted_as, is_loopback, networks

_PROXIES = networks(["10.0.0.0/8", "192.0.2.7/32", "2001:db8:aaaa::/48"])


_addresses = st.ip_addresses().map(str)
_hops = st.lists(st.one_of(_addresses, st.text(max_size=20)), max_size=6).map(",".join)


@given(peer=st.ip_addresses(v=4), forwarded=st.lists(_hops, max_size=3))
def test_only_trusted_proxies_set_the_client_address(peer: object, forwarded: list[str]) -> None:
    if any(peer in network for network in _PROXIES if network.version == 4):
        return
    assert client_address(str(peer), forwarded, _PROXIES) == peer


@given(
    claimed=st.lists(_hops, max_size=3),
    caller=st.ip_addresses(v=4).filter(lambda a: not any(a in n for n in _PROXIES[:2])),
)
def test_entries_written_by_the_client_are_ignored(claimed: list[str], caller: object) -> None:
    """The proxy appends the caller, whatever stood there before."""
    assert client_address("10.0.0.1", [*claimed, str(caller)], _PROXIES) == caller


@given(forwarded=st.lists(st.text(), max_size=4), peer=st.text())
def test_any_header_text_is_accepted(forwarded: list[str], peer: str) -> None:
    address = client_address(peer, forwarded, _PROXIES)
    assert counted_as(address) != ""
    assert address is None or ip_address(str(address)) == address


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_all_addresses_of_an_ipv6_network_count_as_one(address: IPv6Address, host: int) -> None:
    neighbour = IPv6Address(int(address) >> 64 << 64 | host)
    assert counted_as(address) == counted_as(neighbour)
    assert counted_as(address).endswith("/64")


def test_every_ipv4_address_has_its_own_limit() -> None:
    assert counted_as(ip_address("192.0.2.1")) != counted_as(ip_address("192.0.2.2"))
    assert counted_as(None) == "nowhere"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("book.example", False),
    ],
)
def test_loopback_hosts_are_recognised(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
