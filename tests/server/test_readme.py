"""The README's requests work as they are printed."""

from __future__ import annotations

import json
import re

from starlette.testclient import TestClient

from tests.support.samples import ROOT

_CURL = re.compile(r"^curl -s localhost:8000(\S+) .*\\\n\s+-d '(.+)'$", re.MULTILINE)


def test_the_readme_asks_each_contract_once(client: TestClient) -> None:
    asked = _CURL.findall((ROOT / "README.md").read_text("utf-8"))
    assert [path for path, _ in asked] == [
        *("/query", "/ask", "/api/v2/query", "/api/v1/query", "/chat/run"),
        "/v1/chat/completions",
    ]
    for path, body in asked:
        assert client.post(path, json=json.loads(body)).status_code == 200
