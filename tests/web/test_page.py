"""The page in a real browser, on a real server with the real book."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from bythebook.ingestion.read_book import read_book
from bythebook.text.text_fragments import folded
from bythebook.types import Passage, Unit, UnitKind
from tests.support.samples import SAMPLE_BOOK
from tests.web.browser_fixtures import book_server, free_port, new_key, violations

pytestmark = pytest.mark.real

_PAGE = "/read/physical-ai-book/docs/ros2/nodes-and-topics"
_URDU = "/read/physical-ai-book/ur/docs/ros2/nodes-and-topics"

# What is marked, and whether a reader sees the beginning of it.
_CITED = """() => {
  const cited = [...document.querySelectorAll(".cited")];
  if (!cited.length) return { words: "", seen: false };
  const box = cited[0].getBoundingClientRect();
  const pane = document.querySelector("#page").getBoundingClientRect();
  const words = cited.map((unit) => unit.dataset.words ?? unit.textContent).join(" ");
  return { words, seen: box.height > 0 && box.top >= pane.top - 1 && box.top < pane.bottom - 10 };
}"""
_OPEN = """(detail) => {
  const event = new CustomEvent("bythebook:open", { detail, bubbles: true, cancelable: true });
  return !document.querySelector("by-the-book").dispatchEvent(event);
}"""


_IMAGE = base64.b64decode("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==")


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """What the console said: nothing, where a test has ended well."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def page(browser: Browser, server: str, problems: list[str]) -> Iterator[Page]:
    with _page(browser, server, problems) as page:
        yield page


@contextmanager
def _page(browser: Browser, server: str, problems: list[str], **options: Any) -> Iterator[Page]:
    context = browser.new_context(base_url=server, **options)
    context.route("https://physical-ai.example/**", lambda image: image.fulfill(body=_IMAGE))
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    context.close()


def _open(page: Page, path: str = "/") -> None:
    page.goto(path)
    page.wait_for_selector("#article h1")
    page.wait_for_selector("by-the-book", state="attached")  # added after the page's text


def _ask(page: Page, question: str) -> None:
    page.locator("by-the-book textarea").fill(question)
    page.keyboard.press("Enter")
    page.wait_for_selector("by-the-book article.answered.done")


def _letters(text: str) -> str:
    return folded(text).replace(" ", "")


_LONG = "What fault shows up most often the first time a new policy runs on the physical robot?"


def _check_marked(page: Page, words: str) -> None:
    page.wait_for_selector(".cited")
    cited = page.evaluate(_CITED)
    assert cited["seen"], words
    assert folded(words).replace(" ", "") in folded(cited["words"]).replace(" ", "")


# --- reading and asking ---------------------------------------------------------------------------


def test_citation_opens_its_sentence_in_the_book(page: Page) -> None:
    _open(page)
    expect(page.locator("by-the-book .idea")).to_have_count(4)
    _ask(page, "How do ROS 2 nodes exchange messages?")
    page.locator("by-the-book .marker").first.click()
    _check_marked(page, "ROS 2 nodes exchange messages over topics.")
    shared = page.url
    assert f"{_PAGE}#u" in shared
    page.go_back()
    expect(page.locator("#article.cover h1")).to_be_visible()
    page.go_forward()
    _check_marked(page, "ROS 2 nodes exchange messages over topics.")
    other = page.context.new_page()
    other.goto(shared)
    _check_marked(other, "ROS 2 nodes exchange messages over topics.")


def test_last_marker_of_a_long_answer_opens_exactly_the_words_before_it(page: Page) -> None:
    _open(page)
    _ask(page, _LONG)
    markers = page.locator("by-the-book .marker")
    assert markers.count() > 1
    last = page.locator("by-the-book .run > p:not(.origin)").last.inner_text()
    last = re.split(r"(?<=\.)\s", re.sub(r"\s*\d+$", "", last))[-1]
    markers.last.hover()
    quote = page.locator("by-the-book .card blockquote").inner_text()
    markers.last.click()
    for opened in (page, page.context.new_page()):
        if opened is not page:
            opened.goto(page.url)  # a shared address marks the same words
        _check_marked(opened, last)
        cited = opened.evaluate(_CITED)
        assert _letters(cited["words"]) == _letters(quote)
        in_view = opened.locator(".cited").last.bounding_box()
        assert in_view is not None
        assert 0 <= in_view["y"] < 800


