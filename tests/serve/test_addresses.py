"""Who is calling, by what proxies say and what callers claim."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.serve.addresses import client_address, counted_as, is_loopback, networks

_PROXIES = networks(["10.0.0.0/8", "192.0.2.7/32", "2001:db8:aaaa::/48"])
_CALLER = "198.51.100.9"


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        # Nobody in front: what the caller writes does not matter.
        (_CALLER, [], _CALLER),
        (_CALLER, ["1.2.3.4"], _CALLER),
        (_CALLER, ["127.0.0.1"], _CALLER),
        (_CALLER, ["10.0.0.1"], _CALLER),
        (_CALLER, ["1.2.3.4, 10.0.0.1"], _CALLER),
        ("127.0.0.1", ["1.2.3.4"], "127.0.0.1"),
        ("192.0.2.8", ["1.2.3.4"], "192.0.2.8"),
        # One proxy of ours.
        ("10.0.0.1", [_CALLER], _CALLER),
        ("192.0.2.7", [_CALLER], _CALLER),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [f"1.2.3.4, {_CALLER}"], _CALLER),
        ("10.0.0.1", [f"1.2.3.4,5.6.7.8,{_CALLER}"], _CALLER),
        ("10.0.0.1", [f"127.0.0.1, {_CALLER}"], _CALLER),
        ("10.0.0.1", ["1.2.3.4", _CALLER], _CALLER),
        ("10.0.0.1", [_CALLER, "1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", [f"  {_CALLER}\t"], _CALLER),
        # Several of ours.
        ("10.0.0.1", [f"{_CALLER}, 10.9.9.9"], _CALLER),
        ("10.0.0.1", [f"1.2.3.4, {_CALLER}, 10.9.9.9, 10.8.8.8"], _CALLER),
        ("10.0.0.1", [f"10.7.7.7, {_CALLER}, 10.9.9.9"], _CALLER),
        ("10.0.0.1", ["10.7.7.7, 10.9.9.9"], "10.7.7.7"),
        # What is no address ends the chain at the last proxy that could be believed.
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["1.2.3.4, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["1.2.3.4, , "], "10.0.0.1"),
        ("10.0.0.1", ["1.2.3.4, 999.1.1.1"], "10.0.0.1"),
        ("10.0.0.1", ["_hidden, 10.9.9.9"], "10.9.9.9"),
        # The ways in which an address is written.
        ("10.0.0.1", [f"{_CALLER}:52100"], _CALLER),
        ("10.0.0.1", [f'"{_CALLER}"'], _CALLER),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
        ("10.0.0.1", [f"::ffff:{_CALLER}"], _CALLER),
        ("::ffff:10.0.0.1", [_CALLER], _CALLER),
        ("2001:db8:aaaa::5", [_CALLER], _CALLER),
        ("2001:db8:bbbb::5", [_CALLER], "2001:db8:bbbb::5"),
    ],
)
def test_the_right_most_address_that_is_not_ours(
    peer: str, forwarded: list[str], expected: str
) -> None:
    assert client_address(peer, forwarded, _PROXIES) == ip_address(expected)


_addresses = st.ip_addresses().map(str)
_hops = st.lists(st.one_of(_addresses, st.text(max_size=20)), max_size=6).map(",".join)


@given(peer=st.ip_addresses(v=4), forwarded=st.lists(_hops, max_size=3))
def test_nobody_but_a_proxy_of_ours_is_believed(peer: object, forwarded: list[str]) -> None:
    if any(peer in network for network in _PROXIES if network.version == 4):
        return
    assert client_address(str(peer), forwarded, _PROXIES) == peer


@given(
    claimed=st.lists(_hops, max_size=3),
    caller=st.ip_addresses(v=4).filter(lambda a: not any(a in n for n in _PROXIES[:2])),
)
def test_what_a_caller_claims_changes_nothing(claimed: list[str], caller: object) -> None:
    """The proxy appends the caller, whatever stood there before."""
    assert client_address("10.0.0.1", [*claimed, str(caller)], _PROXIES) == caller


@given(forwarded=st.lists(st.text(), max_size=4), peer=st.text())
def test_no_header_is_too_strange(forwarded: list[str], peer: str) -> None:
    address = client_address(peer, forwarded, _PROXIES)
    assert counted_as(address) != ""
    assert address is None or ip_address(str(address)) == address


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_all_addresses_of_an_ipv6_network_count_as_one(address: IPv6Address, host: int) -> None:
    neighbour = IPv6Address(int(address) >> 64 << 64 | host)
    assert counted_as(address) == counted_as(neighbour)
    assert counted_as(address).endswith("/64")


def test_ipv4_addresses_count_alone() -> None:
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
def test_loopback_is_reached_by_this_machine_alone(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
