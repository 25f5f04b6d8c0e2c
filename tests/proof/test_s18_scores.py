"""What an answer tells of its making: calibrated scores where a contract has them, and no more.

Similarities and vectors would tell an attacker how to write a page that is found. They stay here;
a score is the odds that a passage answers, made of five signals and of what else was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from bythebook.library import Library
from bythebook.model import Hit, Question
from bythebook.serve.app import create_app
from tests.proof.ledger import Ledger
from tests.samples import small_book
from tests.serve.driver import events_of
from tests.writers import Model, library_with

_ASKED = (
    "At how many degrees does a kettle boil water?",
    "What lifts a kite?",
    "When does it switch itself off?",
    "Who won the chess match in 1972?",
)
_WAYS = (
    ("S0", "/query", "text"),
    ("S1", "/ask", "text"),
    ("S1", "/search", "text"),
    ("S2", "/api/v2/query", "query"),
    ("S3", "/api/v1/query", "query"),
    ("S4", "/chat/run", "message"),
    ("S4", "/chat/stream", "message"),
)
_WITHOUT = ("S0", "S2")  # the contracts that have no score


def _numbers(told: Any) -> Iterator[float]:
    if isinstance(told, dict):
        for name, value in told.items():
            if not re.search(r"_ms$|time|usage", name):
                yield from _numbers(value)
    elif isinstance(told, list):
        for value in told:
            yield from _numbers(value)
    elif isinstance(told, float) and 0 < told < 1:
        yield told


def _raw(hits: tuple[Hit, ...]) -> set[float]:
    """Similarities and other signals behind the scores, to six digits."""
    raw: set[float] = set()
    for hit in hits:
        seen = hit.signals
        raw |= {hit.cosine, *hit.unit_cosines, seen.passage_cosine, seen.unit_cosine}
        raw |= {seen.term_weight, seen.coverage}
    return {round(float(value), 6) for value in raw if 0 < value < 1}


async def _told(client: httpx.AsyncClient, path: str, field: str, text: str) -> Any:
    response = await client.post(path, json={field: text})
    assert response.status_code == 200, response.text
    if path == "/chat/stream":
        return [event.body for event in events_of(response.text)]
    return response.json()


async def _raw_of(library: Library, text: str) -> set[float]:
    return _raw((await library.search(Question(text, top_k=20))).hits)


async def test_no_similarity_leaves_the_server(proof: Ledger, tmp_path: Path) -> None:
    row = proof(
        "S18",
        "Scores tell an attacker how to be found",
        bar="0 raw similarities or vectors; calibrated scores only where a contract asks for them",
    )
    library = await library_with(small_book(tmp_path / "docs"), lambda _: Model("It is so. [1]"))
    raw_told, needless, scores, replies = [], [], 0, 0
    transport = httpx.ASGITransport(create_app(library))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        for text in _ASKED:
            raw = await _raw_of(library, text)
            assert raw
            for contract, path, field in _WAYS:
                numbers = list(_numbers(await _told(client, path, field, text)))
                replies += 1
                scores += len(numbers)
                raw_told += [f"{path}: {n}" for n in numbers if round(n, 6) in raw]
                needless += [f"{path}: {n}" for n in numbers if contract in _WITHOUT]
    row.enter(
        f"{replies} replies of {len(_WAYS)} routes searched for the similarities, weights and "
        "vectors behind them",
        "; ".join(raw_told + needless)
        or f"0 similarities; {scores} calibrated scores, none from S0 and S2",
        held=not raw_told and not needless and scores > 0,
    )
