"""A request repeated with one Idempotency-Key is answered once."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import httpx
import pytest
from tests.server.server_fixtures import serving

from reliability.rows import Rows

pytestmark = pytest.mark.real

_AT_ONCE = 50


async def test_a_repeated_request_is_answered_once(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R20",
        "Repeat a request with one Idempotency-Key",
        requirement="one generation, also across a crash; another body gets 422",
    )
    rounds = rows.count(2, 20)
    keys = [{"Idempotency-Key": str(uuid.uuid4())} for _ in range(rounds)]
    first: list[bytes] = []
    doubled = unlike = accepted = 0
    with serving(tmp_path, workers=2, counts="database") as server:
        for key in keys:
            async with httpx.AsyncClient(base_url=server.url, headers=key, timeout=60) as client:
                answers = await asyncio.gather(
                    *(client.post("/chat/run", json={"message": "?"}) for _ in range(_AT_ONCE))
                )
                changed = await client.post("/chat/run", json={"message": "!"})
            assert {answer.status_code for answer in answers} == {200}
            doubled += sum("idempotent-replayed" not in each.headers for each in answers) - 1
            unlike += len({answer.content for answer in answers}) - 1
            accepted += changed.status_code != 422
            first.append(answers[0].content)
        server.kill()
    with serving(tmp_path, workers=2, counts="database") as server:
        for key, before in zip(keys, first, strict=True):
            async with httpx.AsyncClient(base_url=server.url, headers=key, timeout=60) as client:
                again = await client.post("/chat/run", json={"message": "?"})
            doubled += "idempotent-replayed" not in again.headers
            unlike += again.content != before
    row.record(
        f"{rounds} keys, {_AT_ONCE} requests at once on two workers for each, all killed, and "
        "repeated on new ones",
        f"{doubled} answered a second time, {unlike} replies unlike the first, {accepted} other "
        "bodies accepted",
        passed=doubled == unlike == accepted == 0,
    )
