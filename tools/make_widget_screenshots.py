"""Writes docs/screenshots/widget-*.png: the widget on the sample book as Docusaurus builds it.

Usage: python tools/make_widget_screenshots.py [folder]. Needs Chromium and Docusaurus (sh
.ci/install); looks best where a text font for Latin and Arabic script is installed, such as Noto.
"""

from __future__ import annotations

import asyncio
import mimetypes
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Browser, Page, expect

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.sources import docusaurus
from tests.support.samples import SAMPLE_BOOK
from tests.web.browser_fixtures import book_server, free_port, open_browser, site

from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book
from bythebook.wiring import build_book

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
BASE = "/physical-ai-book"
READING = f"{BASE}/docs/ros2/nodes-and-topics"
WIDE, SMALL = (980, 660), (390, 780)


def ingest(home: Path) -> None:
    """Before there is a browser: it has an event loop of its own."""
    library = build_book(load_settings({"home": home}, environ={}), new=True)
    asyncio.run(library.ingest(read_book(SAMPLE_BOOK)))


def file_of(built: Path, server: str, path: str) -> tuple[str, bytes] | None:
    """A file of the built site; pages get the one line that embeds the widget."""
    parts = urlsplit(path)
    file = built / parts.path.removeprefix(BASE).strip("/")
    choices = (file, file / "index.html", file.with_name(f"{file.name}.html"))
    found = next((choice for choice in choices if choice.is_file()), None)
    if found is None:
        return None
    content = found.read_bytes()
    if found.suffix == ".html":
        options = "".join(f' data-{name}="{value}"' for name, value in parse_qsl(parts.query))
        line = f'<script src="{server}/widget.js"{options} async></script></body>'
        content = content.replace(b"</body>", line.encode())
    return mimetypes.guess_type(found.name)[0] or "text/html", content


@contextmanager
def opened(browser: Browser, url: str, size: tuple[int, int], theme: str) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    page.goto(url)
    page.wait_for_selector("by-the-book .frame", state="attached")
    yield page
    context.close()


def ask(page: Page, question: str) -> None:
    page.locator("by-the-book .composer textarea").fill(question)
    page.keyboard.press("Enter")
    expect(page.locator("by-the-book .answered.done").last).to_be_visible()


def start(page: Page) -> None:
    page.locator("by-the-book .launcher").click()


def answer(page: Page) -> None:
    start(page)
    ask(page, "How do ROS 2 nodes exchange messages?")
    ask(page, "What quality of service settings are there?")
    page.locator("by-the-book .answered").last.locator(".marker").first.hover()


def table(page: Page) -> None:
    start(page)
    ask(page, "Why is a map published with transient local durability?")
    show_end(page)


def show_end(page: Page) -> None:
    """Scroll to the last source line and the questions to ask next."""
    page.locator("by-the-book .log").evaluate("(log) => log.scrollTo(0, log.scrollHeight)")


def refusal(page: Page) -> None:
    start(page)
    ask(page, "What is the price of a VLA model?")


def greeting(page: Page) -> None:
    start(page)
    ask(page, "Hello!")


def selection(page: Page) -> None:
    page.evaluate(
        """() => {
          const paragraphs = [...document.querySelectorAll("article p")];
          const p = paragraphs.find((p) => p.innerText.includes("A node is"));
          getSelection().selectAllChildren(p);
        }"""
    )
    page.locator("by-the-book .about").wait_for()


def chosen(page: Page) -> None:
    selection(page)
    page.locator("by-the-book .about").click()
    ask(page, "What is a node?")


def feedback(page: Page) -> None:
    start(page)
    ask(page, "What is a topic?")
    page.locator("by-the-book .actions .icon").nth(2).click()


def code(page: Page) -> None:
    start(page)
    ask(page, "How do I create a publisher in Python?")
    page.locator("by-the-book .code").first.evaluate("(code) => code.scrollIntoView()")


SHOTS: dict[str, tuple[Callable[[Page], None], tuple[int, int], str, str]] = {
    "welcome": (start, WIDE, "light", ""),
    "answer": (answer, WIDE, "light", ""),
    "answer-dark": (answer, WIDE, "dark", ""),
    "code": (code, WIDE, "light", ""),
    "table": (table, WIDE, "light", ""),
    "refusal": (refusal, WIDE, "light", ""),
    "greeting": (greeting, WIDE, "light", "suggestions=What is a topic?|What is SLAM?"),
    "selection": (selection, WIDE, "light", ""),
    "selection-answer": (chosen, WIDE, "light", ""),
    "feedback": (feedback, WIDE, "light", ""),
    "mobile": (answer, SMALL, "light", ""),
    "urdu": (refusal, WIDE, "light", "language=ur&position=left"),
    "urdu-mobile-dark": (answer, SMALL, "dark", "language=ur"),
    "urdu-table": (table, SMALL, "light", "language=ur"),
}


def main(folder: Path = FOLDER) -> None:
    built = docusaurus.build("sample", {".": SAMPLE_BOOK}) / "build"
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as draft:
        home = Path(draft) / "home"
        ingest(home)
        address = f"http://127.0.0.1:{port}"
        with (
            open_browser() as browser,
            book_server(home, origins=address) as server,
            site(lambda path: file_of(built, server, path), {}, port),
        ):
            for name, (act, size, theme, options) in SHOTS.items():
                with opened(browser, f"{address}{READING}?{options}", size, theme) as page:
                    act(page)
                    page.wait_for_timeout(200)
                    file = folder / f"widget-{name}.png"
                    page.screenshot(path=file)
                    print(f"{file.name}: {file.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
