"""MCP tools: in the same process, behind access control, and with the official client."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent
from starlette.testclient import TestClient
from typer.testing import CliRunner

from bythebook.access_stores import open_access_stores
from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.config.settings import AccessSettings as Rules
from bythebook.errors import UnknownProvider
from bythebook.server.access import AccessControl, make_key
from bythebook.server.app import create_app
from bythebook.server.mcp import make_server
from bythebook.types import Question
from tests.server.access_fixtures import PEPPER
from tests.server.conftest import FragileEmbedder
from tests.server.running_server import PROGRAM, book_server, ingest
from tests.support.samples import read, small_book

_QUESTION = "At how many degrees does a kettle boil water?"


@dataclass
class Tools:
    """Calls tools, each over a connection of its own."""

    book: Book

    async def call_tool(self, name: str, given: dict[str, Any]) -> CallToolResult:
        async with Client(make_server(self.book)) as client:
            return await client.call_tool(name, given)


@pytest.fixture
def tools(library: Book) -> Tools:
    return Tools(library)


def _text(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_every_tool_has_a_description_and_schemas(library: Book) -> None:
    async with Client(make_server(library)) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == {"search_book", "ask_book", "read_section"}
    for tool in listed.values():
        assert tool.description and tool.output_schema
        assert tool.annotations is not None and tool.annotations.read_only_hint
    assert set(listed["search_book"].input_schema["properties"]) == {"query", "top_k"}
    assert listed["ask_book"].input_schema["required"] == ["question"]


async def test_answer_has_links(tools: Tools) -> None:
    result = await tools.call_tool("ask_book", {"question": _QUESTION})
    told = result.structured_content
    assert told["answered"] and not result.is_error
    assert "100 degrees" in told["text"].replace("*", "")
    assert f"[1] Kettles: {told['sources'][0]['link']}" in _text(result)


async def test_refusal_is_a_result(tools: Tools) -> None:
    asked = {"question": "Who won the chess championship of 1972?"}
    result = await tools.call_tool("ask_book", asked)
    assert not result.is_error
    assert not result.structured_content["answered"]
    assert result.structured_content["refusal_type"]
    assert "does not contain" in _text(result)


async def test_selected_text_is_the_only_source(tools: Tools) -> None:
    asked = {
        "question": "How long is the string?",
        "selected_text": "The string is 40 metres long.",
    }
    result = await tools.call_tool("ask_book", asked)
    assert "40 metres" in result.structured_content["text"].replace("*", "")


async def test_found_passage_can_be_read_in_its_section(tools: Tools) -> None:
    found = await tools.call_tool("search_book", {"query": "kettle", "top_k": 2})
    passages = found.structured_content["passages"]
    assert len(passages) == 2
    read = await tools.call_tool("read_section", {"url": passages[0]["url"]})
    answer = await tools.call_tool("ask_book", {"question": _QUESTION})
    link = answer.structured_content["sources"][0]["link"]
    linked = await tools.call_tool("read_section", {"url": link})
    page = await tools.call_tool("read_section", {"url": link.partition("#")[0]})
    assert passages[0]["url"] in _text(found)
    assert passages[0]["text"] in read.structured_content["text"]
    assert "bimetal strip" in linked.structured_content["text"]
    text = page.structured_content["text"]
    assert text.index("about kites and kettles") < text.index("wind pushes") < text.index("bimetal")


async def test_a_section_is_read_from_the_book_as_it_is_now(
    library: Book, book_folder: Path
) -> None:
    page = book_folder / "zeppelin.md"
    for colour in ("red", "silver"):
        page.write_text(f"# Zeppelins\n\nThe colour of a zeppelin is {colour}.\n")
        await library.ingest(read(book_folder))
        found = await library.search(Question("What colour is a zeppelin?"))
        _, [passage] = await library.section(found.hits[0].passage.place.url)
        assert colour in passage.text


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("ask_book", {"query": "topics"}, "question: is missing. Correct the call."),
        ("search_book", {"question": "topics"}, "query: is missing. Correct the call."),
        ("ask_book", {"question": "  "}, "question"),
        ("ask_book", {"question": _QUESTION, "selected_text": "short"}, "selected_text"),
        ("search_book", {"query": "kite", "top_k": 0}, "top_k"),
        ("read_section", {"url": "/nowhere#at-all"}, "no such section"),
        ("burn_book", {}, "no such tool"),
    ],
)
async def test_invalid_call_is_a_tool_error(
    tools: Tools, tool: str, given: dict[str, Any], said: str
) -> None:
    result = await tools.call_tool(tool, given)
    assert result.is_error
    assert said in _text(result) and "Traceback" not in _text(result)


async def test_failed_service_is_a_tool_error(tools: Tools, embedder: FragileEmbedder) -> None:
    embedder.broken = True
    result = await tools.call_tool("ask_book", {"question": _QUESTION})
    assert result.is_error
    assert _text(result) == (
        "The embedding service is temporarily unavailable. Try again in a moment."
    )


# --- over HTTP ------------------------------------------------------------------------------------

_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
_HEADERS = {"accept": "application/json, text/event-stream"}


def test_endpoint_requires_a_key_and_is_rate_limited(library: Book) -> None:
    stores = open_access_stores()
    access = AccessControl(Rules(per_key=1), stores, needs_keys=True, pepper=PEPPER)
    client = TestClient(create_app(library, access=access), base_url="http://127.0.0.1:8000")
    with client:
        assert client.portal is not None
        text, key = make_key(PEPPER)
        client.portal.call(stores.keys.add, key)
        headers = _HEADERS | {"authorization": f"Bearer {text}"}
        refused = client.post("/mcp", json=_LIST, headers=_HEADERS)
        listed = client.post("/mcp", json=_LIST, headers=headers)
        limited = client.post("/mcp", json=_LIST, headers=headers)
        assert client.get("/mcp", headers=_HEADERS).status_code == 401
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, -32000)
    assert listed.status_code == 200
    assert len(listed.json()["result"]["tools"]) == 3
    assert limited.status_code == 429 and limited.headers["retry-after"]


def test_local_endpoint_rejects_dns_rebinding(library: Book) -> None:
    with TestClient(create_app(library), base_url="http://127.0.0.1:8000") as client:
        assert client.post("/mcp", json=_LIST, headers=_HEADERS).status_code == 200
        rebound = client.post("/mcp", json=_LIST, headers=_HEADERS | {"host": "evil.example"})
        page = client.post(
            "/mcp", json=_LIST, headers=_HEADERS | {"origin": "https://evil.example"}
        )
        assert client.get("/mcp", headers=_HEADERS).status_code == 405
    assert (rebound.status_code, page.status_code) == (421, 403)


def test_without_the_package_there_is_no_endpoint_and_no_command(
    library: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with TestClient(create_app(library), base_url="http://127.0.0.1:8000") as client:
        assert client.post("/mcp", json=_LIST, headers=_HEADERS).status_code == 404
    told = CliRunner().invoke(app, ["mcp"])
    assert isinstance(told.exception, UnknownProvider)
    assert 'pip install "bythebook[mcp]"' in str(told.exception)


# --- with the official client, for real -----------------------------------------------------------


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp")
    ingest(small_book(folder / "docs"), folder / "home")
    return folder / "home"


async def _call_every_tool(client: Client) -> None:
    assert len((await client.list_tools()).tools) == 3
    answer = await client.call_tool("ask_book", {"question": _QUESTION})
    assert "100 degrees" in answer.structured_content["text"].replace("*", "")
    link = answer.structured_content["sources"][0]["link"]
    assert link in _text(answer)
    section = await client.call_tool("read_section", {"url": link})
    assert "bimetal strip" in section.structured_content["text"]
    found = await client.call_tool("search_book", {"query": "kite", "top_k": 1})
    assert len(found.structured_content["passages"]) == 1
    assert (await client.call_tool("ask_book", {})).is_error


@pytest.mark.loopback
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_stdio(home: Path, mode: Any) -> None:
    program = StdioServerParameters(command=PROGRAM, args=["mcp", "--home", str(home)])
    async with Client(program, mode=mode) as client:
        await _call_every_tool(client)


@pytest.mark.loopback
async def test_over_http(home: Path, tmp_path: Path) -> None:
    with book_server(home, tmp_path / "log", workers=2) as server:
        for mode in ("auto", "legacy"):
            async with Client(f"{server.url}/mcp", mode=mode) as client:
                await _call_every_tool(client)
        assert server.stop()[0] == 0
    assert "Traceback" not in server.log.read_text()
