"""Headers do not change a client's address unless a trusted proxy sent them."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from bythebook.server.middleware import client_address, counted_as, networks
from reliability.rows import Rows

_PROXIES = networks(["10.0.0.0/8", "192.0.2.7/32", "2001:db8:aaaa::/48"])
_CALLER = "198.51.100.9"
VARIANTS: tuple[tuple[str, list[str], str], ...] = (
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
)


def _claim(dice: random.Random) -> str:
    kinds = (
        str(IPv4Address(dice.getrandbits(32))),
        str(IPv6Address(dice.getrandbits(128))),
        f"10.{dice.randrange(256)}.0.1",
        "127.0.0.1",
        dice.choice(["unknown", "", "-", "::1", "[::1]:1", "1.2.3", "\x00", "%", "0x7f.1"]),
    )
    return dice.choice([",", ", "]).join(dice.choices(kinds, k=dice.randrange(1, 6)))


@pytest.mark.smoke
def test_who_calls_is_not_what_callers_say(rows: Rows) -> None:
    row = rows.add(
        "S8", "Client addresses forged in headers", requirement="0 forged addresses believed"
    )
    wrong = [
        (peer, forwarded)
        for peer, forwarded, expected in VARIANTS
        if client_address(peer, forwarded, _PROXIES) != ip_address(expected)
    ]
    dice, forged = random.Random(8), rows.count(2_000, 50_000)
    for _ in range(forged):
        claims = [_claim(dice) for _ in range(dice.randrange(3))]
        caller = f"203.0.113.{dice.randrange(256)}"
        direct = client_address(caller, claims, _PROXIES)
        # A proxy appends whom it was called by, whatever stood there before.
        behind = client_address("10.0.0.1", [*claims, caller], _PROXIES)
        if {direct, behind} != {ip_address(caller)}:
            wrong.append((caller, claims))
    neighbours = {
        counted_as(ip_address(f"2001:db8:1:2::{dice.getrandbits(16):x}")) for _ in range(1000)
    }
    row.record(
        f"{len(VARIANTS)} header variants and {forged} random forgeries, direct and behind a "
        "proxy of ours; 1,000 addresses of one IPv6 network",
        f"{len(wrong)} believed; the network counts as {len(neighbours)} caller",
        passed=not wrong and len(neighbours) == 1,
    )
