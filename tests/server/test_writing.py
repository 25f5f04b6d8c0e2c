"""Usage, withheld sentences and fallbacks of language models in every contract."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.errors import WriterFailed
from bythebook.interfaces.models import WriterSearchResult
from bythebook.server.app import create_app
from bythebook.types import Usage
from tests.server.asgi_client import events_of
from tests.support.samples import hit
from tests.support.writers import Model, small_library

TRUE = "A kettle boils water at 100 degrees Celsius. [1]\n"
LIE = "A kettle boils water at 70 degrees Fahrenheit. [1]\n"
COST = Usage(200, 40, 1, 0.0005)
ASKED = "At how many degrees does a kettle boil water?"
CHAT = {"message": ASKED, "similarity_threshold": 0.01}
COMPLETION: dict[str, Any] = {"messages": [{"role": "user", "content": ASKED}]}


async def _client(folder: Path, *pieces: Any) -> TestClient:
    return TestClient(create_app(await small_library(folder, Model(*pieces))))


async def test_ask_reports_the_usage_of_an_answer(tmp_path: Path) -> None:
    with await _client(tmp_path, TRUE, LIE, COST) as client:
        body = client.post("/ask", json={"text": ASKED, "relevance_threshold": 0.01}).json()
    assert body["withheld"] == 1
    assert body["usage"] == {
        "prompt_tokens": 200, "completion_tokens": 40, "calls": 1, "cost_usd": 0.0005,
    }  # fmt: skip
    assert "fallback" not in body


@pytest.mark.parametrize("route", ["/chat/run", "/chat/stream"])
async def test_chat_reports_withheld_sentences(tmp_path: Path, route: str) -> None:
    with await _client(tmp_path, LIE, COST) as client:
        told = client.post(route, json={**CHAT, "session_id": str(uuid.uuid4())})
    body = events_of(told.text)[-1].body if route == "/chat/stream" else told.json()
    assert body["withheld"] == 1
    assert "the book's own sentences" in body["fallback"]
    assert body["usage"]["calls"] == 1
    assert "70 degrees" not in told.text


async def test_openai_reports_the_token_counts_of_the_model(tmp_path: Path) -> None:
    with await _client(tmp_path, TRUE, COST) as client:
        body = client.post("/v1/chat/completions", json=COMPLETION).json()
        streamed = {**COMPLETION, "stream": True, "stream_options": {"include_usage": True}}
        told = client.post("/v1/chat/completions", json=streamed).text
    assert body["usage"] == {"prompt_tokens": 200, "completion_tokens": 40, "total_tokens": 240}
    assert '"total_tokens":240' in told


async def test_openai_reports_a_fallback(tmp_path: Path) -> None:
    with await _client(tmp_path, WriterFailed("Busy.")) as client:
        body = client.post("/v1/chat/completions", json=COMPLETION).json()
    assert "not available at the moment" in body["fallback"]


async def test_passages_found_by_the_writer_are_cited_in_the_stream(tmp_path: Path) -> None:
    looked_up = hit("A dragon kite has a tail of forty coloured discs.", file="dragons.md")
    said = "A dragon kite has a tail of forty coloured discs. [9]\n"
    with await _client(tmp_path, TRUE, WriterSearchResult((looked_up,)), said) as client:
        told = client.post("/chat/stream", json={**CHAT, "session_id": str(uuid.uuid4())})
    citations = [event.body for event in events_of(told.text) if event.name == "citation"]
    assert citations[1]["url"].endswith(looked_up.passage.place.url)
    assert events_of(told.text)[-1].name == "done"


async def test_metrics_count_tokens_cost_fallbacks_and_withheld_sentences(
    tmp_path: Path,
) -> None:
    with await _client(tmp_path, LIE, COST) as client:
        for _ in range(2):
            client.post("/chat/run", json={**CHAT, "session_id": str(uuid.uuid4())})
        told = client.get("/metrics").text
    figures = {
        line.partition("{")[0] + ("_out" if 'direction="out"' in line else ""): line.split()[-1]
        for line in told.splitlines()
        if 'writer="fake:model"' in line and "_created" not in line
    }
    assert figures == {
        "bythebook_model_tokens_total": "400.0",
        "bythebook_model_tokens_total_out": "80.0",
        "bythebook_model_calls_total": "2.0",
        "bythebook_model_cost_usd_total": "0.001",
        "bythebook_fallbacks_total": "2.0",
        "bythebook_withheld_sentences_total": "2.0",
    }


async def test_without_a_fallback_every_contract_reports_an_error(tmp_path: Path) -> None:
    library = await small_library(tmp_path, Model(WriterFailed("No.")), fallback=False)
    with TestClient(create_app(library)) as client:
        answers = {
            route: client.post(route, json=body)
            for route, body in {
                "/ask": {"text": ASKED, "relevance_threshold": 0.01},
                "/chat/run": {**CHAT, "session_id": str(uuid.uuid4())},
                "/v1/chat/completions": COMPLETION,
            }.items()
        }
    assert {answer.status_code for answer in answers.values()} == {503}
    assert answers["/ask"].json()["error_type"] == "generation"
    assert answers["/chat/run"].json()["error_code"] == "SERVICE_UNAVAILABLE"
    assert answers["/v1/chat/completions"].json()["error"]["type"] == "server_error"
