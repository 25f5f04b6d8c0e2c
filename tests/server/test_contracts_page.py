"""The examples of docs/reference/contracts.md work, and its table agrees with the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tools.make_docs import DOCS, describe

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.contracts import envelope, plain
from bythebook.contracts import query as query_documents
from bythebook.server.contracts.openai import requests as openai
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.types import Question
from tests.server.test_access_contracts import served

_PAGE = (DOCS / "contracts.md").read_text("utf-8")
_DESCRIBED = describe()


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)\n```$", _PAGE, re.DOTALL | re.MULTILINE)


def _request(block: str) -> tuple[str, str, dict[str, str], str | None]:
    head, _, body = block.partition("\n\n")
    [first, *rest] = head.split("\n")
    method, path = first.split(" ")
    return method, path, dict(line.split(": ", 1) for line in rest), body or None


def test_every_request_is_answered_in_order(library: Book) -> None:
    asked = []
    with served(library) as (client, key):
        for block in _blocks("http"):
            method, path, headers, body = _request(block)
            headers = {name: said.replace("btk_…", key) for name, said in headers.items()}
            if not {"Authorization", "X-API-Key"} & set(headers):
                headers["X-API-Key"] = key
            response = client.request(method, path, headers=headers, content=body)
            assert response.status_code in (200, 204), (block, response.text)
            asked.append(f"{method} {path.partition('?')[0]}")
    assert {
        *("POST /query", "POST /ask", "POST /search", "POST /api/v2/query", "POST /api/v1/query"),
        *("POST /chat/run", "POST /chat/stream", "GET /chat/threads", "POST /feedback"),
        "POST /v1/chat/completions",
    } <= set(asked)


def test_every_example_of_settings_is_valid(tmp_path: Path) -> None:
    blocks = _blocks("toml")
    assert blocks
    for block in blocks:
        (tmp_path / "bythebook.toml").write_text(block, "utf-8")
        load_settings(environ={}, directory=tmp_path)


def test_every_example_of_json_is_json() -> None:
    blocks = _blocks("json")
    assert len(blocks) >= 5
    for block in blocks:
        json.loads(block)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_contract_has_a_section_with_its_errors(contract: str) -> None:
    section = _PAGE.partition(f"\n## {contract}\n")[2].partition("\n## ")[0]
    assert f"<!-- errors {contract} -->\n\n| what happened | status |" in section
    assert "| 503 |" in section


def test_every_setting_and_header_that_it_names_exists() -> None:
    settings = (DOCS / "settings.md").read_text("utf-8")
    api = json.dumps(_DESCRIBED)
    for name in re.findall(r"`((?:access|server|collection|limits)\.\w+)`", _PAGE):
        assert f"`{name}`" in settings, name
    for name in re.findall(r"`((?:X-|RateLimit-|Idempot)[\w-]+)", _PAGE):
        assert name in api, name


# --- the table ------------------------------------------------------------------------------------

_QUESTIONS = {"query": "text", "ask": "text", "envelope": "query", "chat": "message"}


def _row(contract: str) -> dict[str, str]:
    """The cells of a contract's row, by the heading of their column."""
    [heads, _, *rows] = [line for line in _PAGE.split("\n## ")[0].split("\n") if line[:1] == "|"]
    [cells] = [row for row in rows if row.startswith(f"| [`{contract}`]")]
    return dict(zip(heads.strip("| ").split(" | "), cells.strip("| ").split(" | "), strict=True))


def _operations(contract: str) -> dict[str, Any]:
    return {
        f"{method.upper()} {path}": operation
        for path, operations in _DESCRIBED["paths"].items()
        for method, operation in operations.items()
        if operation["tags"] == [contract]
    }


def _fields(contract: str) -> dict[str, Any]:
    """The fields of the contract's first request."""
    [operation, *_] = [each for each in _operations(contract).values() if "requestBody" in each]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    fields: dict[str, Any] = _DESCRIBED["components"]["schemas"][schema.rpartition("/")[2]]
    return fields["properties"]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_table_lists_the_routes_of_every_contract(contract: str) -> None:
    listed = re.findall(r"`((?:GET|POST|DELETE) .*?)`", _row(contract)["routes"])
    assert listed == [*_operations(contract)]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_table_lists_the_fields_of_every_error(contract: str) -> None:
    fields = re.search(r"\{([\w, ]+)\}", _row(contract)["an error is"])
    assert fields is not None
    declared = list(CONTRACTS[contract].error.model_fields)
    assert fields[1].split(", ") == [name for name in declared if name != "degraded"]


@pytest.mark.parametrize(("contract", "field"), _QUESTIONS.items())
def test_the_table_states_the_limits_of_a_request(contract: str, field: str) -> None:
    row, fields = _row(contract), _fields(contract)
    assert row["longest question"] == f"{fields[field]['maxLength']} characters"
    top_k = fields.get("top_k")
    assert row["`top_k`"] == (f"{top_k['minimum']:g}–{top_k['maximum']:g}" if top_k else "5, fixed")
    selection = fields.get("selected_text", {}).get("anyOf", [None])[0]
    limits = (
        f"{selection['minLength']}–{selection['maxLength']} characters" if selection else "none"
    )
    assert row["selection"] == limits
    for name in {"relevance_threshold", "similarity_threshold"} & set(fields):
        assert row["least score"] == f"0–1, default {fields[name]['default']}"


@pytest.mark.parametrize(
    ("contract", "question"),
    [
        ("query", query_documents.read(query_documents.Query(text="q"))),
        ("envelope", envelope.read(envelope.QueryRequest(query="q"))),
        ("plain", plain.read(plain.QueryRequest(query="q"))),
        (
            "openai",
            openai.read(
                openai.OpenAICompletionRequest(
                    messages=[openai.OpenAIChatMessage(role="user", content="q")]
                )
            ),
        ),
    ],
)
def test_the_table_states_the_least_score(contract: str, question: Question) -> None:
    assert _row(contract)["least score"] == f"{question.min_score}, fixed"
