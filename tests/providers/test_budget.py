"""Daily token budget: never exceeded, also by concurrent calls and processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bythebook.errors import WriterFailed
from bythebook.providers.http.errors import ErrorCode, ProviderError
from bythebook.providers.llm.budget import Budget
from tests.providers.hosted import drafted, writer_at
from tests.providers.loopback import Loopback, chat, refuse

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def _reserved(budget: Budget, tokens: int) -> bool:
    try:
        await budget.reserve(tokens)
    except ProviderError as fault:
        assert fault.code is ErrorCode.OVER_BUDGET
        return False
    return True


def test_processes_share_the_daily_budget(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from bythebook.providers.llm.budget import Budget\n"
        "from bythebook.providers.http.errors import ProviderError\n"
        "async def main():\n"
        "    budget, given = Budget(Path(sys.argv[1]), 1000), 0\n"
        "    for _ in range(60):\n"
        "        try:\n"
        "            await budget.reserve(10)\n"
        "            given += 1\n"
        "        except ProviderError:\n"
        "            pass\n"
        "    print(given)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "tokens.db")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(process.communicate(timeout=300)[0]) for process in running) == 100


async def test_unused_tokens_are_released_and_the_budget_is_reset_daily(
    tmp_path: Path,
) -> None:
    now = [_NOON]
    budget = Budget(tmp_path / "tokens.db", 100, now=lambda: now[0])
    day = await budget.reserve(90)
    assert not await _reserved(budget, 20)
    await budget.settle(day, 90, 15)
    assert await budget.spent() == 15
    assert await _reserved(budget, 85)
    with pytest.raises(ProviderError) as failure:
        await budget.reserve(1)
    assert failure.value.retry_after == 12 * 3600
    now[0] = _NOON.replace(day=2)
    assert await _reserved(budget, 100)
    await budget.close()


async def test_without_a_writable_count_no_tokens_are_reserved(tmp_path: Path) -> None:
    budget = Budget(tmp_path / "not" / "there" / "tokens.db", 100)
    with pytest.raises(ProviderError) as failure:
        await budget.reserve(1)
    assert failure.value.code is ErrorCode.UNCOUNTED
    await budget.close()


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(lambda request: chat("A kite.", cost=(40, 10))) as provider:
        yield provider


@pytest.mark.loopback
async def test_fifty_concurrent_questions_stay_within_the_budget(
    provider: Loopback, tmp_path: Path
) -> None:
    budget = Budget(tmp_path / "tokens.db", 1000)
    async with writer_at(provider.url, budget=budget, max_output_tokens=100) as writer:

        async def ask() -> bool:
            try:
                await drafted(writer)
            except WriterFailed as error:
                assert "used up" in error.message
                assert error.retry_after is not None
                assert error.retryable
                return False
            return True

        answered = sum(await asyncio.gather(*(ask() for _ in range(50))))
        while await ask():  # what was set aside and not needed lets more through
            answered += 1
        assert answered == len(provider.requests)
        assert await budget.spent() == 50 * answered
        assert 850 < await budget.spent() <= 1000


@pytest.mark.loopback
async def test_a_rejected_call_costs_no_tokens(provider: Loopback, tmp_path: Path) -> None:
    provider.script = lambda request: refuse(401)
    budget = Budget(tmp_path / "tokens.db", 1000)
    async with writer_at(provider.url, budget=budget) as writer:
        with pytest.raises(WriterFailed, match="did not accept"):
            await drafted(writer)
        assert await budget.spent() == 0
