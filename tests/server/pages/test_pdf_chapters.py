"""The reader shows every chapter of a PDF file, and its links name pages of the file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.server.app import create_app
from tests.server.conftest import fakes
from tests.support.pdf_writer import BOLD, PdfWriter


def _pdf() -> bytes:
    pdf = PdfWriter("Air")
    for title in ("Kites", "Wind"):
        page = pdf.page().text(72, 740, title, 20, BOLD).text(72, 700, "Lift", 14, BOLD)
        page.text(72, 680, f"{title} need air, which is lifted.")
        pdf.page().text(72, 700, f"{title} are on the second page of their section, too.")
    return pdf.bytes()


@pytest.fixture
async def book(tmp_path: Path) -> Book:
    (tmp_path / "air.pdf").write_bytes(_pdf())
    book = Book(**fakes())
    await book.ingest(read_book(tmp_path / "air.pdf", SiteOptions(base_url="/books/")))
    return book


@pytest.fixture
def client(book: Book) -> Iterator[TestClient]:
    with TestClient(create_app(book)) as client:
        yield client


def test_every_chapter_has_a_page(client: TestClient) -> None:
    told = client.get("/reader/contents").json()
    [part] = told["parts"]
    assert part["title"] == "Air"
    assert part["pages"] == [
        {"path": "books/air.pdf", "title": "Kites"},
        {"path": "books/air.pdf?chapter=2", "title": "Wind"},
    ]
    for entry in part["pages"]:
        page = client.get("/reader/page", params={"path": entry["path"]}).json()
        assert page["title"] == entry["title"]
        assert f"{entry['title']} need air" in page["html"]


def test_a_section_that_goes_on_has_one_heading_and_every_page_a_position(
    client: TestClient,
) -> None:
    page = client.get("/reader/page", params={"path": "books/air.pdf?chapter=2"}).json()
    assert [heading["text"] for heading in page["headings"]] == ["Lift"]
    assert page["html"].count("Lift<") == 1
    assert 'id="page=3"' in page["html"]
    assert '<span id="page=4"></span>' in page["html"]


def test_search_results_open_the_chapter(client: TestClient) -> None:
    results = client.post("/reader/search", json={"text": "Wind"}).json()["results"]
    assert results[0]["path"] == "books/air.pdf?chapter=2"


def test_the_address_of_a_result_opens_the_reader(client: TestClient) -> None:
    assert client.get("/read/books/air.pdf?chapter=2#page=4").status_code == 200
