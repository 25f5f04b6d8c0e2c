"""Scripts of other sites cannot read answers: allowed origins are compared exactly."""

from __future__ import annotations

import httpx
import pytest
from tests.server.access_fixtures import client_of, new_key

from bythebook.access_stores import open_access_stores
from bythebook.config.settings import AccessSettings as Rules
from reliability.rows import Rows

_ALLOWED = ("https://book.example", "http://localhost:3000", "https://key.example")
_STRANGERS = (
    "null",
    "",
    "*",
    "https://book.example.evil.example",
    "https://evilbook.example",
    "https://book.example:443",
    "https://book.example:8443",
    "https://book.example/",
    "https://BOOK.example",
    "HTTPS://book.example",
    "http://book.example",
    "https://www.book.example",
    "https://book.exampl",
    "http://localhost",
    "http://localhost:30000",
    "http://127.0.0.1:3000",
    "https://book.example https://evil.example",
    "https://bооk.example".encode().decode("latin-1"),
    "file://",
    "https://book.example%00.evil.example",
)


def _faults(origin: str, preflight: httpx.Response, answer: httpx.Response) -> list[str]:
    allowed = origin in _ALLOWED
    faults = []
    for response in (preflight, answer):
        named = response.headers.get("access-control-allow-origin")
        if named != (origin if allowed else None):
            faults.append(f"{origin!r} was told {named!r}")
        if "Origin" not in response.headers["vary"]:
            faults.append(f"{origin!r}: caches are not told that the answer varies")
        if "access-control-allow-credentials" in response.headers:
            faults.append(f"{origin!r} may send credentials")
    if preflight.status_code != (200 if allowed else 403):
        faults.append(f"{origin!r}: the preflight was {preflight.status_code}")
    if allowed:
        assert preflight.headers["access-control-max-age"] == "600"
        assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
        assert "POST" in preflight.headers["access-control-allow-methods"]
    return faults


@pytest.mark.smoke
async def test_origins_are_exact(rows: Rows) -> None:
    row = rows.add(
        "S6",
        "Answers read by pages of other sites (CORS)",
        requirement="0 foreign origins allowed; never `*`",
    )
    stores = open_access_stores()
    await new_key(stores, "https://key.example")
    rules = Rules(origins=("https://book.example", "http://localhost:3000"))
    faults: list[str] = []
    async with client_of(rules, stores, needs_keys=True) as client:
        for origin in (*_ALLOWED, *_STRANGERS):
            headers = {b"origin": origin.encode("latin-1")}
            asks = {b"access-control-request-method": b"POST", **headers}
            preflight = await client.options("/chat/run", headers=asks)
            faults += _faults(origin, preflight, await client.post("/chat/run", headers=headers))
    row.record(
        f"{len(_STRANGERS)} origins that are nearly allowed (null, suffix, port, case, scheme) and "
        f"{len(_ALLOWED)} that are, each with a preflight and a request",
        "; ".join(faults) or "0 strangers allowed, every allowed page served",
        passed=not faults,
    )
