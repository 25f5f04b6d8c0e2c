"""Takes the pictures of the documentation: of the page that a running server with the sample book
serves, and of the report that an evaluation wrote.

bythebook serve & python tools/make_screenshots.py http://127.0.0.1:8000/
bythebook eval … --html report.html && python tools/make_screenshots.py report.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
SHOTS = {
    "answer.png": "What is domain randomisation?",
    "refusal.png": "How do I train GPT-4?",
}


REPORT = "eval-report.png"


def main(source: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        if source.startswith("http"):
            shoot_page(browser, source)
        else:
            shoot_report(browser, Path(source))
        browser.close()


def shoot_page(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 860, "height": 600})
    page.goto(address)
    for name, question in SHOTS.items():
        page.fill("#question", question)
        page.click("button")
        page.wait_for_selector("#reply[aria-busy=false] .meta")
        page.screenshot(path=FOLDER / name, full_page=True)


def shoot_report(browser: Browser, report: Path) -> None:
    """As far as the plots go; the tables and the worst cases are below."""
    page = browser.new_page(viewport={"width": 1040, "height": 1520})
    page.goto(report.resolve().as_uri())
    page.screenshot(path=FOLDER / REPORT)


if __name__ == "__main__":
    main(sys.argv[1])
