"""The description at /openapi.json: complete, and true of the examples it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tools.make_docs import CONTRACTS, describe

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


def test_every_contract_is_there() -> None:
    assert {(path, method) for path, method, _ in _operations()} >= {
        ("/query", "post"),
        ("/ask", "post"),
        ("/search", "post"),
        ("/api/v2/query", "post"),
        ("/api/query", "post"),
        ("/api/v1/query", "post"),
        ("/chat/run", "post"),
        ("/chat/stream", "post"),
        ("/v1/chat/completions", "post"),
        ("/v1/models", "get"),
    }


@pytest.mark.parametrize(
    ("path", "method", "operation"), [pytest.param(*each, id=each[0]) for each in _operations()]
)
def test_every_ending_is_declared_with_an_example(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    responses = operation["responses"]
    assert {"400", "401", "413", "429", "503"} <= set(responses)
    assert "422" not in responses
    assert "Retry-After" in responses["429"]["headers"]
    for status, response in responses.items():
        kinds = response.get("content", {})
        assert all(told["examples"] for told in kinds.values()), (path, status)
        assert kinds or status == "204"


def test_every_request_has_an_example_that_is_accepted(client: TestClient) -> None:
    examples = list(_requests())
    posts = {path for path, method, _ in _operations() if method == "post"}
    assert {path for path, _ in examples} == posts
    for path, example in examples:
        assert client.post(path, json=example).status_code == 200, path


def test_every_link_leads_to_an_operation_and_hands_over_what_it_takes() -> None:
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


def test_the_examples_carry_no_null_away() -> None:
    content = _DESCRIBED["paths"]["/api/v2/query"]["post"]["responses"]["200"]["content"]
    answer = content["application/json"]["examples"]["answer"]["value"]
    assert answer["refusal"] is None
    assert answer["error"] is None


def test_the_server_says_the_same(client: TestClient) -> None:
    assert client.get("/openapi.json").json() == json.loads(json.dumps(_DESCRIBED))
