"""The OpenAPI document is complete and agrees with its examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tools.make_docs import describe

from bythebook.book import Book
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import Settings
from bythebook.server.app import create_app
from bythebook.server.contracts.registry import CONTRACTS

_DESCRIBED = describe()
_TAGS = set(CONTRACTS)


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in _DESCRIBED["paths"].items():
        for method, operation in operations.items():
            if _TAGS & set(operation["tags"]):
                yield path, method, operation


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, _, operation in _operations():
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            model = _DESCRIBED["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            yield from ((path, example) for example in model["examples"])


@pytest.mark.parametrize(
    ("path", "method", "operation"), [pytest.param(*each, id=each[0]) for each in _operations()]
)
def test_every_response_has_an_example(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    assert {"400", "401", "413", "429", "503"} <= set(responses)
    assert ("422" in responses) is (method == "post")  # a reused Idempotency-Key
    assert "Retry-After" in responses["429"]["headers"]
    for status, response in responses.items():
        kinds = response.get("content", {})
        assert all(told["examples"] for told in kinds.values()), (path, status)
        assert kinds or status == "204"


@pytest.mark.parametrize(
    ("path", "method", "operation"), [pytest.param(*each, id=each[0]) for each in _operations()]
)
def test_every_operation_declares_keys_and_headers(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert operation["security"] == [{}, {"bearer": []}, {"apiKey": []}]  # {}: open by default
    takes = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "header"}
    resumes = path in ("/chat/run", "/chat/stream")
    asked = {"Idempotency-Key"} if method == "post" else set()
    assert takes == asked | ({"Last-Event-ID"} if resumes else set())
    known = _DESCRIBED["components"]["headers"]
    for status, response in operation["responses"].items():
        given = response["headers"]
        assert {"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining"} <= set(given)
        assert ("Retry-After" in given) is (status in ("429", "503", "504"))
        assert ({"Idempotent-Replayed", "X-Degraded"} <= set(given)) is (
            method == "post" and status == "200"
        )
        assert all(each["$ref"].rpartition("/")[2] in known for each in given.values())


def test_required_keys_are_declared(library: Book) -> None:
    settings = Settings(access=Rules(keys="required"))
    described = create_app(library, settings).openapi()
    schemes = described["components"]["securitySchemes"]
    assert (schemes["bearer"]["scheme"], schemes["apiKey"]["name"]) == ("bearer", "X-API-Key")
    assert described["paths"]["/ask"]["post"]["security"] == [{"bearer": []}, {"apiKey": []}]
    assert "security" not in described["paths"]["/health"]["get"]


def test_schema_names_and_operation_ids_name_the_contract() -> None:
    names = set(_DESCRIBED["components"]["schemas"])
    assert not [name for name in names if "__" in name]
    assert {"EnvelopeQueryRequest", "PlainQueryRequest", "ChatSource", "OpenAIError"} <= names
    ids = [operation["operationId"] for _, _, operation in _operations()]
    assert len(ids) == len(set(ids))
    assert {"ask", "envelope_query", "chat_run", "chat_read_thread"} <= set(ids)
    assert [tag["name"] for tag in _DESCRIBED["tags"]] == [*CONTRACTS, "operations"]
    assert all(tag["description"] for tag in _DESCRIBED["tags"])


def test_every_reference_resolves() -> None:
    text = json.dumps(_DESCRIBED)
    for target in set(re.findall(r'"#/components/(\w+)/([\w-]+)"', text)):
        assert target[1] in _DESCRIBED["components"][target[0]], target
    assert not re.findall(r'"\$ref": "(?!#/components/)', text)


# --- streams --------------------------------------------------------------------------------------


def _events(stream: str) -> list[tuple[str, str, dict[str, Any]]]:
    """The id, the name and the data of each event."""
    told = []
    for block in stream.strip().split("\n\n"):
        field = dict(line.split(": ", 1) for line in block.split("\n"))
        told.append((field["id"], field["event"], json.loads(field["data"])))
    return told


def test_stream_examples_have_the_documented_order() -> None:
    described = _DESCRIBED["paths"]["/chat/stream"]["post"]["responses"]["200"]["content"]
    told = described["text/event-stream"]
    order = [each["event"] for each in told["x-events"]]
    assert order == ["session", "state", "retrieval", "delta", "citation", "done", "error"]
    for example in told["examples"].values():
        events = _events(example["value"])
        assert [int(id.partition(".")[2]) for id, _, _ in events] == [*range(1, len(events) + 1)]
        names = [name for _, name, _ in events]
        assert names == sorted(names, key=order.index)
        assert (names[0], names[-1]) == ("session", "done")
        bodies: dict[str, Any] = {name: data for _, name, data in events}
        done = bodies["done"]
        said = "".join(data["text"] for _, name, data in events if name == "delta")
        assert said == done["response"]
        for field in ("confidence_level", "should_answer"):
            assert bodies["retrieval"][field] == done[field]


def test_stream_examples_match_the_event_schemas() -> None:
    described = _DESCRIBED["paths"]["/chat/stream"]["post"]["responses"]["200"]["content"]
    told = described["text/event-stream"]
    schemas = _DESCRIBED["components"]["schemas"]
    for example in told["examples"].values():
        for _, name, data in _events(example["value"]):
            [ref] = [each["data"]["$ref"] for each in told["x-events"] if each["event"] == name]
            schema = schemas[ref.rpartition("/")[2]]
            assert set(schema["required"]) <= set(data) <= set(schema["properties"])


def test_every_request_has_an_example_that_is_accepted(client: TestClient) -> None:
    examples = list(_requests())
    posts = {path for path, method, _ in _operations() if method == "post"}
    assert {path for path, _ in examples} == posts
    for path, example in examples:
        assert client.post(path, json=example).status_code == 200, path


def test_every_link_resolves_and_passes_known_parameters() -> None:
    known = {
        f"#/paths/{path.replace('/', '~1')}/{method}": operation
        for path, method, operation in _operations()
    }
    links = [
        link
        for operation in known.values()
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert links
    for link in links:
        there = known[link["operationRef"]]
        takes = {parameter["name"] for parameter in there.get("parameters", ())}
        assert set(link.get("parameters", ())) <= takes
        assert ("requestBody" in link) <= ("requestBody" in there)


def test_examples_keep_their_nulls() -> None:
    content = _DESCRIBED["paths"]["/api/v2/query"]["post"]["responses"]["200"]["content"]
    answer = content["application/json"]["examples"]["answer"]["value"]
    assert answer["refusal"] is None
    assert answer["error"] is None


def test_server_returns_the_same_document(client: TestClient) -> None:
    assert client.get("/openapi.json").json() == json.loads(json.dumps(_DESCRIBED))
