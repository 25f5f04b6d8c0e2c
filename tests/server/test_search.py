"""``POST /search`` applies every field that it documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.contracts import ask as ask_contract
from bythebook.contracts import ask as reply_documents
from bythebook.retrieval.search import Findings
from bythebook.server import examples
from bythebook.types import Question
from tests.server.asgi_client import events_of

_QUESTION = "At how many degrees does a kettle boil water?"


def _search(client: TestClient, text: str = _QUESTION, **fields: Any) -> list[dict[str, Any]]:
    response = client.post("/search", json={"text": text, **fields})
    assert response.status_code == 200
    body = response.json()
    assert body["total_count"] == len(body["results"])
    results: list[dict[str, Any]] = body["results"]
    return results


def test_results_below_the_threshold_are_left_out(client: TestClient) -> None:
    everything = _search(client, top_k=20, relevance_threshold=0)
    assert len(everything) > 2
    scores = sorted({result["score"] for result in everything})
    for threshold in (*scores, 1):
        found = _search(client, top_k=20, relevance_threshold=threshold)
        assert found == [each for each in everything if each["score"] >= threshold]


def test_default_threshold_is_that_of_ask(client: TestClient) -> None:
    assert _search(client, top_k=20) == _search(client, top_k=20, relevance_threshold=0.5)
    assert len(_search(client, top_k=20)) < len(_search(client, top_k=20, relevance_threshold=0))


def test_selected_text_guides_the_search(client: TestClient) -> None:
    leading = "Cut two sticks of spruce. Tie them into a cross."

    def files(**fields: Any) -> Sequence[str]:
        found = _search(client, "What does this mean?", relevance_threshold=0, **fields)
        return [result["content"] for result in found]

    assert files(selected_text=leading) != files()
    assert "spruce" in files(selected_text=leading)[0]


def test_page_url_is_passed_to_the_search(client: TestClient) -> None:
    body = ask_contract.AgentQuery(text="kite", page_url="https://book.example/docs/intro")
    assert (
        ask_contract.read_search(body).current_page
        == ask_contract.read(body).current_page
        == body.page_url
    )


def _with_address(url: str) -> Findings:
    hit = examples.FINDINGS.hits[0]
    place = replace(hit.passage.place, url=url)
    moved = replace(hit, passage=replace(hit.passage, place=place))
    return replace(examples.FINDINGS, hits=(moved,))


@pytest.mark.parametrize(
    ("url", "reader", "shown"),
    [
        ("https://book.example/docs/a#b", "http://h/read/", "https://book.example/docs/a#b"),
        ("/docs/a#b", "http://h/read/", "http://h/read/docs/a#b"),
        ("", "http://h/read/", "http://h/read/"),
    ],
)
def test_a_source_url_is_always_a_url(url: str, reader: str, shown: str) -> None:
    found = reply_documents.show_results(Question("kite"), _with_address(url), reader=reader)
    assert [result.source_url for result in found.results] == [shown]


def test_without_a_site_url_results_link_to_the_reader(client: TestClient) -> None:
    [best, *_] = _search(client)
    assert best["source_url"].startswith("http://testserver/read/docs/intro#")
    assert client.get(best["source_url"]).status_code == 200
    path = best["source_url"].partition("/read/")[2].partition("#")[0]
    assert client.get("/reader/page", params={"path": path}).status_code == 200


def test_all_routes_give_a_page_one_address(client: TestClient) -> None:
    question = "At how many degrees does a kettle boil water?"
    found = {each["source_url"] for each in _search(client)}
    asked = client.post("/ask", json={"text": question}).json()
    chat = {"message": question, "whole_evidence": True}
    said = client.post("/chat/run", json=chat).json()
    streamed = events_of(client.post("/chat/stream", json=chat).text)
    thread = client.get(f"/chat/threads/{said['session_id']}").json()
    envelope = client.post("/api/v2/query", json={"query": question}).json()
    cited = [*asked["sources"], *asked["citations"], *said["sources"], *said["citations"]]
    cited += [*streamed[-1].body["sources"], *streamed[-1].body["citations"]]
    cited += [*(event.body for event in streamed if event.name == "citation")]
    cited += thread["messages"][1]["citations"]
    urls = {each["url"] for each in cited}
    urls |= {each["source_url"] for each in envelope["answer"]["citations"]}
    assert len(urls) == 1
    assert urls <= found
    assert {each["link"].partition(":~:")[0].rstrip("#") for each in asked["citations"]} == urls
    assert client.get(urls.pop()).status_code == 200
    off_book = client.post("/ask", json={"text": "Who won the cup final in 1966?"}).json()
    links = [topic["url"] for topic in off_book["nearby"]]
    assert all(link.startswith("http://testserver/read/") for link in links)
