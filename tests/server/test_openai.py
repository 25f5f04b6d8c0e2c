"""The openai contract: requests, completions, streams and errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from bythebook.server import examples
from bythebook.server.contracts.openai import completions as openai
from bythebook.server.observability import FIELDS
from bythebook.types import Answer, AnswerSpan, Sentence
from tests.server.conftest import FragileEmbedder

_PATH = "/v1/chat/completions"
_QUESTION = "At how many degrees does a kettle boil water?"
_UNKNOWN = "Who won the chess championship of 1972?"


def _user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def _body(*messages: dict[str, object], **fields: object) -> dict[str, object]:
    return {"model": "bythebook", "messages": list(messages or [_user(_QUESTION)]), **fields}


def _complete(client: TestClient, *messages: dict[str, object], **fields: object) -> dict[str, Any]:
    answer = client.post(_PATH, json=_body(*messages, **fields))
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def _stream(client: TestClient, *messages: dict[str, object], **fields: object) -> list[Any]:
    """The data of every event; an event is one line of data."""
    answer = client.post(_PATH, json=_body(*messages, stream=True, **fields))
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, rest = answer.text.split("\n\n")
    assert rest == ""
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    data = [event.removeprefix("data: ") for event in events]
    return [each if each == "[DONE]" else json.loads(each) for each in data]


def _content(chunks: list[Any]) -> str:
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])


def test_answer_has_the_openai_shape_and_citations(client: TestClient) -> None:
    told = _complete(client)
    assert told["object"] == "chat.completion" and told["id"].startswith("chatcmpl-")
    [choice] = told["choices"]
    assert choice["finish_reason"] == "stop"
    message = choice["message"]
    assert "100 degrees" in message["content"].replace("*", "")
    assert told["refusal_type"] is None
    source = told["sources"][0]
    assert source["number"] == 1 and source["section"] == "Kettles"
    assert "100 degrees" in source["quote"]
    for annotation in message["annotations"]:
        cited = annotation["url_citation"]
        marker = message["content"][cited["start_index"] : cited["end_index"]]
        [named] = [each for each in told["sources"] if marker == f"[{each['number']}]"]
        assert cited["url"] == named["link"]
    assert {a["type"] for a in message["annotations"]} == {"url_citation"}
    usage = told["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert min(usage.values()) > 0


def test_a_refusal_is_an_answer_without_sources(client: TestClient) -> None:
    told = _complete(client, _user(_UNKNOWN))
    [choice] = told["choices"]
    assert choice["finish_reason"] == "stop"
    assert "does not contain" in choice["message"]["content"]
    assert (told["sources"], choice["message"]["annotations"]) == ([], [])
    assert told["refusal_type"] in {"low_relevance", "empty_retrieval", "insufficient_grounding"}


def test_question_is_read_in_the_context_of_earlier_messages(client: TestClient) -> None:
    before = [_user("What is a kettle?"), {"role": "assistant", "content": "It boils water."}]
    told = _complete(client, *before, _user("How does it switch itself off?"))
    assert told["sources"][0]["section"] == "Kettles"
    alone = client.post("/query", json={"text": "How does the kettle switch itself off?"}).json()
    assert "bimetal strip" in told["choices"][0]["message"]["content"].replace("*", "")
    assert "bimetal strip" in json.dumps(alone)


def test_the_last_message_of_the_user_is_the_question(client: TestClient) -> None:
    system = {"role": "system", "content": "Talk about kites only."}
    begun = {"role": "assistant", "content": "A kettle"}
    assert (
        "100 degrees" in _complete(client, system, _user(_QUESTION), begun)["sources"][0]["quote"]
    )


def test_text_parts_are_joined_to_one_question(client: TestClient) -> None:
    parts = [
        {"type": "text", "text": "At how many degrees"},
        {"type": "text", "text": "does a kettle boil water?"},
    ]
    assert "100 degrees" in _complete(client, _user(parts))["sources"][0]["quote"]


def test_model_parameters_are_ignored(client: TestClient) -> None:
    steered = _complete(client, temperature=2, max_tokens=1, tools=[], seed=7, n=1, top_p=None)
    assert steered["choices"] == _complete(client)["choices"]


@pytest.mark.parametrize(
    ("body", "status", "said", "param"),
    [
        (_body(_user([{"type": "image_url", "image_url": {"url": "x"}}])), 400, "text", "messages"),
        (_body(n=2), 400, "n:", "n"),
        (_body(_user("  ")), 400, "says nothing", None),
        (_body(_user("a" * 5001)), 400, "5000", None),
        (_body(_user("a\0b")), 400, "NUL", "messages"),
        (_body({"role": "system", "content": "Hello"}), 400, "No message of the user", None),
        ({"model": "bythebook"}, 400, "messages", "messages"),
        ({**_body(), "model": "gpt-4o"}, 404, "bythebook", None),
    ],
)
def test_invalid_request_is_reported_in_the_openai_shape(
    client: TestClient, body: dict[str, object], status: int, said: str, param: str | None
) -> None:
    answer = client.post(_PATH, json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert said in error["message"]
    assert (error["param"] or "").partition(".")[0] == (param or "")
    assert error["code"] == ("model_not_found" if status == 404 else None)


def test_failed_service_is_a_server_error(client: TestClient, embedder: FragileEmbedder) -> None:
    embedder.broken = True
    answer = client.post(_PATH, json=_body())
    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "server_error"


def test_the_book_is_the_only_model(client: TestClient) -> None:
    [model] = client.get("/v1/models").json()["data"]
    assert model["id"] == "bythebook"
    assert client.get("/v1/models/bythebook").json() == model
    missing = client.get("/v1/models/gpt-4o")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


def test_stream_sends_the_same_answer_sentence_by_sentence(client: TestClient) -> None:
    whole = _complete(client)
    *chunks, end = _stream(client)
    assert end == "[DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert len({chunk["id"] for chunk in chunks}) == 1
    said = _content(chunks)
    assert said == whole["choices"][0]["message"]["content"].replace("**", "")
    *earlier, last = chunks
    assert last["choices"][0]["finish_reason"] == "stop"
    assert {chunk["choices"][0]["finish_reason"] for chunk in earlier} == {None}
    assert last["sources"] == whole["sources"]
    for annotation in last["choices"][0]["delta"]["annotations"]:
        cited = annotation["url_citation"]
        assert said[cited["start_index"] : cited["end_index"]].startswith("[")


def test_stream_of_a_refusal_is_its_text(client: TestClient) -> None:
    *chunks, end = _stream(client, _user(_UNKNOWN))
    assert end == "[DONE]"
    assert "does not contain" in _content(chunks)
    assert chunks[-1]["sources"] == [] and chunks[-1]["refusal_type"]


def test_stream_reports_usage_if_requested(client: TestClient) -> None:
    *chunks, counted, _ = _stream(client, stream_options={"include_usage": True})
    assert counted["choices"] == []
    assert counted["usage"]["prompt_tokens"] == _complete(client)["usage"]["prompt_tokens"]
    assert {chunk["usage"] for chunk in chunks} == {None}


def test_failed_stream_ends_with_an_error_without_done(
    client: TestClient, embedder: FragileEmbedder
) -> None:
    embedder.broken = True
    first, error = _stream(client)
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert error["error"]["type"] == "server_error"


def test_complete_stream_is_replayed(client: TestClient, embedder: FragileEmbedder) -> None:
    def ask() -> str:
        body = _body(_user("Who keeps a kite from drifting away?"), stream=True)
        return client.post(_PATH, json=body, headers={"Idempotency-Key": "one"}).text

    embedder.broken = True
    assert "[DONE]" not in ask()
    embedder.broken = False
    told = ask()
    assert told.endswith("data: [DONE]\n\n")
    assert ask() == told  # with the same id


def test_question_is_logged_with_the_contract(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    _complete(client)
    _stream(client, _user(_UNKNOWN))
    lines = [vars(record)[FIELDS] for record in caplog.records if FIELDS in vars(record)]
    assert [(line["contract"], line["outcome"]) for line in lines] == [
        ("openai", "answered"),
        ("openai", "refused"),
    ]


_SENTENCES = st.lists(
    st.tuples(
        st.text(min_size=1).filter(str.strip),
        st.lists(st.just(1), min_size=1, max_size=3),
        st.sampled_from([" ", "\n", "\n\n"]),
    ),
    min_size=1,
    max_size=5,
)


@given(_SENTENCES, st.data())
def test_every_annotation_is_at_its_marker(
    told: list[tuple[str, list[int], str]], data: st.DataObject
) -> None:
    answer = examples.ANSWERED.outcome
    assert isinstance(answer, Answer)
    sentences = tuple(Sentence(text.strip(), tuple(cited), lead=lead) for text, cited, lead in told)
    n = data.draw(st.integers(0, len(sentences) - 1))
    start = data.draw(st.integers(0, len(sentences[n].text) - 1))
    end = data.draw(st.integers(start + 1, len(sentences[n].text)))
    mark = data.draw(st.sampled_from([None, AnswerSpan(n, start, end)]))
    reply = replace(examples.ANSWERED, outcome=replace(answer, sentences=sentences, mark=mark))
    message = openai.show(reply).choices[0].message
    assert len(message.annotations) == sum(len(s.citations) for s in sentences)
    for annotation in message.annotations:
        cited = annotation.url_citation
        assert message.content[cited.start_index : cited.end_index] == "[1]"
