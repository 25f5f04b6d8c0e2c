"""The page of the API in a real browser, on a server that needs keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.web.browser_fixtures import book_server, open_browser
from tests.web.test_page import _AXE, _key

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(sample_home: Path) -> Iterator[str]:
    with book_server(sample_home, origins="", BYTHEBOOK_KEYS="required") as address:
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
    page.goto("/docs")
    yield page
    context.close()
    assert problems == []
    assert asked
    assert [url for url in asked if not url.startswith(f"{server}/")] == []


def _send(page: Page, operation: str) -> None:
    page.locator(f"nav a[href='#{operation}']").click()
    page.locator(f"#{operation} form.try button").click()


def test_every_kind_of_request_can_be_sent_with_a_key(page: Page, sample_home: Path) -> None:
    expect(page.locator("#key-state")).to_have_text("This server needs a key.")
    page.fill("#key", _key(sample_home))
    page.click("#key-form button")
    expect(page.locator("#key-state")).to_contain_text("is sent")
    _send(page, "ask")
    expect(page.locator("#ask .status")).to_contain_text("200 in")
    expect(page.locator("#ask .reply")).to_contain_text('"has_relevant_context": true')
    expect(page.locator("#ask .head")).to_contain_text("x-request-id: ")
    _send(page, "chat_stream")
    expect(page.locator("#chat_stream .reply")).to_contain_text("event: done")
    _send(page, "chat_list_threads")
    expect(page.locator("#chat_list_threads .reply")).to_contain_text('"threads": [')


def test_a_link_opens_the_part_that_it_leads_to(page: Page) -> None:
    page.goto("/docs#envelope_query")
    page.reload()
    expect(page.locator("#envelope_query form.try")).to_be_visible()
    page.locator("#envelope_query details summary").first.click()
    page.locator("#envelope_query a[href='#schema-EnvelopeQueryResponse']").first.click()
    expect(page.locator("#schema-EnvelopeQueryResponse table")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_accessibility_violations(browser: Browser, server: str, scheme: str) -> None:
    axe = next(_AXE.glob("axe-*.js"), None)
    if axe is None:
        pytest.skip("needs axe-core: sh .ci/install")
    context = browser.new_context(
        base_url=server,
        color_scheme=scheme,  # type: ignore[arg-type]
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto("/docs#chat_stream")
    page.add_script_tag(path=axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    told = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
    context.close()
    assert told == []
