"""The reader's routes: contents, pages, search and first questions."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.server.app import create_app
from bythebook.server.pages.routes import by_title
from bythebook.server.pages.suggest import candidates, suggestions
from bythebook.text.outline import OutlineEntry, outline, path_of
from tests.server.access_fixtures import access_of
from tests.server.conftest import FragileEmbedder
from tests.support.samples import read

_MARKDOWN = ("/llms.txt", "/llms-full.txt", "/docs/intro.md")


def test_contents_are_in_the_order_of_reading(client: TestClient) -> None:
    told = client.get("/reader/contents").json()
    assert told["title"] == "Welcome"
    pages = [page for part in told["parts"] for page in part["pages"]]
    assert pages == [
        {"path": "docs/intro", "title": "Welcome"},
        {"path": "docs/workshop/building", "title": "Building a kite"},
    ]


def test_page_response_contains_html_headings_and_neighbours(client: TestClient) -> None:
    told = client.get("/reader/page?path=docs/intro").json()
    assert told["title"] == "Welcome"
    assert 'id="kites"' in told["html"]
    assert "bimetal strip" in told["html"]
    assert (told["previous"], told["next"]["path"]) == (None, "docs/workshop/building")
    assert [heading["anchor"] for heading in told["headings"]] == ["kites", "kettles"]
    assert client.get("/reader/page").json()["path"] == "docs/intro"


@pytest.mark.parametrize("path", ["nowhere", "../../etc/passwd", "docs/intro/more", "%00"])
def test_unknown_page_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(f"/reader/page?path={path}")
    assert answer.status_code == 404
    assert answer.json() == {"message": "The book has no such page. Choose one from the contents."}


@pytest.mark.parametrize(
    "path",
    [
        *("/reader/contents", "/reader/page?path=docs/intro", "/reader/suggestions"),
        *_MARKDOWN,
    ],
)
async def test_etag_is_valid_until_the_book_changes(
    client: TestClient, library: Book, book_folder: Path, path: str
) -> None:
    first = client.get(path)
    assert first.headers["cache-control"] == "private, no-cache"
    assert first.headers["vary"].startswith("Accept-Encoding, Authorization")
    tag = {"If-None-Match": first.headers["etag"]}
    assert client.get(path, headers=tag).status_code == 304
    (book_folder / "intro.md").write_text("# Welcome\n\nAnother book about sails.\n", "utf-8")
    await library.ingest(read(book_folder))
    again = client.get(path, headers=tag)
    assert again.status_code == 200
    assert again.headers["etag"] != first.headers["etag"]


def test_search_finds_headings_by_prefix_and_sentences_by_words(
    client: TestClient,
) -> None:
    told = client.post("/reader/search", json={"text": "kett"}).json()["results"]
    assert (told[0]["kind"], told[0]["title"], told[0]["at"]) == ("section", "Kettles", "kettles")
    told = client.post("/reader/search", json={"text": "bimetal strip"}).json()["results"]
    assert told[0]["kind"] == "text"
    assert told[0]["snippet"] == "It switches itself off by means of a bimetal strip."
    page = client.get(f"/reader/page?path={told[0]['path']}").json()
    assert f'id="{told[0]["at"]}"' in page["html"]


def test_titles_are_found_while_the_embedder_is_down(
    client: TestClient, embedder: FragileEmbedder
) -> None:
    embedder.broken = True
    told = client.post("/reader/search", json={"text": "kettles"}).json()["results"]
    assert [found["title"] for found in told] == ["Kettles"]
    assert client.post("/reader/search", json={"text": "bimetal"}).status_code == 503


@pytest.mark.parametrize(
    "body", [{"text": ""}, {"text": "  "}, {"text": "a" * 501}, {}, {"text": 1}]
)
def test_empty_search_is_rejected(client: TestClient, body: dict[str, object]) -> None:
    assert client.post("/reader/search", json=body).status_code == 400


def test_titles_are_found_in_any_script(book_folder: Path) -> None:
    pages = outline(read(book_folder).passages)
    urdu = OutlineEntry("/ur", "نوڈز اور ٹاپکس", "", "", "ur", (), 1, 9)
    assert [found.url for found in by_title("ٹاپ", [*pages, urdu], limit=5)] == ["/ur"]
    assert by_title("?!", pages, limit=5) == []


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://book.example/docs/a/", "docs/a"),
        ("/docs/%E7%AC%AC%E4%B8%80", "docs/第一"),
        ("/docs/第一", "docs/第一"),
        ("notes/a.md", "notes/a.md"),
    ],
)
def test_page_path_is_the_path_of_its_url(url: str, path: str) -> None:
    assert path_of(url) == path


async def test_suggestions_contain_only_answered_questions(book_folder: Path) -> None:
    pages = outline(read(book_folder).passages)

    async def answered(question: str) -> bool:
        return "kettles" in question

    assert list(candidates(pages, "en")) == [
        "What does the book say about kites?",
        "What does the book say about steps?",
        "What does the book say about kettles?",
        "What does the book say about sailcloth?",
    ]
    assert await suggestions(pages, answered) == ["What does the book say about kettles?"]
    assert await suggestions((), answered) == []


@pytest.mark.parametrize(
    ("path", "root"),
    [("/", "./"), ("/read/a", "../"), ("/read/a/b/c", "../../../"), ("/admin", "./")],
)
def test_a_page_finds_its_files_from_any_depth(client: TestClient, path: str, root: str) -> None:
    answer = client.get(path)
    assert f'href="{root}palette.css"' in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "{{" not in answer.text
    tag = {"If-None-Match": answer.headers["etag"]}
    assert client.get(path, headers=tag).status_code == 304


def _with_keys(library: Book, **server: str) -> TestClient:
    settings = Settings.model_validate({"access": {"keys": "required"}, "server": server})
    return TestClient(create_app(library, settings, access_of(needs_keys=True)))


def test_reader_requires_a_key_if_keys_are_required(library: Book) -> None:
    with _with_keys(library) as client:
        for path in ("/reader/contents", "/reader/page", "/reader/suggestions", *_MARKDOWN):
            assert client.get(path).status_code == 401
        assert client.post("/reader/search", json={"text": "kite"}).status_code == 401
        assert "This book requires an API key" in client.get("/").text


def test_page_key_opens_the_reader_to_everyone(library: Book) -> None:
    with _with_keys(library, page_key="btp_0123") as client:
        for path in ("/reader/contents", *_MARKDOWN):
            assert client.get(path).status_code == 200
        assert client.post("/ask", json={"text": "What is a kite?"}).status_code == 401
        assert 'data-key="btp_0123"' in client.get("/").text
