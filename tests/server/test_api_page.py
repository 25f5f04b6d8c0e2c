"""The page at /docs shows the whole API and loads nothing from other sites."""

from __future__ import annotations

import html
import re

import pytest
from starlette.testclient import TestClient
from tools.make_docs import describe

from bythebook.book import Book
from bythebook.config.settings import AccessSettings as Rules
from bythebook.config.settings import Settings
from bythebook.server.api_docs.page import contents, reference
from bythebook.server.app import create_app

_DESCRIBED = describe()


def test_the_page_shows_every_route_and_schema(client: TestClient) -> None:
    response = client.get("/docs")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    for path, operations in _DESCRIBED["paths"].items():
        for method, operation in operations.items():
            assert f'id="{operation["operationId"]}"' in response.text, (method, path)
            form = f'data-method="{method.upper()}" data-path="{path}"'
            assert form in response.text
    for name in _DESCRIBED["components"]["schemas"]:
        assert f'id="schema-{name}"' in response.text


def test_docs_page_has_no_external_resources_and_no_inline_code(client: TestClient) -> None:
    page = client.get("/docs").text
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]*)"', page)
    assert {name for name in loaded if name != "data:,"} == {
        "./palette.css",
        "./base.css",
        "./docs.css",
        "./docs.js",
    }
    own = [name.removeprefix(".") for name in loaded if name != "data:,"]
    assert all(client.get(path).status_code == 200 for path in own)
    assert not re.search(r"<script>|\sstyle=|\son\w+=|\{\{", page)


def test_every_link_of_the_docs_page_resolves(client: TestClient) -> None:
    page = client.get("/docs").text
    parts = re.findall(r'id="([^"]+)"', page)
    assert len(parts) == len(set(parts))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(parts)


@pytest.mark.parametrize(("keys", "said"), [("required", "needed"), ("open", "open")])
def test_docs_page_is_public_and_shows_if_keys_are_required(
    library: Book, keys: str, said: str
) -> None:
    settings = Settings.model_validate({"access": Rules.model_validate({"keys": keys})})
    with TestClient(create_app(library, settings)) as client:
        response = client.get("/docs")
        assert response.status_code == 200
        assert f'data-keys="{said}"' in response.text


def test_descriptions_are_escaped() -> None:
    hostile = "<img src=x onerror=alert(1)> `<b>`"
    described = {**_DESCRIBED, "info": {"description": hostile}}
    page = contents(described) + reference(described)
    assert "<img" not in page
    assert html.escape(hostile.partition(" `")[0]) in page
