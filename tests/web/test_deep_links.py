"""Citations' deep links, opened in a real browser on the sample book as Docusaurus builds it."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from bythebook.answering.citations import deep_link
from bythebook.ingestion.read_book import read_book
from bythebook.text.text_fragments import folded
from bythebook.types import Passage
from tests.sources import docusaurus
from tests.support.samples import SAMPLE_BOOK
from tests.web.sample_site import serving

pytestmark = pytest.mark.real

_LINKS = 50
# The words of every block that the window shows.
_SEEN = """() => [...document.querySelectorAll("p,li,summary,aside,.admonition,td,h1,h2,h3")]
  .filter((block) => {
    const box = block.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight && box.height > 0;
  })
  .map((block) => block.textContent).join("\\n")"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built = docusaurus.build("sample", {".": SAMPLE_BOOK}) / "build"
    with serving(built, tmp_path_factory.mktemp("site")) as address:
        yield address


def _quotes() -> list[tuple[Passage, str]]:
    """One unit with a fragment of every so many, from all over the book."""
    found = [
        (passage, passage.unit_text(unit))
        for passage in read_book(SAMPLE_BOOK / "docs").passages
        for unit in passage.units
        if unit.fragment and passage.metadata.language == "en"
    ]
    return found[:: len(found) // _LINKS][:_LINKS]


def _shows(page: Page, quote: str) -> bool:
    """Wait for the words in the window: a browser scrolls again while the page is built."""
    for _ in range(100):
        if folded(quote[:60]) in folded(page.evaluate(_SEEN)):
            return True
        page.wait_for_timeout(100)
    return False


def test_a_link_opens_the_page_at_the_quoted_words(site: str, browser: Browser) -> None:
    missed, elsewhere = [], []
    page = browser.new_page(viewport={"width": 1000, "height": 400})
    for passage, quote in _quotes():
        parts = urlsplit(deep_link(passage, quote))
        # From one address to the same with another fragment a browser only scrolls.
        page.goto("about:blank")
        page.goto(f"{site}{parts.path}#{parts.fragment}")
        if not _shows(page, quote):
            missed.append(quote)
        anchor = passage.place.url.partition("#")[2]
        if anchor and page.locator(f'[id="{anchor}"]').count() == 0:
            elsewhere.append(anchor)
    page.close()
    assert len(_quotes()) == _LINKS
    assert elsewhere == []
    assert len(missed) <= 1, missed
