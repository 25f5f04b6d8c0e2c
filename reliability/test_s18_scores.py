"""Replies contain calibrated scores only where a contract has a field for them.

Similarities and vectors would tell an attacker how to write a page that is found, so they are never
sent. A score is the probability that a passage answers, computed from five signals and the other
hits. Where a contract has no field for a number (openai, the MCP tools, the reader's search), the
reply says high, medium or low, or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from tests.server.asgi_client import events_of
from tests.support.samples import small_book
from tests.support.writers import Model, library_with

from bythebook.book import Book
from bythebook.server.app import create_app
from bythebook.server.mcp import make_server
from bythebook.types import Hit, Question
from reliability.rows import Rows

_ASKED = (
    "At how many degrees does a kettle boil water?",
    "What lifts a kite?",
    "When does it switch itself off?",
    "Who won the chess match in 1972?",
)
_WAYS = (
    ("query", "/query", "text"),
    ("ask", "/ask", "text"),
    ("ask", "/search", "text"),
    ("envelope", "/api/v2/query", "query"),
    ("plain", "/api/v1/query", "query"),
    ("chat", "/chat/run", "message"),
    ("chat", "/chat/stream", "message"),
    ("openai", "/v1/chat/completions", "messages"),
    ("reader", "/reader/search", "text"),
)
_SCORED = ("ask", "plain", "chat")  # the contracts that require a score
_BANDS = ("high", "medium", "low")
_TOOLS = (("search_book", "query"), ("ask_book", "question"))


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
    """Return the similarities and other signals behind the scores, to six digits."""
    raw: set[float] = set()
    for hit in hits:
        seen = hit.signals
        raw |= {hit.cosine, *hit.unit_cosines, seen.passage_cosine, seen.unit_cosine}
        raw |= {seen.term_weight, seen.coverage}
    return {round(float(value), 6) for value in raw if 0 < value < 1}


async def _told(client: httpx.AsyncClient, path: str, field: str, text: str) -> Any:
    asked = [{"role": "user", "content": text}] if field == "messages" else text
    response = await client.post(path, json={"model": "bythebook", field: asked})
    assert response.status_code == 200, response.text
    if path == "/chat/stream":
        return [event.body for event in events_of(response.text)]
    return response.json()


async def _told_by_tool(library: Book, tool: str, field: str, text: str) -> Any:
    async with Client(make_server(library)) as client:
        result = await client.call_tool(tool, {field: text})
    assert not result.is_error
    return result.structured_content


async def _raw_of(library: Book, text: str) -> set[float]:
    return _raw((await library.search(Question(text, top_k=20))).hits)


@pytest.mark.smoke
async def test_no_similarity_leaves_the_server(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S18",
        "Scores that tell an attacker how to be found",
        requirement=(
            "0 raw similarities or vectors; calibrated scores only where a contract "
            "demands the field, elsewhere bands"
        ),
    )
    library = await library_with(small_book(tmp_path / "docs"), lambda _: Model("It is so. [1]"))
    raw_told: list[str] = []
    needless: list[str] = []
    scores = bands = replies = 0
    transport = httpx.ASGITransport(create_app(library))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for text in _ASKED:
            raw = await _raw_of(library, text)
            assert raw
            told = [(c, p, await _told(client, p, field, text)) for c, p, field in _WAYS]
            for tool, field in _TOOLS:
                told.append(("MCP", tool, await _told_by_tool(library, tool, field, text)))
            for contract, way, reply in told:
                numbers = list(_numbers(reply))
                replies += 1
                scores += len(numbers)
                bands += sum(f'"confidence": "{b}"' in json.dumps(reply) for b in _BANDS)
                raw_told += [f"{way}: {n}" for n in numbers if round(n, 6) in raw]
                needless += [f"{way}: {n}" for n in numbers if contract not in _SCORED]
    row.record(
        f"{replies} replies of {len(_WAYS)} routes and {len(_TOOLS)} tools searched for the "
        "similarities, weights and vectors behind them",
        "; ".join(raw_told + needless)
        or f"0 similarities; {scores} calibrated scores, all in fields that ask, plain and "
        "chat require; high, medium or low from openai and the tools; none at all from query, "
        "envelope and the reader's search",
        passed=not raw_told and not needless and scores > 0 and bands > 0,
    )
