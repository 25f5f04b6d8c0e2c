"""The widget in a real browser: on an author's site, with the book's server at another origin."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bythebook.server.contracts.chat.threads import ChatFeedbackReason
from tests.web.browser_fixtures import book_pages, book_server, free_port, site, violations
from tests.web.hostile_server import REPLIES, hostile_server

pytestmark = pytest.mark.real

_PUBLISHED = "https://physical-ai.example"
_PAGE = "/physical-ai-book/docs/ros2/nodes-and-topics"
_ASKS = "How do ROS 2 nodes exchange messages?"
_LONG = "What fault shows up most often the first time a new policy runs on the physical robot?"


@dataclass
class Stage:
    server: str
    hostile: str
    site: str
    seen: list[dict[str, Any]] = field(default_factory=list)  # by the hostile server

    def url(self, path: str = _PAGE, **options: str) -> str:
        return f"{self.site}{path}?{urlencode(options)}"


def _page(server: str, path: str) -> tuple[str, bytes] | None:
    """A page of the book; what the address asks for become options of the script."""
    parts = urlsplit(path)
    body = book_pages().get(parts.path)
    options = dict(parse_qsl(parts.query))
    theme = f' data-theme="{options.pop("page-theme")}"' if "page-theme" in options else ""
    data = "".join(f' data-{name}="{html.escape(value)}"' for name, value in options.items())
    if body is None:
        return None
    page = (
        f'<!doctype html><html lang="en"{theme}><title>Book</title>'
        f'<link rel="canonical" href="{_PUBLISHED}{parts.path}"><main><h1>Book</h1>{body}</main>'
        f'<script src="{server}/widget.js"{data} async></script></html>'
    )
    return "text/html; charset=utf-8", page.encode()


@pytest.fixture(scope="module")
def stage(sample_home: Path) -> Iterator[Stage]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    seen: list[dict[str, Any]] = []
    with ExitStack() as opened:
        server = opened.enter_context(book_server(sample_home, origins=address))
        hostile = opened.enter_context(hostile_server(REPLIES, seen))
        policy = f"default-src 'none'; script-src {server}; connect-src {server} {hostile}"
        opened.enter_context(
            site(lambda path: _page(server, path), {"Content-Security-Policy": policy}, port)
        )
        yield Stage(server, hostile, address, seen)


@pytest.fixture
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "console",
        lambda message: (
            problems.append(message.text) if "Content Security" in message.text else None
        ),
    )
    opened.on("dialog", lambda dialog: problems.append(dialog.message))
    yield opened
    context.close()
    assert problems == []


def _open(page: Page, url: str) -> None:
    page.goto(url)
    page.locator("by-the-book .launcher").click()
    expect(page.locator("by-the-book .panel")).to_be_visible()


def _ask(page: Page, question: str, state: str = "done") -> Locator:
    page.locator("by-the-book .composer textarea").fill(question)
    page.keyboard.press("Enter")
    turn = page.locator("by-the-book .answered").last
    expect(turn).to_have_class(re.compile(state))
    return turn


def test_last_marker_of_a_long_answer_quotes_and_links_the_words_before_it(
    page: Page, stage: Stage
) -> None:
    _open(page, stage.url())
    turn = _ask(page, _LONG)
    marker = turn.locator(".marker").last
    assert turn.locator(".marker").count() > 1
    marker.hover()
    quote = page.locator("by-the-book .card blockquote").inner_text()
    last = re.split(r"(?<=[.])\s", quote.strip())[-1]
    assert last in turn.locator(".run").last.inner_text()
    link = marker.get_attribute("href") or ""
    assert ":~:text=" in link
    parts = urlsplit(link)
    opened = page.context.new_page()
    opened.set_viewport_size({"width": 900, "height": 400})
    opened.goto(f"{stage.site}{parts.path}#{parts.fragment}")
    box = opened.locator("main p", has_text=last).first.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 400
    assert opened.evaluate("scrollY") > 0


def _select(page: Page, words: str) -> None:
    page.evaluate(
        """(words) => {
          const p = [...document.querySelectorAll("p")].find((p) => p.textContent.includes(words));
          p.scrollIntoView();
          getSelection().selectAllChildren(p);
        }""",
        words,
    )


def _focused(page: Page) -> str:
    return str(
        page.evaluate(
            """() => {
              const inner = document.querySelector("by-the-book")?.shadowRoot.activeElement;
              const focused = inner ?? document.activeElement;
              return focused.className || focused.localName;
            }"""
        )
    )


# --- asking -------------------------------------------------------------------------------------


def test_an_answer_comes_with_markers_cards_and_sources(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    turn = _ask(page, _ASKS)
    expect(turn.locator(".said")).to_contain_text("exchange messages over topics")
    turn.locator(".marker").first.hover()
    card = page.locator("by-the-book .card")
    expect(card).to_be_visible()
    expect(card.locator("blockquote")).to_contain_text("exchange messages over topics")
    expect(card.locator(".where")).to_contain_text(" › ")
    expect(card).to_contain_text(re.compile(r"Confidence \d+ %"))
    expect(turn.locator(".source").first).to_have_attribute("href", re.compile("#.*:~:text="))
    expect(turn.locator(".level")).to_contain_text("confidence")


def test_a_citation_opens_the_page_at_its_sentence_and_the_chat_goes_on(
    page: Page, stage: Stage
) -> None:
    _open(page, stage.url("/physical-ai-book/docs/perception/slam"))
    turn = _ask(page, _ASKS)
    turn.locator(".marker").first.click()
    page.wait_for_url(re.compile(_PAGE))
    sentence = page.locator("p", has_text="exchange messages over topics").first
    expect(sentence).to_be_in_viewport()
    expect(page.locator("by-the-book .panel")).to_be_visible()
    expect(page.locator("by-the-book .said")).to_contain_text("exchange messages over topics")


def test_page_can_handle_citation_clicks_itself(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    page.evaluate(
        """() => document.addEventListener("bythebook:open", (event) => {
          event.preventDefault();
          document.title = JSON.stringify(event.detail);
        })"""
    )
    before = page.url
    _ask(page, _ASKS).locator(".source").first.click()
    assert page.url == before
    told = page.evaluate("() => JSON.parse(document.title)")
    assert set(told) == {"url", "link", "quote", "citation"}
    assert "exchange messages" in told["quote"]
    assert told["link"].startswith(told["url"])


def test_refusal_lists_related_topics(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    turn = _ask(page, "Who invented the Kalman filter?")
    expect(turn.locator(".refusal")).to_contain_text("does not contain sufficient information")
    assert turn.locator(".topic").count() > 0
    assert turn.locator(".source").count() == 0


def test_a_follow_up_stays_in_its_thread_and_a_reload_keeps_it(page: Page, stage: Stage) -> None:
    asked: list[dict[str, Any]] = []
    page.on(
        "request",
        lambda request: (
            asked.append(request.post_data_json) if "chat/stream" in request.url else None
        ),
    )
    _open(page, stage.url())
    _ask(page, "What is a topic?")
    _ask(page, "How is it found?")
    page.reload()
    expect(page.locator("by-the-book .panel")).to_be_visible()
    assert page.locator("by-the-book .answered").count() == 2
    _ask(page, "And a node?")
    assert "session_id" not in asked[0]
    assert asked[1]["session_id"] == asked[2]["session_id"]
    assert {body["page_url"] for body in asked} == {stage.url()}
    page.locator("by-the-book header .icon").first.click()
    expect(page.locator("by-the-book .welcome")).to_be_visible()
    page.reload()
    assert page.locator("by-the-book .answered").count() == 0


def test_an_answer_is_copied_with_its_sources(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    _ask(page, _ASKS).locator(".actions .icon").first.click()
    expect(page.locator("by-the-book [role=status]")).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("ROS 2 nodes exchange messages over topics.")
    assert re.search(r"\w\. \[1\]\n", copied)
    assert re.search(rf"\[1\] .+ › .+ {stage.site}/physical-ai-book/docs/", copied)


# --- selections ---------------------------------------------------------------------------------


def test_selection_limits_the_answer_until_the_whole_book_is_asked(
    page: Page, stage: Stage
) -> None:
    page.goto(stage.url())
    page.wait_for_selector("by-the-book .launcher")
    _select(page, "exchange messages over topics")
    page.locator("by-the-book .about").click()
    expect(page.locator("by-the-book .chosen")).to_contain_text("exchange messages over topics")
    turn = _ask(page, "What is the Jacobian of an arm?")
    expect(turn.locator(".refusal")).to_contain_text("The selected text does not contain")
    expect(page.locator("by-the-book .asked blockquote")).to_contain_text("over topics")
    turn.get_by_role("button", name="Ask the whole book").click()
    expect(page.locator("by-the-book .answered").last).to_have_class(re.compile("done"))
    assert page.locator("by-the-book .asked blockquote").count() == 1


def test_the_shortcut_asks_about_a_selection_and_opens_and_closes(page: Page, stage: Stage) -> None:
    page.goto(stage.url())
    page.wait_for_selector("by-the-book .launcher")
    panel = page.locator("by-the-book .panel")
    page.keyboard.press("Alt+q")
    expect(panel).to_be_visible()
    page.keyboard.press("Alt+q")
    expect(panel).to_be_hidden()
    _select(page, "exchange messages over topics")
    page.keyboard.press("Alt+q")
    expect(page.locator("by-the-book .chosen")).to_be_visible()
    turn = _ask(page, "How do nodes exchange messages?")
    expect(turn.locator(".said")).to_contain_text("over topics")
    expect(turn).to_contain_text("Answered from your selection alone.")
    expect(turn.locator(".source")).to_contain_text("Selected text")
    expect(turn.locator(".on")).to_have_count(0)


# --- runs of the book ---------------------------------------------------------------------------


def test_each_run_has_one_marker_and_one_source_line(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    with page.expect_request("**/chat/stream") as asked:
        turn = _ask(page, _ASKS)
    assert asked.value.post_data_json["whole_evidence"] is True
    runs = turn.locator(".run").all()
    assert len(runs) > 1
    for run in runs:
        expect(run.locator(".marker")).to_have_count(1)
        expect(run.locator(".origin")).to_have_count(1)
        expect(run.locator(".source")).to_contain_text(run.locator(".marker").inner_text())
        expect(run.locator(".on")).to_have_text("Read on in the book")
        address = run.locator(".on").get_attribute("href")
        assert address is not None
        assert ":~:" not in address
    runs[0].locator(".source").hover()
    expect(page.locator("by-the-book .card blockquote")).to_contain_text("over topics")


def test_sentences_of_one_section_share_a_source_line(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "listed")
    lines = turn.locator(".origin").all_inner_texts()
    assert [" ".join(line.split()) for line in lines] == [
        "Source 1–3 Chapter › First Read on in the book",
        "Source 4 Chapter › Second Read on in the book",
    ]
    assert turn.locator(".marker").all_inner_texts() == ["1", "2", "3", "1"]
    expect(turn.locator(".run").last).to_have_text("Without a source.")
    assert turn.locator("mark").count() == 0


def test_wide_table_scrolls_by_itself(page: Page, stage: Stage) -> None:
    page.set_viewport_size({"width": 390, "height": 760})
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "table")
    table = turn.get_by_role("group", name="Table")
    table.focus()
    page.keyboard.press("End")
    wide = "(element) => element.scrollWidth - element.clientWidth"
    assert table.evaluate(wide) > 100
    assert page.locator("by-the-book .log").evaluate(wide) <= 0
    expect(table.locator("td").last).to_have_text("end")  # the source line has the number
    expect(turn.locator(".origin")).to_contain_text("1")


def test_code_is_highlighted_and_can_be_copied(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    turn = _ask(page, "How do I create a publisher in Python?")
    listing = turn.locator(".code").first
    assert listing.locator("pre span").count() > 5
    listing.get_by_role("button", name="Copy the code").click()
    expect(page.locator("by-the-book [role=status]")).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == (listing.locator("pre").text_content() or "").rstrip()


def test_short_answer_is_marked_in_its_sentence(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    turn = _ask(page, "How many particles does AMCL use by default?")
    expect(turn.locator("mark")).to_have_count(1)
    expect(turn.locator("mark")).to_have_text("between 500 and 2,000")


def test_next_questions_are_answered(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    first = _ask(page, _ASKS)
    ideas = first.locator(".next .idea").all_inner_texts()
    assert len(ideas) == 3
    assert _ASKS not in ideas
    first.locator(".next .idea").first.click()
    assert _focused(page) == "log"
    answers = page.locator("by-the-book .answered.done")
    expect(answers).to_have_count(2)
    expect(page.locator("by-the-book .asked").last).to_contain_text(ideas[0])
    expect(answers.last.locator(".source").first).to_be_visible()
    expect(answers.first.locator(".next")).to_be_hidden()
    assert ideas[0] not in answers.last.locator(".next .idea").all_inner_texts()


def test_question_that_was_asked_is_not_suggested_again(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    assert _ask(page, "listed again?").locator(".idea").all_inner_texts() == ["What next?"]


def test_refusal_shows_what_the_book_does_say_and_then_nearby_topics(
    page: Page, stage: Stage
) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "unknown")
    assert " ".join(turn.locator(".said").inner_text().split()) == (
        "The book does not say. The book does say: A <b>kettle</b> boils water. Kettles "
        "Related topics in the book Page › Nearby"
    )
    link = turn.get_by_role("link", name="Kettles")
    expect(link).to_have_attribute("href", "/docs/page#kettles:~:text=A")


def test_unanswered_part_is_a_quiet_note(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    turn = _ask(page, "What is a topic and how tall is the Eiffel tower?")
    expect(turn.locator(".said")).to_contain_text("A topic is a named channel")
    expect(turn.locator(".part")).to_contain_text("not answer this part: “how tall is the Eiffel")
    assert turn.locator(".warn, .refusal").count() == 0


def test_the_footer_is_true_of_all_answers_that_are_shown(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    promise = page.locator("by-the-book .promise")
    either = "Every sentence is quoted from the book or checked against it."
    expect(promise).to_have_text(either)
    _ask(page, "model, say it in your words")
    expect(promise).to_have_text("Every sentence is checked against the book.")
    _ask(page, "fallback to quotations")
    expect(promise).to_have_text(either)
    page.reload()
    expect(promise).to_have_text(either)
    page.locator("by-the-book").evaluate("(widget) => widget.clear()")
    _ask(page, "fallback to quotations")
    expect(promise).to_have_text("Every sentence is quoted from the book.")
    _ask(page, "hang", state="writing")
    expect(promise).to_have_text(either)


def test_small_talk_gets_a_friendly_line_and_the_suggestions(page: Page, stage: Stage) -> None:
    _open(page, stage.url(suggestions=f"{_ASKS}|Two?"))
    turn = _ask(page, "Hello!")
    expect(turn).to_contain_text("Ask a question about this book")
    expect(page.locator("by-the-book [role=status]")).to_contain_text("Ask a question")
    assert turn.locator(".refusal, .actions, .topics").count() == 0
    assert turn.locator(".idea").all_inner_texts() == [_ASKS, "Two?"]
    turn.locator(".idea").first.click()
    expect(page.locator("by-the-book .answered.done").last).to_contain_text("over topics")


# --- what goes wrong ----------------------------------------------------------------------------


def test_interrupted_stream_shows_an_error_and_a_retry_button(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "cut it", state="failed")
    expect(turn).to_contain_text("This is only the beginning.")
    expect(turn).to_contain_text("The answer was interrupted.")
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator("by-the-book .asked")).to_have_count(1)
    expect(page.locator("by-the-book .answered").last).to_contain_text("interrupted")


def test_retry_repeats_the_idempotency_key_and_a_new_question_does_not(
    page: Page, stage: Stage
) -> None:
    _open(page, stage.url(server=stage.hostile))
    _ask(page, "cut it", state="failed").get_by_role("button", name="Try again").click()
    expect(page.locator("by-the-book .answered.failed")).to_have_count(1)
    _ask(page, "cut it once more", state="failed")
    first, again, other = stage.seen[-3:]
    assert first["once"]
    assert again == first
    assert other["once"] != first["once"]


def test_an_answer_can_be_stopped(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "hang on", state="writing")
    expect(turn).to_contain_text("The first sentence.")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("by-the-book .answered").last).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_rate_limited_user_sees_the_waiting_time(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "busy", state="failed")
    expect(turn).to_contain_text(re.compile(r"You can ask again in [12] s"))
    again = turn.get_by_role("button", name="Try again")
    expect(again).to_be_disabled()
    expect(again).to_be_enabled()
    expect(turn).to_contain_text("You can ask again now.")


def test_key_is_sent_and_a_missing_key_explained(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile, key="btp_abc"))
    expect(_ask(page, "key?", state="failed")).to_contain_text("publishable key for this site")
    assert stage.seen[-1]["key"] == "btp_abc"


def test_error_message_of_the_server_is_shown(page: Page, stage: Stage) -> None:
    _open(page, stage.url(server=stage.hostile))
    turn = _ask(page, "broken", state="failed")
    expect(turn).to_contain_text("The search service is away. Wait a little.")
    turn = _ask(page, "fallback")
    expect(turn).to_contain_text("The language model did not answer")
    expect(turn.locator(".warn")).to_contain_text("The book says little about this")


def test_offline_user_sees_a_message_and_can_retry(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    page.context.set_offline(True)
    turn = _ask(page, _ASKS, state="failed")
    expect(turn).to_contain_text("You are offline.")
    page.context.set_offline(False)
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator("by-the-book .answered.done")).to_contain_text("over topics")


# --- what readers think -------------------------------------------------------------------------


def test_feedback_text_is_sent_only_with_consent(page: Page, stage: Stage) -> None:
    _open(page, stage.url())
    given: list[dict[str, Any]] = []
    page.on(
        "request",
        lambda request: given.append(request.post_data_json) if "feedback" in request.url else None,
    )
    turn = _ask(page, _ASKS)
    for agree in (False, True):
        turn.get_by_role("button", name="Not helpful").click()
        form = turn.locator(".why")
        assert form.locator("input[type=radio]").count() == len(ChatFeedbackReason)
        form.get_by_text("Something is missing").click()
        form.locator("textarea").fill("Who sends first?")
        if agree:
            form.get_by_text("The author may read my comment").click()
        with page.expect_response("**/feedback") as response:
            form.get_by_role("button", name="Send feedback").click()
        assert response.value.json() == {"kept": True}
    assert [body.get("text") for body in given] == [None, None, None, "Who sends first?"]
    assert {body["query_id"] for body in given} == {given[0]["query_id"]}
    assert given[-1]["reason"] == "incomplete"


# --- how it looks -------------------------------------------------------------------------------


def test_it_follows_the_theme_of_the_site(page: Page, stage: Stage) -> None:
    page.goto(stage.url(**{"page-theme": "dark"}))
    widget = page.locator("by-the-book")
    expect(widget).to_have_attribute("data-theme", "dark")
    page.evaluate("() => document.documentElement.dataset.theme = 'light'")
    expect(widget).to_have_attribute("data-theme", "light")


def test_urdu_texts_are_right_to_left(page: Page, stage: Stage) -> None:
    _open(page, stage.url(language="ur", position="left"))
    expect(page.locator("by-the-book .frame")).to_have_attribute("dir", "rtl")
    expect(page.get_by_role("textbox", name="آپ کا سوال")).to_be_visible()
    expect(_ask(page, "How do I train GPT-4?")).to_contain_text("کافی معلومات نہیں")
    expect(_ask(page, "Hello!")).to_contain_text("خوش آمدید")
    turn = _ask(page, "What is a topic and how tall is the Eiffel tower?")
    expect(turn.locator(".part")).to_contain_text("کتاب اس حصے کا جواب نہیں دیتی: “how tall")
    expect(turn.locator(".next h3")).to_have_text("اب یہ پوچھ سکتے ہیں")
    expect(turn.get_by_text("کتاب میں آگے پڑھیں").first).to_be_visible()
    expect(turn.locator(".source bdi").first).to_contain_text(" › ")
    box = page.locator("by-the-book .panel").bounding_box()
    assert box is not None
    assert box["x"] < 100


def test_widget_fills_a_small_screen(page: Page, stage: Stage) -> None:
    page.set_viewport_size({"width": 390, "height": 760})
    _open(page, stage.url())
    panel = page.locator("by-the-book .panel")
    expect(panel).to_have_attribute("aria-modal", "true")
    page.wait_for_timeout(250)
    box = panel.bounding_box()
    assert box is not None
    assert (box["x"], box["width"], round(box["y"] + box["height"])) == (0, 390, 760)
    page.mouse.click(190, 20)
    expect(panel).to_be_hidden()


def test_widget_can_be_part_of_a_page(page: Page, stage: Stage) -> None:
    page.goto(stage.url(layout="page"))
    expect(page.locator("by-the-book .panel")).to_be_visible()
    assert page.locator("by-the-book .launcher").count() == 0
    assert page.locator("by-the-book [role=dialog]").count() == 0
    expect(_ask(page, _ASKS)).to_contain_text("over topics")


def test_options_of_the_author_are_applied(page: Page, stage: Stage) -> None:
    _open(page, stage.url(title="Frag das Buch", accent="#ffd000", suggestions="One?|Two?"))
    expect(page.get_by_role("dialog", name="Frag das Buch")).to_be_visible()
    assert page.locator("by-the-book .idea").all_inner_texts() == ["One?", "Two?"]
    assert violations(page) == []  # whatever the colour, it can be read
    fill = page.locator("by-the-book .send").evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert fill == "rgb(255, 208, 0)"


def test_widget_does_not_shift_the_page(page: Page, stage: Stage) -> None:
    page.goto(stage.url())
    page.evaluate(
        """() => {
          window.moved = [];
          // A node inside the widget's shadow tree is reported as null.
          const around = ({ node }) => node && !node.parentElement?.closest("by-the-book");
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries())
              if (entry.sources.some(around)) window.moved.push(entry.value);
          }).observe({ type: "layout-shift", buffered: true });
        }"""
    )
    before = page.evaluate("() => [document.body.scrollHeight, document.body.scrollWidth]")
    page.locator("by-the-book .launcher").click()
    _ask(page, _ASKS)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    after = page.evaluate("() => [document.body.scrollHeight, document.body.scrollWidth]")
    assert before == after
    assert page.evaluate("() => window.moved") == []


# --- for everybody ------------------------------------------------------------------------------


def test_everything_can_be_done_by_keyboard(page: Page, stage: Stage) -> None:
    page.goto(stage.url())
    page.wait_for_selector("by-the-book .launcher")
    page.keyboard.press("Tab")
    assert _focused(page) == "launcher"
    page.keyboard.press("Enter")
    page.keyboard.type(_ASKS)
    page.keyboard.press("Enter")
    expect(page.locator("by-the-book .answered")).to_have_class(re.compile("done"))
    said = page.locator("by-the-book [role=status]").inner_text().strip()
    assert said, "nothing is announced"
    expect(page.locator("by-the-book .answered")).to_contain_text(said.split()[0])
    stops = []
    for _ in range(12):
        page.keyboard.press("Tab")
        stops.append(_focused(page))
        if stops[-1] == "marker":
            break
    assert stops[-1] == "marker", stops
    card = page.locator("by-the-book .card")
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    for _ in range(30):  # around and around: it does not leave the panel
        page.keyboard.press("Tab")
        assert _focused(page) not in ("body", "launcher")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("by-the-book .panel")).to_be_hidden()
    assert _focused(page) == "launcher"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_widget_has_no_accessibilityviolations(page: Page, stage: Stage, theme: str) -> None:
    page.goto(stage.url(theme=theme))
    page.evaluate("(theme) => { document.documentElement.style.colorScheme = theme; }", theme)
    page.wait_for_selector("by-the-book .launcher")
    assert violations(page) == []
    page.locator("by-the-book .launcher").click()
    assert violations(page) == []
    _ask(page, "How do I train GPT-4?")
    _ask(page, "How do I create a publisher in Python?")
    _ask(page, "Why is a map published with transient local durability?")
    turn = _ask(page, _ASKS)
    turn.get_by_role("button", name="Not helpful").click()
    turn.locator(".marker").first.hover()
    assert violations(page) == []