def test_source_line_opens_the_sentence_and_reading_on_its_section(page: Page) -> None:
    _open(page)
    _ask(page, "What quality of service settings are there?")
    run = page.locator("by-the-book .run").first
    expect(run.locator(".source")).to_contain_text("Nodes and topics › Quality of service (QoS)")
    run.locator(".source").click()
    _check_marked(page, "A quality-of-service profile states how messages are delivered.")
    run.get_by_text("Read on in the book").click()
    expect(page).to_have_url(re.compile(rf"{_PAGE}#quality-of-service-qos"))
    expect(page.locator("#quality-of-service-qos")).to_be_in_viewport()
    expect(page.locator(".cited")).to_have_count(0)


def _citations() -> list[tuple[Passage, Unit]]:
    """Units of every kind, from all over the book."""
    found = [(p, u) for p in read_book(SAMPLE_BOOK / "docs").passages for u in p.units]
    chosen: list[tuple[Passage, Unit]] = []
    for kind in UnitKind:
        same = [each for each in found if each[1].kind is kind]
        chosen += same[:: max(1, len(same) // 10)][:10]
    return chosen


def test_every_citation_scrolls_to_its_sentence(page: Page) -> None:
    _open(page)
    cases = _citations()
    assert len(cases) >= 30
    missed = []
    for passage, unit in cases:
        quote = passage.unit_text(unit)
        page.evaluate("() => document.querySelector('.cited')?.classList.remove('cited')")
        detail = {"url": passage.place.url, "link": passage.place.url, "quote": quote[:500]}
        assert page.evaluate(_OPEN, detail)
        page.wait_for_selector(".cited", state="attached")
        cited = page.evaluate(_CITED)
        wanted = folded(_bare(quote[:500])).replace(" ", "")
        if not cited["seen"] or wanted not in folded(cited["words"]).replace(" ", ""):
            missed.append((passage.place.url, quote, cited))
    assert missed == []


def _bare(quote: str) -> str:
    """Code without its fences: what a page shows of it."""
    return "\n".join(quote.split("\n")[1:]).rstrip("`\n") if quote.startswith("```") else quote


def test_unknown_page_shows_a_message(page: Page, problems: list[str]) -> None:
    _open(page, "/read/no/such/page")
    expect(page.locator("#article .failure")).to_contain_text("no such page")
    problems.clear()  # the browser tells of the 404


def test_search_as_you_type_by_keyboard_alone(page: Page) -> None:
    _open(page, _PAGE)
    page.keyboard.press("/")
    page.keyboard.type("domain random")
    expect(page.locator("#found [role=option]").first).to_contain_text("Domain randomisation")
    page.keyboard.type("isation in simulation")
    page.wait_for_selector("#found .snippet mark")
    at = page.locator("#found [role=option].text").first.get_attribute("id")
    for _ in range(20):
        page.keyboard.press("ArrowDown")
        if page.locator("#search-box").get_attribute("aria-activedescendant") == at:
            break
    snippet = page.locator(f"#{at} .snippet").inner_text()
    page.keyboard.press("Enter")
    _check_marked(page, snippet.rstrip("…"))
    page.keyboard.press("/")
    expect(page.locator("#search-box")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#found")).to_be_hidden()


def test_the_book_can_be_read_by_keyboard_alone(page: Page) -> None:
    _open(page, _PAGE)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#page")).to_be_focused()
    page.locator("#contents a", has_text="Physics engines").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#article h1")).to_have_text("Physics engines")
    expect(page.locator("#contents [aria-current=page]")).to_have_text("Physics engines")
    page.locator(".turns .next").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#article h1")).to_have_text("Sensors in simulation")
    page.locator("by-the-book textarea").focus()
    page.keyboard.type("What is a topic?")
    page.keyboard.press("Enter")
    marker = page.locator("by-the-book article.done .marker").first
    marker.focus()
    page.keyboard.press("Enter")
    _check_marked(page, "A topic is a named channel")


def test_urdu_page_is_right_to_left(page: Page) -> None:
    _open(page, _URDU)
    article = page.locator("#article")
    expect(article).to_have_attribute("dir", "rtl")
    expect(article).to_have_attribute("lang", "ur")
    side = "element => getComputedStyle(element).direction"
    assert page.locator("#article .body p").first.evaluate(side) == "rtl"
    assert page.locator("#article pre").first.evaluate(side) == "ltr"


def test_page_follows_the_dark_mode_of_the_browser(
    browser: Browser, server: str, problems: list[str]
) -> None:
    with _page(browser, server, problems, color_scheme="dark") as page:
        _open(page, _PAGE)
        colour = "getComputedStyle(document.body).backgroundColor"
        red, green, blue = json.loads(page.evaluate(colour).replace("rgb(", "[").replace(")", "]"))
        assert max(red, green, blue) < 60


def test_narrow_window_shows_one_part_at_a_time(
    browser: Browser, server: str, problems: list[str]
) -> None:
    size = {"width": 390, "height": 800}
    with _page(browser, server, problems, viewport=size, has_touch=True) as page:
        _open(page)
        page.locator("#article .questions button").first.click()
        page.wait_for_selector("by-the-book article.answered.done .marker")
        expect(page.locator("#page")).to_be_hidden()
        page.locator("#tabs button", has_text="Contents").click()
        page.locator("#contents a", has_text="Nodes and topics").first.click()
        expect(page.locator("#article h1")).to_have_text("Nodes and topics")
        expect(page.locator("#chat")).to_be_hidden()
        wide = "document.documentElement.scrollWidth - innerWidth"
        assert page.evaluate(wide) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", _PAGE, _URDU, "/admin"])
def test_page_has_no_accessibility_violations(
    browser: Browser, server: str, problems: list[str], path: str, scheme: str
) -> None:
    with _page(browser, server, problems, color_scheme=scheme, bypass_csp=True) as page:
        page.goto(path)
        page.wait_for_selector("#article h1, #report .panel")
        assert violations(page) == []


# --- the author's page ----------------------------------------------------------------------------


def test_report_needs_no_key_on_loopback(
    browser: Browser, sample_home: Path, problems: list[str]
) -> None:
    with (
        book_server(sample_home) as server,  # of its own: a report is kept for a minute
        _page(browser, server, problems) as page,
    ):
        _open(page)
        _ask(page, "How do I prune an apple tree?")
        _ask(page, "What is a topic?")
        page.goto("/admin")
        expect(page.locator(".figures dd").first).not_to_have_text("0")
        expect(page.locator("svg .bar.answered").first).to_be_attached()
        expect(page.locator(".gaps")).to_contain_text("prune an apple tree")
        with page.expect_download() as download:
            page.locator("#export").click()
        assert "prune an apple tree" in Path(download.value.path()).read_text("utf-8-sig")


# --- where keys are asked for ---------------------------------------------------------------------


def test_page_asks_for_an_api_key_if_one_is_required(
    browser: Browser, sample_home: Path, problems: list[str]
) -> None:
    secret = new_key(sample_home, "--author")
    with book_server(sample_home, BYTHEBOOK_KEYS="required") as server:
        public = new_key(sample_home, "--publishable", "--origin", server)
        with _page(browser, server, problems) as page:
            page.goto("/")
            page.fill("#key", "btk_wrong")
            page.click("#key-form button")
            expect(page.locator("#key-error")).to_contain_text("not known")
            page.fill("#key", secret)
            page.click("#key-form button")
            expect(page.locator("#article h1")).to_be_visible()
            _ask(page, "What is a topic?")
            page.reload()
            expect(page.locator("#article h1")).to_be_visible()
            problems.clear()  # the browser tells of every 401
            page.goto("/admin")
            for wrong in ("btk_wrong", public):
                page.fill("#key", wrong)
                page.click("#key-form button")
                expect(page.locator("#said")).not_to_be_empty()
                assert page.locator(".panel").count() == 0
            page.fill("#key", secret)
            page.click("#key-form button")
            expect(page.locator(".panel").first).to_be_visible()
            problems.clear()


def test_a_publishable_key_in_the_settings_opens_the_page_to_everyone(
    browser: Browser, sample_home: Path, problems: list[str]
) -> None:
    port = free_port()
    key = new_key(sample_home, "--publishable", "--origin", f"http://127.0.0.1:{port}")
    environ = {"BYTHEBOOK_KEYS": "required", "BYTHEBOOK_PAGE_KEY": key}
    with (
        book_server(sample_home, port=port, **environ) as server,
        _page(browser, server, problems) as page,
    ):
        _open(page, _PAGE)
        _ask(page, "What is a topic?")
        assert page.locator("by-the-book .marker").count() > 0
        answer = page.request.get("/admin/report.json")
        assert answer.status == 401
