"""One key cannot use up the model: concurrency, requests a minute and tokens a day are limited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
from tests.server.access_fixtures import AWAY, access_of, new_key
from tests.support.samples import small_book
from tests.support.writers import library_with

from bythebook.access_stores import open_access_stores
from bythebook.config.settings import AccessSettings as Rules
from bythebook.providers.http.errors import ErrorCode, ProviderError
from bythebook.providers.llm.budget import Budget
from bythebook.server.app import create_app
from bythebook.types import Evidence, Message, Question
from reliability.rows import Rows

_ASKED = "At how many degrees does a kettle boil water?"
_WAYS = (
    ("/chat/run", {"message": _ASKED}),
    ("/chat/stream", {"message": _ASKED}),
    ("/ask", {"text": _ASKED}),
    ("/query", {"text": _ASKED}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": _ASKED}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": _ASKED}], "stream": True}),
)


class Slow:
    """Model that counts concurrent calls."""

    name = "fake:slow"

    def __init__(self) -> None:
        self.calls = self.open = self.most = 0

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        self.calls += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await asyncio.sleep(0.02)
            yield f"{evidence.hits[0].passage.unit_text(evidence.hits[0].passage.units[0])} [1]"
        finally:
            self.open -= 1


async def _asked_at_once(folder: Path, requests: int) -> tuple[Slow, list[int]]:
    model, stores = Slow(), open_access_stores()
    library = await library_with(small_book(folder), lambda _: model)
    key, _ = await new_key(stores)
    app = create_app(library, access=access_of(Rules(), stores, needs_keys=True))
    transport = httpx.ASGITransport(app, client=(AWAY, 50_000))
    headers = {"X-API-Key": key}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://server", headers=headers, timeout=60
    ) as client:
        ways = [_WAYS[number % len(_WAYS)] for number in range(requests)]
        asked = [client.post(path, json=body) for path, body in ways]
        return model, [answer.status_code for answer in await asyncio.gather(*asked)]


async def _spent(file: Path, daily: int, each: int, calls: int) -> int:
    budget = Budget(file, daily)

    async def reserve() -> None:
        try:
            await budget.reserve(each)
        except ProviderError as fault:
            assert fault.code is ErrorCode.OVER_BUDGET

    await asyncio.gather(*(reserve() for _ in range(calls)))
    spent = await budget.spent()
    await budget.close()
    return spent


async def test_one_key_cannot_use_up_the_model(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S9",
        "One client uses up the model (unbounded consumption)",
        requirement=(
            "at most 5 calls running and 100 a minute; the daily token budget is never exceeded"
        ),
    )
    model, codes = await _asked_at_once(tmp_path / "docs", 1_000)
    calls = rows.count(300, 1_000)
    spent = await _spent(tmp_path / "tokens.db", 1_000, 30, calls)
    row.record(
        f"1,000 questions of one key at once over {len(_WAYS)} contracts and streams; {calls} "
        "calls of 30 tokens at once against a day of 1,000",
        f"{model.most} calls under way at most, {model.calls} made, {codes.count(429)} refused; "
        f"{spent} tokens spent",
        passed=model.most <= 5
        and 0 < model.calls <= 100
        and spent == 990
        and set(codes) == {200, 429},
    )
