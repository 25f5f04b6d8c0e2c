"""The page at /docs loads nothing from other sites."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import Settings
from bythebook.server.app import create_app


def test_docs_page_has_no_external_resources_and_no_inline_code(client: TestClient) -> None:
    response = client.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    loaded = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="([^"]*)"', response.text)
    own = [name.removeprefix(".") for name in loaded if name != "data:,"]
    assert own == ["/swagger-ui.css", "/swagger-ui-bundle.js", "/docs.js"]
    assert all(client.get(path).status_code == 200 for path in own)
    assert not re.search(r"<script>|\sstyle=|\son\w+=|\{\{", response.text)


@pytest.mark.parametrize("keys", ["required", "open"])
def test_docs_page_is_public(library: Book, keys: str) -> None:
    settings = Settings.model_validate({"access": Rules.model_validate({"keys": keys})})
    with TestClient(create_app(library, settings)) as client:
        assert client.get("/docs").status_code == 200
        assert client.get("/openapi.json").status_code == 200
