"""The book as Markdown over HTTP: ``/llms.txt``, ``/llms-full.txt`` and ``/<page>.md``."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import AccessSettings, Settings
from bythebook.documents.markdown.files import links_of
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.server.app import create_app
from tests.server.access_fixtures import access_of
from tests.support.samples import read

_FILES = ("/llms.txt", "/llms-full.txt", "/docs/intro.md")


def test_page_is_served_as_markdown(client: TestClient) -> None:
    told = client.get("/docs/intro.md")
    assert told.headers["content-type"] == "text/markdown; charset=utf-8"
    assert told.text.startswith("# Welcome\n\nSource: /docs/intro\n\nThis little book is about")
    assert "\n\n## Kettles\n\nA kettle boils water at 100 degrees Celsius." in told.text
    table = client.get("/docs/workshop/building.md").text
    assert "1. Cut two sticks of spruce.\n2. Tie them into a cross.\n" in table
    assert "| cloth | weight |\n|---|---|\n| ripstop nylon | 40 grams |\n" in table


def test_list_and_whole_book_are_served(client: TestClient) -> None:
    listed, whole = client.get("/llms.txt"), client.get("/llms-full.txt")
    assert listed.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["content-type"] == "text/markdown; charset=utf-8"
    assert listed.text.startswith("# Welcome\n\n> This little book is about kites and kettles.\n")
    for page in ("/docs/intro.md", "/docs/workshop/building.md"):
        assert client.get(page).text in whole.text


def test_every_link_of_the_list_leads_to_a_served_page(client: TestClient) -> None:
    targets = list(links_of(client.get("/llms.txt").text))
    assert targets == ["docs/intro.md", "docs/workshop/building.md"]
    for target in targets:
        assert client.get(f"/{target}").text.startswith("# ")


@pytest.mark.parametrize(
    "path", ["/nowhere.md", "/docs.md", "/.md", "/docs/intro/.md", "/..%2f..%2fetc/passwd.md"]
)
def test_unknown_page_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json() == {"message": "The book has no such page. Choose one from /llms.txt."}


@pytest.mark.parametrize("path", _FILES)
def test_rate_limit_is_that_of_the_reader(library: Book, path: str) -> None:
    access = access_of(AccessSettings(per_reader=2, limit_loopback=True))
    with TestClient(create_app(library, Settings(), access)) as client:
        assert client.get("/reader/contents").status_code == 200
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"reader";q=2;w=60'
        assert client.get(path).status_code == 429
        assert client.get("/reader/contents").status_code == 429


def test_no_contract_route_is_shadowed(library: Book) -> None:
    app = create_app(library)
    described = app.openapi()["paths"]
    named = [
        re.sub(r"\{[^}]*\}", "x.md", path)
        for path, methods in described.items()
        if "get" in methods
    ]
    assert any(path.endswith(".md") for path in named)
    with TestClient(app) as client:
        for path in (*named, "/read/x.md"):
            answer = client.get(path)
            assert answer.headers["content-type"] != "text/markdown; charset=utf-8"
            assert "/llms.txt" not in answer.text, path


async def test_page_with_the_path_of_another_route_is_linked_to_its_site(
    library: Book, book_folder: Path
) -> None:
    await library.ingest(read_book(book_folder, SiteOptions(route_base_path="read")))
    settings = Settings(access=AccessSettings(keys="required"))
    with TestClient(create_app(library)) as client:
        assert client.get("/read/intro.md").headers["content-type"].startswith("text/html")
        assert list(links_of(client.get("/llms.txt").text)) == [
            "/read/intro",
            "/read/workshop/building",
        ]
        assert client.get("/reader/page?path=read/intro").json()["markdown"] is None
        assert "A kettle boils water" in client.get("/llms-full.txt").text
    with TestClient(create_app(library, settings, access_of(needs_keys=True))) as client:
        assert client.get("/read/intro.md").status_code == 200  # it asks for the key


def test_reader_page_names_its_markdown_and_labels(client: TestClient) -> None:
    told = client.get("/reader/page?path=docs/intro").json()
    assert told["markdown"] == "docs/intro.md"
    assert told["labels"] == {
        "copyPage": "Copy page as Markdown",
        "copied": "Copied",
        "failed": "Something went wrong. Try again.",
    }


async def test_labels_are_in_the_language_of_the_page(library: Book, book_folder: Path) -> None:
    (book_folder / "urdu.md").write_text(
        "# نوڈز\n\nروبوٹ کا زیادہ تر ڈیٹا ایک ہی سمت میں بار بار بہتا ہے۔ یہ کتاب اردو میں ہے۔\n",
        "utf-8",
    )
    await library.ingest(read(book_folder))
    with TestClient(create_app(library)) as client:
        told = client.get("/reader/page?path=docs/urdu").json()
        assert told["language"] == "ur"
        assert told["labels"]["copyPage"] == "صفحہ Markdown میں نقل کریں"
