"""The page in a real browser, on a real server with the real book."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

pytestmark = pytest.mark.real

_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]


@pytest.fixture(scope="module")
def server(sample_home: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("bythebook")), "serve", "--port", str(port)]
    process = subprocess.Popen([*command, "--home", str(sample_home)], env={**os.environ})
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/health")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0


def _wait_for(url: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                assert response.status == 200
                return
        except OSError:
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def browser_page(server: str) -> Iterator[Page]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's Chromium: sh .ci/install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        page = browser.new_page()
        page.problems = []  # type: ignore[attr-defined]
        page.on("console", lambda message: page.problems.append(message.text))  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
        page.goto(server)
        yield page
        browser.close()


def _ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")
    page.wait_for_selector("#reply[aria-busy=false] .meta")


def test_a_question_gets_a_cited_answer(browser_page: Page) -> None:
    _ask(browser_page, "How do ROS 2 nodes exchange messages?")
    expect(browser_page.locator(".answer")).to_contain_text("exchange messages over topics")
    browser_page.click(".marker >> nth=0")
    assert browser_page.url.endswith("#source-1")
    source = browser_page.locator("#source-1 a")
    expect(source).to_have_attribute(
        "href", re.compile(r"/docs/ros2/nodes-and-topics#topics:~:text=")
    )
    assert browser_page.problems == []  # type: ignore[attr-defined]


def test_a_refusal_names_what_is_nearby(browser_page: Page) -> None:
    _ask(browser_page, "How do I train GPT-4?")
    expect(browser_page.locator(".refusal")).to_contain_text("does not contain sufficient")
    assert browser_page.locator("#reply li a").count() > 0


def test_a_selection_answers_alone(browser_page: Page) -> None:
    browser_page.click("summary")
    browser_page.fill("#selection", "A topic is a named channel that carries messages.")
    _ask(browser_page, "What is the capital of France?")
    expect(browser_page.locator(".refusal")).to_contain_text("The selected text does not contain")
    browser_page.click("summary")


def test_a_hostile_question_stays_text(browser_page: Page) -> None:
    _ask(browser_page, "<img src=x onerror=alert(1)> what is a topic?")
    assert browser_page.locator("#reply img").count() == 0
    assert browser_page.problems == []  # type: ignore[attr-defined]
