"""The page of the API in a real browser, on a server that needs keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser_fixtures import book_server, new_key

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server(sample_home: Path) -> Iterator[str]:
    with book_server(sample_home, BYTHEBOOK_KEYS="required") as address:
        yield address


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """The page; where a test ends well, the console said nothing and nobody else was asked."""
    problems: list[str] = []
    asked: list[str] = []
    context = browser.new_context(base_url=server)
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert problems == []
    assert asked
    assert [url for url in asked if not url.startswith(f"{server}/")] == []


def test_a_request_can_be_sent_with_a_key(page: Page, sample_home: Path) -> None:
    page.goto("/docs")
    page.click("button.authorize")
    page.locator(".auth-container input").first.fill(new_key(sample_home))
    page.locator(".auth-container button.authorize").first.click()
    page.click("button.btn-done")
    operation = page.locator("#operations-ask-ask")
    operation.locator(".opblock-summary-control").click()
    operation.locator("button.execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text("has_relevant_context")
    expect(operation.locator(".live-responses-table")).to_contain_text("x-request-id")


def test_an_operation_has_an_address(page: Page) -> None:
    page.goto("/docs#/ask/ask")
    expect(page.locator("#operations-ask-ask button.execute")).to_be_visible()
