"""Citations' deep links, opened in a real browser on the sample book as Docusaurus builds it."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from bythebook.answering.citations import deep_link
from bythebook.ingestion.read_book import read_book
from bythebook.text.text_fragments import folded
from bythebook.types import Passage
from tests.sources import docusaurus
from tests.support.samples import SAMPLE_BOOK
from tests.web.test_page import _FLAGS

pytestmark = pytest.mark.real

_LINKS = 50
# The words of every block that the window shows.
_SEEN = """() => [...document.querySelectorAll("p, li, summary, .admonition, td, h1, h2, h3")]
  .filter((block) => {
    const box = block.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight && box.height > 0;
  })
  .map((block) => block.textContent).join("\\n")"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built = docusaurus.build("sample", {".": SAMPLE_BOOK}) / "build"
    folder = tmp_path_factory.mktemp("site")
    (folder / "physical-ai-book").symlink_to(built)  # the site's base address
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's Chromium: sh .ci/install")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield opened
        opened.close()


def _quotes() -> list[tuple[Passage, str]]:
    """One unit with a fragment of every so many, from all over the book."""
    found = [
        (passage, passage.unit_text(unit))
        for passage in read_book(SAMPLE_BOOK / "docs").passages
        for unit in passage.units
        if unit.fragment and passage.metadata.language == "en"
    ]
    return found[:: len(found) // _LINKS][:_LINKS]


def test_a_link_opens_the_page_at_the_quoted_words(site: str, browser: Browser) -> None:
    missed, elsewhere = [], []
    page = browser.new_page(viewport={"width": 1000, "height": 400})
    for passage, quote in _quotes():
        parts = urlsplit(deep_link(passage, quote))
        # From one address to the same with another fragment a browser only scrolls.
        page.goto("about:blank")
        page.goto(f"{site}{parts.path}#{parts.fragment}")
        page.wait_for_load_state()
        if folded(quote[:60]) not in folded(page.evaluate(_SEEN)):
            missed.append(quote)
        anchor = passage.place.url.partition("#")[2]
        if anchor and page.locator(f'[id="{anchor}"]').count() == 0:
            elsewhere.append(anchor)
    page.close()
    assert len(_quotes()) == _LINKS
    assert elsewhere == []
    assert len(missed) <= 1, missed
