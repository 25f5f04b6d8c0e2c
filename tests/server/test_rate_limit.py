"""Rate limits by key, session and address, and the limit of concurrent requests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bythebook.access_stores import AccessStores
from bythebook.config.settings import AccessSettings as Rules
from bythebook.errors import ServiceError
from bythebook.interfaces.access import RateCount
from bythebook.providers.rate_limits import FallbackCounter, MemoryCounter
from tests.server.access_fixtures import AWAY, PAGE, client_of, new_key


async def test_exactly_100_of_1000_requests_are_allowed_per_key(stores: AccessStores) -> None:
    keys = [(await new_key(stores))[0] for _ in range(2)]
    async with client_of(stores=stores, address="127.0.0.1") as client:
        for text in keys:
            asked = [client.post("/chat/run", headers={"X-API-Key": text}) for _ in range(1000)]
            answers = await asyncio.gather(*asked)
            assert sorted(a.status_code for a in answers) == [200] * 100 + [429] * 900
            refused = next(a for a in answers if a.status_code == 429)
            assert 1 <= int(refused.headers["retry-after"]) <= 60
            assert refused.json()["contract"] == "chat"


async def test_headers_report_remaining_quota_and_reset_time() -> None:
    async with client_of(Rules(per_key=3)) as client:
        answers = [await client.post("/chat/run") for _ in range(4)]
    assert [a.headers["ratelimit-remaining"] for a in answers] == ["2", "1", "0", "0"]
    for answer in answers:
        assert answer.headers["ratelimit-limit"] == "3"
        assert answer.headers["ratelimit-policy"] == '"address";q=3;w=60'
        assert 1 <= int(answer.headers["ratelimit-reset"]) <= 60


async def test_envelope_is_limited_by_session_and_address() -> None:
    """What the session's limit rejects does not count for the address."""
    async with client_of() as client:
        for expected in (["10", "10"], ["10", "20"]):  # the limit with the least quota left
            body = {"session_id": str(uuid.uuid4())}
            answers = [await client.post("/query", json=body) for _ in range(12)]
            assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 2
            reported = [answers[n].headers["ratelimit-limit"] for n in (0, 9)]
            assert reported[0] == expected[0]
        assert (await client.post("/query", json={})).status_code == 429
    async with client_of() as client:
        codes = [(await client.post("/query", json={})).status_code for _ in range(22)]
        assert codes == [200] * 20 + [429] * 2


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"session_id": 1}', b"[" * 30_000, b"\xff"])
async def test_body_without_a_session_is_limited_by_address_only(body: bytes) -> None:
    async with client_of() as client:
        assert (await client.post("/query", content=body)).status_code == 200


async def test_loopback_without_a_key_is_exempt_unless_set() -> None:
    for address in ("127.0.0.1", "::1"):
        async with client_of(Rules(per_key=1), address=address) as client:
            for _ in range(5):
                answer = await client.post("/chat/run")
                assert answer.status_code == 200 and "ratelimit-limit" not in answer.headers
    async with client_of(Rules(per_key=1, limit_loopback=True), address="127.0.0.1") as client:
        assert [(await client.post("/chat/run")).status_code for _ in range(2)] == [200, 429]


async def test_clients_of_one_publishable_key_are_limited_by_address(stores: AccessStores) -> None:
    text, _ = await new_key(stores, PAGE)
    headers = {"X-API-Key": text, "Origin": PAGE}
    for address in ("192.0.2.1", "192.0.2.2"):
        async with client_of(Rules(per_key=1), stores, address=address) as client:
            codes = [(await client.post("/chat/run", headers=headers)).status_code for _ in "12"]
            assert codes == [200, 429]


@pytest.mark.parametrize(
    ("address", "forwarded"), [(AWAY, "1.2.3.{}"), ("10.0.0.1", f"1.2.3.{{}}, {AWAY}")]
)
async def test_forged_forwarded_header_does_not_evade_the_limit(
    address: str, forwarded: str
) -> None:
    rules = Rules(per_key=3, trusted_proxies=("10.0.0.0/8",))
    async with client_of(rules, address=address) as client:
        headers = [{"X-Forwarded-For": forwarded.format(n)} for n in range(5)]
        codes = [(await client.post("/chat/run", headers=each)).status_code for each in headers]
    assert codes == [200] * 3 + [429] * 2


async def test_addresses_are_stored_as_digests_only(stores: AccessStores) -> None:
    counted: list[str] = []

    class WritingCounter(MemoryCounter):
        async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
            counted.append(key)
            return await super().take(key, limit=limit, seconds=seconds)

    async with client_of(stores=replace(stores, counter=WritingCounter())) as client:
        await client.post("/query", json={"session_id": str(uuid.uuid4())})
    assert len(set(counted)) == 2
    assert all(AWAY not in key and len(key) == 64 for key in counted)


async def test_at_most_five_streams_per_client_and_ended_ones_free_their_slot(
    stores: AccessStores,
) -> None:
    text, _ = await new_key(stores)
    go = asyncio.Event()
    open_now = 0

    async def stream(request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            nonlocal open_now
            open_now += 1
            await go.wait()
            yield b"event: done\n\n"
            open_now -= 1

        return StreamingResponse(events(), media_type="text/event-stream")

    async with client_of(stores=stores, answer=stream) as client:
        headers = {"X-API-Key": text}
        tasks = [
            asyncio.create_task(client.post("/chat/stream", headers=headers)) for _ in range(40)
        ]
        for _, refused in zip(range(35), asyncio.as_completed(tasks), strict=False):
            assert (await refused).status_code == 429
        assert open_now == 5
        go.set()
        codes = sorted([(await task).status_code for task in tasks])
        assert codes == [200] * 5 + [429] * 35
        assert (await client.post("/chat/stream", headers=headers)).status_code == 200


async def test_requests_that_are_no_streams_wait_for_a_slot() -> None:
    inside = most = 0

    async def counted(request: Request) -> Response:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        return JSONResponse({})

    async with client_of(Rules(streams_per_key=2), answer=counted) as client:
        answers = await asyncio.gather(*(client.post("/chat/run") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert (inside, most) == (0, 2)


async def test_unavailable_counter_store_falls_back_to_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now, asked, broken = 0.0, 0, True

    class FragileCounter(MemoryCounter):
        async def take(self, key: str, *, limit: int, seconds: int) -> RateCount:
            nonlocal asked
            asked += 1
            if broken:
                raise ServiceError("The Redis that counts did not answer.")
            return await super().take(key, limit=limit, seconds=seconds)

    counter = FallbackCounter(FragileCounter(), MemoryCounter(), clock=lambda: now)
    allowed = [(await counter.take("k", limit=3, seconds=60)).allowed for _ in range(5)]
    assert allowed == [True] * 3 + [False] * 2, "questions go on, and are still counted"
    assert asked == 1, "and do not wait for it again and again"
    now += 6
    await counter.take("k", limit=3, seconds=60)
    assert (asked, len(caplog.records)) == (2, 1)
    broken = False
    now += 6
    assert (await counter.take("k", limit=3, seconds=60)).allowed
    assert asked == 3
