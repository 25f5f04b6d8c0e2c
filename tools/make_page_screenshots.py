"""Takes the pictures of the documentation: of the page and the author's report that a running
server with the sample book serves, and of the report that an evaluation wrote.

bythebook serve --home HOME & python tools/make_page_screenshots.py http://127.0.0.1:8000/ HOME
bythebook eval … --html report.html && python tools/make_page_screenshots.py report.html

HOME is a home for this alone: the book's own questions are asked, and spread over a month.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "screenshots"
QUESTIONS = ROOT / "examples" / "physical-ai-book" / "questions.jsonl"
REPORT = "eval-report.png"
WIDE, NARROW = (1400, 900), (390, 844)
_READ = "read/physical-ai-book/docs/"
_DAYS = 30

Act = Callable[[Page], None]


def _rest(page: Page) -> None:
    page.wait_for_timeout(900)


def ask(question: str) -> Act:
    def act(page: Page) -> None:
        page.locator("by-the-book textarea").fill(question)
        page.keyboard.press("Enter")
        page.wait_for_selector("by-the-book article.answered.done")

    return act


def ask_on_tab(question: str) -> Act:
    """Ask in a narrow window, and scroll to the source lines and the questions to ask next."""

    def act(page: Page) -> None:
        page.locator("#tabs button", has_text="Ask").click()
        ask(question)(page)
        page.locator("by-the-book .log").evaluate("(log) => log.scrollTo(0, log.scrollHeight)")

    return act


def follow(question: str) -> Act:
    def act(page: Page) -> None:
        ask(question)(page)
        page.locator("by-the-book .source").first.click()
        page.wait_for_selector(".cited")
        page.mouse.move(0, 0)

    return act


def search(words: str) -> Act:
    def act(page: Page) -> None:
        page.keyboard.press("/")
        page.keyboard.type(words)
        page.wait_for_selector("#found .snippet mark")

    return act


@dataclass(frozen=True)
class Shot:
    path: str = ""
    act: Act = _rest
    size: tuple[int, int] = WIDE
    scheme: str = "light"


_ASKED = "What quality of service settings are there?"
_TABLE = "Why is a map published with transient local durability?"
SHOTS = {
    "cover.png": Shot(),
    "answer.png": Shot(act=follow(_ASKED)),
    "dark.png": Shot(act=follow(_ASKED), scheme="dark"),
    "refusal.png": Shot(act=ask("What is the price of a VLA model?")),
    "search.png": Shot(f"{_READ}ros2/nodes-and-topics", search("quality of service")),
    "urdu.png": Shot("read/physical-ai-book/ur/docs/ros2/nodes-and-topics"),
    "mobile.png": Shot(f"{_READ}ros2/nodes-and-topics#discovery", size=NARROW),
    "mobile-answer.png": Shot(act=ask_on_tab(_TABLE), size=NARROW),
    "admin.png": Shot("admin", size=(1200, 1500)),
}


def main(source: str, home: Path | None = None) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        if source.startswith("http"):
            if home is not None:
                fill_log(source, home / "bythebook.db")
            for name, shot in SHOTS.items():
                shoot(browser, source, shot, FOLDER / name)
        else:
            shoot_report(browser, Path(source))
        browser.close()


def fill_log(address: str, database: Path) -> None:
    """The sample book's questions, some more often than others, asked over a month."""
    chance = random.Random(7)  # noqa: S311 - the same every time
    rows = map(json.loads, QUESTIONS.read_text("utf-8").splitlines())
    questions = [row["question"] for row in rows if row["selected_text"] is None]
    for question in [*questions, *chance.choices(questions, k=2 * len(questions))]:
        body = json.dumps({"text": question}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}ask", body, headers)  # noqa: S310
        urllib.request.urlopen(request).close()  # noqa: S310
    with sqlite3.connect(database) as log:
        for (query,) in log.execute("SELECT query_id FROM queries ORDER BY query_id").fetchall():
            age = timedelta(days=_DAYS * chance.random() ** 1.4)
            asked_at = (datetime.now(UTC) - age).strftime("%Y-%m-%d %H:%M:%S.%f")
            log.execute("UPDATE queries SET created_at=? WHERE query_id=?", (asked_at, query))


def shoot(browser: Browser, address: str, shot: Shot, file: Path) -> None:
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=shot.scheme,  # type: ignore[arg-type]
        device_scale_factor=1 if width > 500 else 2,
    )
    page = context.new_page()
    page.goto(address + shot.path)
    page.wait_for_selector("#article h1, #report .panel")
    shot.act(page)
    _rest(page)
    page.screenshot(path=file)
    context.close()


def shoot_report(browser: Browser, report: Path) -> None:
    """As far as the plots go; the tables and the worst cases are below."""
    page = browser.new_page(viewport={"width": 1040, "height": 1520})
    page.goto(report.resolve().as_uri())
    page.screenshot(path=FOLDER / REPORT)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
