"""Pages copied as Markdown: on the built-in page, and on a site that Docusaurus builds."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bythebook.documents.markdown import files
from bythebook.documents.markdown.files import broken_links, links_of
from tests.server.running_server import PROGRAM
from tests.sources import docusaurus
from tests.web.sample_site import BASE, build_sample, serving

pytestmark = pytest.mark.real

_PAGE = "physical-ai-book/docs/ros2/nodes-and-topics"
_URDU = "physical-ai-book/ur/docs/ros2/nodes-and-topics"
_LABEL = "Copy page as Markdown"
_CLIPBOARD = "navigator.clipboard.readText()"


def _context(browser: Browser, origin: str) -> BrowserContext:
    context = browser.new_context(base_url=origin, viewport={"width": 1200, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    return context


# --- the built-in page ----------------------------------------------------------------------------


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with _context(browser, server) as context:
        yield context.new_page()


def test_button_copies_the_page_as_markdown(page: Page) -> None:
    page.goto(f"/read/{_PAGE}")
    button = page.get_by_role("button", name=_LABEL)
    expect(button).to_have_count(1)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("article").get_by_role("status")).to_have_text("Copied")
    copied = page.evaluate(_CLIPBOARD)
    assert copied == page.request.get(f"/{_PAGE}.md").text()
    assert copied.startswith("# Nodes and topics\n\nSource: https://physical-ai.example/")


def test_button_is_in_the_language_of_the_page(page: Page) -> None:
    page.goto(f"/read/{_URDU}")
    page.get_by_role("button", name="صفحہ Markdown میں نقل کریں").click()
    expect(page.locator("article").get_by_role("status")).not_to_be_empty()
    assert page.evaluate(_CLIPBOARD).startswith("# نوڈز اور ٹاپکس\n")


def test_failure_is_said_next_to_the_button(page: Page) -> None:
    page.goto(f"/read/{_PAGE}")
    page.route("**/*.md", lambda route: route.fulfill(status=503, body="{}"))
    page.get_by_role("button", name=_LABEL).click()
    expect(page.locator("article").get_by_role("status")).to_have_text(
        "Something went wrong. Try again."
    )


def test_cover_has_no_button(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Start reading")).to_be_visible()
    expect(page.get_by_role("button", name=_LABEL)).to_have_count(0)


# --- a site of Docusaurus -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(sample_home: Path) -> Path:
    """The site, with the Markdown that the plugin's command wrote after the build."""
    # A site that was built by other code is built again.
    sources = sorted(Path(files.__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYTHEBOOK_HOME", str(sample_home))
        patch.setenv("PATH", f"{Path(PROGRAM).parent}:{os.environ['PATH']}")
        return build_sample("markdown", more=", markdown: true", **{"exporter.txt": digest})


@pytest.fixture(scope="module")
def origin(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(built, tmp_path_factory.mktemp("site")) as address:
        yield address


@pytest.fixture
def docs(browser: Browser, origin: str) -> Iterator[Page]:
    with _context(browser, origin) as context:
        yield context.new_page()


def test_build_has_the_markdown_of_every_page(built: Path) -> None:
    assert broken_links(built, base_url=BASE) == []
    targets = list(links_of((built / "llms.txt").read_text("utf-8")))
    assert len(targets) == 20
    assert f"https://physical-ai.example{BASE}docs/ros2/nodes-and-topics.md" in targets
    whole = (built / "llms-full.txt").read_text("utf-8")
    paths = docusaurus.pages(built.parent)  # of docs; others have no Markdown
    assert len(paths) > 15
    for path in paths:
        text = (built / f"{path.removeprefix(BASE).strip('/')}.md").read_text("utf-8")
        assert text.startswith("# ")
        assert text in whole


def test_button_of_a_site_copies_the_page_that_is_open(docs: Page, built: Path) -> None:
    docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    button = docs.get_by_role("button", name=_LABEL)
    for _ in range(2):
        expect(button).to_have_count(1)
        button.focus()
        docs.keyboard.press("Enter")
        expect(docs.locator(".bythebook-copy-page").get_by_role("status")).to_have_text("Copied")
        name = docs.evaluate("location.pathname").removeprefix(BASE).strip("/")
        assert docs.evaluate(_CLIPBOARD) == (built / f"{name}.md").read_text("utf-8")
        before = docs.url
        docs.locator("a.pagination-nav__link--next").click()  # by Docusaurus' own router
        docs.wait_for_url(lambda url, before=before: url != before)
    expect(button).to_have_count(1)


@pytest.mark.parametrize("answer", ["404", "a page"])
def test_no_button_where_the_file_is_missing(docs: Page, answer: str) -> None:
    found = {"status": 200, "content_type": "text/html"} if answer == "a page" else {"status": 404}
    docs.route("**/*.md", lambda route: route.fulfill(**found))  # type: ignore[arg-type]
    with docs.expect_response("**/*.md"):
        docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    docs.wait_for_load_state("networkidle")
    expect(docs.get_by_role("button", name=_LABEL)).to_have_count(0)


def test_button_is_readable_in_both_colour_modes(docs: Page) -> None:
    docs.goto(f"{BASE}docs/ros2/nodes-and-topics")
    button = docs.get_by_role("button", name=_LABEL)
    grounds = set()
    for theme in ("light", "dark"):
        docs.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        docs.wait_for_timeout(600)  # the transition of the theme
        ground, ink = button.evaluate(
            "(it) => [getComputedStyle(it).backgroundColor, getComputedStyle(it).color]"
        )
        grounds.add(ground)
        lighter, darker = sorted((_luminance(ground), _luminance(ink)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    assert len(grounds) == 2


def _luminance(colour: str) -> float:
    """The relative luminance of an opaque ``rgb(…)``, as WCAG defines it."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
