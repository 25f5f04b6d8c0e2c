"""Every example of docs/reference/contracts.md works as it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tools.make_docs import DOCS

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.server.contracts.registry import CONTRACTS
from tests.server.test_access_contracts import served

_PAGE = (DOCS / "contracts.md").read_text("utf-8")


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
    api = (DOCS / "api.md").read_text("utf-8")
    for name in re.findall(r"`((?:access|server|collection|limits)\.\w+)`", _PAGE):
        assert f"`{name}`" in settings, name
    for name in re.findall(r"`((?:X-|RateLimit-|Idempot)[\w-]+)", _PAGE):
        assert name in api, name
