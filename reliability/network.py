"""Record the network use of a piece of work: every name look-up and connection attempt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
_watchers: list[list[str]] = []


def _audit(event: str, args: tuple[object, ...]) -> None:
    if _watchers and event in _EVENTS:
        asked = f"{event} {args[1:] if event in ('socket.connect', 'socket.sendto') else args[0]}"
        for seen in _watchers:
            seen.append(asked)


sys.addaudithook(_audit)  # for good: there is no way to take one back


@contextmanager
def watched() -> Iterator[list[str]]:
    """Record while the block runs."""
    seen: list[str] = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)
