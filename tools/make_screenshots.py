"""Takes the pictures of the README from a running server with the sample book.

bythebook serve & python tools/make_screenshots.py http://127.0.0.1:8000/
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
SHOTS = {
    "answer.png": "What is domain randomisation?",
    "refusal.png": "How do I train GPT-4?",
}


def main(address: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 860, "height": 600})
        page.goto(address)
        for name, question in SHOTS.items():
            page.fill("#question", question)
            page.click("button")
            page.wait_for_selector("#reply[aria-busy=false] .meta")
            page.screenshot(path=FOLDER / name, full_page=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
