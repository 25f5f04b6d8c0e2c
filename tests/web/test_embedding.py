"""The widget on pages of others: by the Docusaurus plugin, and as docs/authors/widget.md says."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.samples import ROOT
from tests.web.browser_fixtures import book_server, free_port, open_browser
from tests.web.sample_site import ASKED, BASE, build_sample, serving

pytestmark = pytest.mark.real

_QUESTION = "How do ROS 2 nodes exchange messages?"
_ANSWER = "ROS 2 nodes exchange messages over topics."


def _snippets() -> dict[str, str]:
    """What the documentation tells to put on a page of HTML."""
    documented = (ROOT / "docs" / "authors" / "widget.md").read_text("utf-8")
    blocks = re.findall(r"```html\n(.*?)```", documented, re.DOTALL)
    plain, with_options, mdbook, mkdocs, place = blocks
    assert "theme/head.hbs" in mdbook
    assert "extends" in mkdocs
    return {"plain": plain, "options": with_options.replace("btp_…", ""), "place": place}


@pytest.fixture(scope="module")
def built() -> Path:
    return build_sample()


@pytest.fixture(scope="module")
def site(
    built: Path, sample_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Browser, str]]:
    """A browser for which the name of the book's server leads to this machine, and the site."""
    folder, port = tmp_path_factory.mktemp("docusaurus"), free_port()
    (folder / "site").mkdir()
    for name, snippet in _snippets().items():
        body = snippet.replace("https://ask.example.org", f"http://{ASKED}")
        text = f"<!doctype html><html lang=en><title>A page</title><p>A book.</p>{body}</html>"
        (folder / "site" / f"{name}.html").write_text(text, "utf-8")
    with (
        serving(built, folder / "site") as origin,
        book_server(sample_home, origins=f"{origin},http://{ASKED}", port=port),
        open_browser(f"--host-resolver-rules=MAP {ASKED} 127.0.0.1:{port}") as browser,
    ):
        yield browser, origin


@pytest.fixture
def page(site: tuple[Browser, str]) -> Iterator[Page]:
    """A reader who was never here before."""
    browser, origin = site
    with browser.new_context(base_url=origin, viewport={"width": 1200, "height": 700}) as context:
        yield context.new_page()


def test_the_widget_is_on_every_page(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 15
    for file in pages:
        text = file.read_text("utf-8")
        assert text.count("/widget.js") == 1, file
        assert 'data-title="Ask &quot;Physical AI&quot;"' in text or "data-title='Ask " in text
        assert "data-position=" in text


def test_widget_stays_during_navigation_and_links_to_the_sentence(page: Page) -> None:
    page.goto(f"{BASE}docs/")
    widget = page.locator("by-the-book")
    expect(widget).to_have_count(1)
    page.evaluate("document.querySelector('by-the-book').dataset.same = 'yes'")
    page.get_by_role("link", name="Next").click()  # by Docusaurus' own router
    page.wait_for_url(re.compile("/docs/[a-z]"))
    expect(widget).to_have_attribute("data-same", "yes")
    expect(widget).to_have_count(1)

    widget.get_by_role("button", name='Ask "Physical AI"').click()
    widget.get_by_role("textbox").fill(_QUESTION)
    with page.expect_request("**/chat/stream") as asked:
        widget.get_by_role("textbox").press("Enter")
    told = asked.value.post_data_json
    assert told["page_url"] == page.url.partition("#")[0]  # the one navigated to
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()

    widget.locator("a.source").first.click()
    page.wait_for_url(re.compile("/docs/ros2/nodes-and-topics"))
    assert urlsplit(page.url).netloc.startswith("127.0.0.1")  # not the site's public address
    expect(page.get_by_role("article").get_by_text(_ANSWER).first).to_be_in_viewport()
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()  # the conversation is still there


@pytest.mark.parametrize("name", ["plain", "options"])
def test_a_documented_line_embeds_the_widget_on_a_plain_page(page: Page, name: str) -> None:
    page.goto(f"/{name}.html")
    widget = page.locator("by-the-book")
    widget.get_by_role("button", name="Ask the book").click()
    widget.get_by_role("textbox").fill(_QUESTION)
    widget.get_by_role("textbox").press("Enter")
    expect(widget.get_by_text(_ANSWER).first).to_be_visible()


def test_chat_can_be_placed_within_a_page(page: Page) -> None:
    page.goto("/place.html")
    expect(page.locator("by-the-book")).to_have_count(1)
    expect(page.locator("main").get_by_role("textbox")).to_be_visible()
