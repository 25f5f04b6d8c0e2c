"""Take the pictures of the documentation: of the page, the widget on a Docusaurus site, a report.

python tools/make_screenshots.py REPORT.html

REPORT.html is what ``bythebook eval … --html`` wrote about the sample book. Needs Chromium and
Docusaurus (sh .ci/install).
"""

from __future__ import annotations

import asyncio
import mimetypes
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.sources import docusaurus
from tests.support.samples import SAMPLE_BOOK
from tests.web.browser_fixtures import book_server, free_port, open_browser, site

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
BASE = "/physical-ai-book"
QUESTION = "What quality of service settings are there?"


def main(report: Path) -> None:
    built = docusaurus.build("sample", {".": SAMPLE_BOOK}) / "build"
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as draft:
        home = Path(draft) / "home"
        library = Book(load_settings({"home": home}, environ={}), new=True)
        asyncio.run(library.ingest(read_book(SAMPLE_BOOK)))
        with (
            open_browser() as browser,
            book_server(home, origins=address) as server,
            site(lambda path: file_of(built, server, path), {}, port),
        ):
            page = opened(browser, server, (1400, 900))
            ask(page, QUESTION)
            page.locator("by-the-book .source").first.click()
            page.wait_for_selector(".cited")
            page.mouse.move(0, 0)
            shoot(page, "answer")
            page = opened(browser, f"{address}{BASE}/docs/ros2/nodes-and-topics", (980, 660))
            page.locator("by-the-book .launcher").click()
            ask(page, "How do ROS 2 nodes exchange messages?")
            ask(page, QUESTION)
            page.locator("by-the-book .answered").last.locator(".marker").first.hover()
            shoot(page, "widget-answer")
            # As far as the plots go; the tables and the worst cases are below.
            shoot(opened(browser, report.resolve().as_uri(), (1040, 1520)), "eval-report")


def file_of(built: Path, server: str, path: str) -> tuple[str, bytes] | None:
    """A file of the built site; pages get the one line that embeds the widget."""
    file = built / urlsplit(path).path.removeprefix(BASE).strip("/")
    choices = (file, file / "index.html", file.with_name(f"{file.name}.html"))
    found = next((choice for choice in choices if choice.is_file()), None)
    if found is None:
        return None
    content = found.read_bytes()
    if found.suffix == ".html":
        line = f'<script src="{server}/widget.js" async></script></body>'
        content = content.replace(b"</body>", line.encode())
    return mimetypes.guess_type(found.name)[0] or "text/html", content


def opened(browser: Browser, url: str, size: tuple[int, int]) -> Page:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    page.goto(url)
    return page


def ask(page: Page, question: str) -> None:
    page.locator("by-the-book textarea").fill(question)
    page.keyboard.press("Enter")
    expect(page.locator("by-the-book .answered.done").last).to_be_visible()


def shoot(page: Page, name: str) -> None:
    page.wait_for_timeout(900)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
