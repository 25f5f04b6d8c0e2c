"""Markdown in, safe HTML out: what a reader saw stays, and nothing else gets through."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.server.html import ALLOWED_TAGS, said_html, to_html
from bythebook.types import AnswerSpan, Sentence


class _Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.hrefs: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.hrefs += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "text", ["__init__ and _x_", "2*3*4 = 24", "&lt; is an entity", "a\\*b and C:\\new", "x[1] = y"]
)
def test_special_characters_in_prose_are_literal(text: str) -> None:
    assert _Seen(to_html(text)).text.strip() == text


def test_inline_code_and_emphasis_are_rendered() -> None:
    assert to_html("Use `a<b` and **this** or *that*.") == (
        "<p>Use <code>a&lt;b</code> and <strong>this</strong> or <em>that</em>.</p>\n"
    )


def test_code_is_highlighted_by_classes() -> None:
    made = to_html("```python\nx = '<b>'\n```")
    assert "<span class=\"s1\">'&lt;b&gt;'</span>" in made
    assert "style" not in made


def test_code_in_an_unknown_language_is_not_highlighted() -> None:
    assert to_html("```klingon\nqapla' <x>\n```") == "<pre><code>qapla' &lt;x&gt;\n</code></pre>\n"


def test_maths_becomes_mathml_and_prices_do_not() -> None:
    made = to_html("So $E = mc^2$, for $5 or $6.\n\n$$\n\\frac{a}{b}\n$$")
    assert '<math display="inline">' in made
    assert '<math display="block"><mrow><mfrac>' in made
    assert "for $5 or $6." in made


@pytest.mark.parametrize("source", ["\\frac{", "{" * 300, "\\left(" * 50, "&" * 3000])
def test_maths_that_cannot_be_converted_is_shown_as_source(source: str) -> None:
    assert "<math" in to_html(f"$${source}$$") or "<code>" in to_html(f"$${source}$$")


def test_links_and_images_are_shown_as_written() -> None:
    text = "Call handlers[0](event), see [1](/docs/x) and ![i](https://evil.example/p.png)."
    for made in (to_html(text), said_html([Sentence(text, (1,))])):
        assert f"<p>{text}" in made
        assert _Seen(made).hrefs == []


def test_table_rows_cited_one_by_one_form_one_table() -> None:
    rows = [Sentence("| a | b |", (1,)), Sentence("| 1 | 2 |", (1, 2), "\n")]
    made = said_html(rows)
    assert made.count("<table>") == 1
    assert '<td>2 <sup data-cite="1">1</sup><sup data-cite="2">2</sup></td>' in made


def test_citation_markers_follow_their_sentences() -> None:
    sentences = [Sentence("One.", (1,)), Sentence("```\nx\n```", (2,), "\n\n")]
    made = said_html(sentences)
    assert '<p>One.&nbsp;<sup data-cite="1">1</sup></p>' in made
    assert made.endswith('<p><sup data-cite="2">2</sup></p>\n')


def test_lists_of_two_runs_are_two_lists() -> None:
    first = [Sentence("- a", (1,), closes=False), Sentence("- b", (1,), "\n")]
    made = said_html([*first, Sentence("- c", (2,), "\n\n")])
    assert made.count("<ul>") == 2
    assert "<p>" not in made


_HOSTILE = st.lists(
    st.sampled_from(
        [
            *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>"),
            *(
                "[x](javascript:alert(1))",
                "[x](//evil)",
                "![x](http://evil/p)",
                "<a href='data:,x'>",
            ),
            *("$\\href{javascript:alert(1)}{x}$", "$$\n\\text{<img>}\n$$", "```html\n<b>\n```\n"),
            *(
                "| a | <i> |\n",
                "|---|---|\n",
                "&#60;script&#62;",
                "\n\n",
                "- ",
                "`",
                "*",
                "[1]",
                "$",
            ),
            *(
                "\x00",
                "\ud800",
                "\u202e",
                "<math><mtext></mtext><style><img onerror=x>",
                "\ue0b71\ue0b8",
            ),
            *("<https://evil>", "[a]: http://evil\n", "<!--", "<style>*{}</style>", "> ", "# "),
        ]
    )
    | st.text(max_size=20),
    max_size=12,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(_HOSTILE)
def test_hostile_markdown_gives_only_allowed_html(text: str) -> None:
    for made in (to_html(text), said_html([Sentence(text, (1,))])):
        seen = _Seen(made)
        assert seen.tags <= ALLOWED_TAGS
        assert not seen.tags & {"script", "style", "img", "svg", "iframe", "form", "input"}
        assert not {name for name in seen.attributes if name.startswith("on") or name == "style"}
        assert seen.hrefs == []


_WORDS = st.text(st.sampled_from("abcÉ漢 39\xa0,.;:()'’“”%/–-*_&\"<#"), max_size=30)
_LINES = st.builds("{}{}".format, st.sampled_from("azÉ"), _WORDS)


@settings(max_examples=300)
@given(_LINES, _LINES, st.integers(0, 9999))
def test_a_paragraph_renders_the_same_before_other_paragraphs(
    line: str, more: str, number: int
) -> None:
    said = [Sentence(line, (number,)), Sentence(more, (1,), "\n\n")]
    code = Sentence("`x`", (2,), "\n\n")
    assert said_html([*said, code]).startswith(said_html(said))
    assert said_html(said).startswith(said_html(said[:1]))
    assert to_html(f"{line}\n\n`x`").startswith(to_html(line))
    marked = said_html(said, mark=AnswerSpan(0, 1, len(line)))
    assert re.sub("</?mark>", "", marked) == said_html(said)
