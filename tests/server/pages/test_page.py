"""Pages from the catalog: nothing is lost, nothing is said twice, and everything has its anchor."""

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.ingestion.pages import ParsedPage
from bythebook.ingestion.passages import passages_of
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.blocks import Document, Paragraph
from bythebook.server.pages.blocks import unit_id
from bythebook.server.pages.page import page_view
from bythebook.sources.markdown.mdx import MdxSource, parse
from bythebook.text.outline import outline
from bythebook.text.section_text import Joined, join
from bythebook.text.text_fragments import folded
from bythebook.types import Metadata, Passage, Place, UnitKind
from tests.support.samples import PAGES, SAMPLE_BOOK, small_book

_RULE = re.compile(r"(?m)^[ \t]*(?:\$\$|\|[-:| \t]+\|)[ \t]*$")
_MARKER = re.compile(r"(?m)^[ \t]*(?:[-*•]|[0-9]{1,9}[.)])[ \t]+")


class _Words(HTMLParser):
    """The text below the headings: maths by the words it was drawn from, cells apart."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.ids: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes.update(given)
        self.links += [str(given["href"])] if "href" in given else []
        self._open.append(tag if "data-words" not in given else "drawn")
        self.text.append(" " if tag in ("p", "li", "td", "th", "tr", "br", "figure") else "")
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if re.fullmatch("h[2-6]", tag) and given.get("id"):
            self.headings.append((tag, str(given["id"])))
        if given.get("class") == "language":
            self._open[-1] = "drawn"
        if "data-words" in given and "drawn" not in self._open[:-1]:
            self.text.append(str(given["data-words"]))
        if tag == "br":
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        hidden = {"drawn", "h2", "h3", "h4", "h5", "h6"}
        if not hidden & set(self._open):
            self.text.append(data)


def _shown(html: str) -> _Words:
    words = _Words()
    words.feed(html)
    return words


def _letters(text: str) -> str:
    return folded(text).replace(" ", "")


def _expected(passages: Sequence[Passage]) -> str:
    """The passages' words, each section's once, without the marks of lists, tables and code."""
    parts, section = [], list(passages[:1])
    for passage in [*passages[1:], None]:
        if passage is not None and passage.place == section[0].place:
            section.append(passage)
            continue
        joined = join(section)
        is_heading = folded(joined.text) == folded(section[0].place.heading)
        if not (is_heading and section[0].place.section):
            parts.append(_bare(joined))
        section = [passage] if passage else []
    return _letters("\n".join(parts))


def _bare(joined: Joined) -> str:
    place, parts = 0, []
    for code in (unit for unit in joined.units if unit.kind is UnitKind.CODE):
        lines = joined.text[code.start : code.end].split("\n")
        parts += [_MARKER.sub("", joined.text[place : code.start]), "\n".join(lines[1:-1])]
        place = code.end
    rest = _MARKER.sub("", joined.text[place:])
    return _RULE.sub("", "".join([*parts, rest])).replace("\\|", "|")


def _sample_pages() -> list[ParsedPage]:
    return list(read_book(SAMPLE_BOOK / "docs").pages)


@pytest.mark.parametrize("page", _sample_pages(), ids=lambda page: page.url.rpartition("docs")[2])
def test_page_shows_every_word_of_its_passages_once(page: ParsedPage) -> None:
    shown = _shown(page_view(page.passages).html)
    assert _letters("".join(shown.text)) == _expected(page.passages)
    assert len(set(shown.ids)) == len(shown.ids)


@pytest.mark.parametrize("limit", [40, 90])
def test_split_section_is_shown_whole(limit: int, tmp_path: Path) -> None:
    from dataclasses import replace

    sentences = " ".join(f"Sentence number {n} says that {n * 7} is a number." for n in range(60))
    rows = "\n".join(f"| row {n} | {n * n} |" for n in range(40))
    source = f"# T\n\n## S\n\n{sentences}\n\n| name | value |\n|---|---|\n{rows}\n\n- {sentences}\n"
    place = replace(read_book(small_book(tmp_path)).passages[0].place, title="T", section=())
    metadata = read_book(tmp_path).passages[0].metadata
    passages = passages_of(parse(MdxSource.of(source)), place, metadata, max_tokens=limit)
    assert len(passages) > 5
    html = page_view(passages).html
    shown = folded("".join(_shown(html).text))
    for n in range(60):
        assert shown.count(f"sentence number {n} says") == 2  # the paragraph, and the item
    for n in range(40):
        assert shown.count(f"row {n} ") == 1
    assert html.count("<table>") == 1
    assert html.count("<thead>") == 1


def test_split_code_is_shown_whole_and_each_part_can_be_linked() -> None:
    code = "\n".join(f"value_{n} = 'text number {n}'" for n in range(300))
    source = f"# T\n\nBefore.\n\n```\n{code}\n```\n\n$$\n{'x^2 + ' * 400}\n{'y + ' * 400}z\n$$\n"
    place = _sample_pages()[0].passages[0].place
    passages = passages_of(parse(MdxSource.of(source)), place, Metadata())
    html = page_view(passages).html
    shown = _shown(html)
    assert html.count("<pre>") == 1
    assert code in "".join(shown.text)
    assert html.count('class="maths"') == 1
    parts = [passage for passage in passages if passage.continues is not None]
    assert len(parts) > 3
    assert {unit_id(passage.id, 0) for passage in parts} <= set(shown.ids)


def test_headings_come_in_order_with_the_anchors_of_the_site() -> None:
    page = next(page for page in _sample_pages() if page.url.endswith("ros2/nodes-and-topics"))
    shown = _shown(page_view(page.passages).html)
    assert shown.headings[:4] == [
        ("h2", "nodes"),
        ("h2", "topics"),
        ("h2", "message-types"),
        ("h2", "discovery"),
    ]
    assert ("h3", "common-mistakes-1") in shown.headings
    cited = {passage.place.url.partition("#")[2] for passage in page.passages}
    assert cited - {""} <= set(shown.ids)


def test_every_unit_of_a_page_has_an_id() -> None:
    for page in _sample_pages():
        shown = set(_shown(page_view(page.passages).html).ids)
        for passage in page.passages:
            for number, unit in enumerate(passage.units):
                is_there = f"u{passage.id[:10]}-{number}" in shown
                assert is_there or (number == 0 and unit.kind in (UnitKind.SENTENCE, UnitKind.ROW))


def test_code_tables_maths_and_notes_have_their_elements() -> None:
    html = "".join(page_view(page.passages).html for page in _sample_pages())
    assert '<figcaption><span class="name"><span id="' in html
    assert '<span class="kn">import</span>' in html
    assert '<aside class="note warning">' in html
    assert '<th dir="auto" scope="col">Publisher</th>' in html
    assert '<math display="block">' in html
    assert "<ol>\n<li" in html


def _one(text: str) -> str:
    from tests.support.samples import passage

    return page_view([passage(text)]).html


def _page_of(source: str) -> str:
    place = Place("a.md", "Title", "/a", "", "", ())
    return page_view(passages_of(parse(MdxSource.of(source)), place, Metadata())).html


def test_lists_within_lists_keep_their_order() -> None:
    html = _page_of("1. One\n   - inner\n   - other\n2. Two\n\nAfter.")
    plain = re.sub(r"<(/?span|p|/p|li)[^>]*>|\n", lambda m: "<li>" if m[1] == "li" else "", html)
    assert plain == "<ol><li>One<ul><li>inner</li><li>other</li></ul></li><li>Two</li></ol>After."


def test_links_emphasis_code_and_images_are_those_of_the_book() -> None:
    html = _page_of(
        "See **the [guide](https://x.example/a)** of `a_b()`, *not* ~~this~~ &lt;b&gt; 2\\*3.\n\n"
        "![A map](https://x.example/m.png) and [mail](mailto:a@x.example).\n\n> As he said.\n"
    )
    plain = re.sub(r"</?span( id[^>]*)?>", "", html)
    assert plain == (
        '<p dir="auto">See <strong>the <a href="https://x.example/a" rel="noopener noreferrer">'
        "guide</a></strong> of <code>a_b()</code>, <em>not</em> <s>this</s> &lt;b&gt; 2*3.</p>\n"
        '<p dir="auto"><img src="https://x.example/m.png" alt=""><span class="caption">A map and '
        '<a href="mailto:a@x.example" rel="noopener noreferrer">mail</a>.</p>\n'
        '<blockquote dir="auto">\n<p dir="auto">As he said.</p>\n</blockquote>\n'
    )


def test_many_headings_with_one_name_are_numbered_on() -> None:
    from tests.support.samples import passage

    one = passage("Text.")
    places = [
        replace(one.place, url=f"/a#{anchor}", section=(f"{n}",))
        for n, anchor in enumerate("xxx-xx")
    ]
    view = page_view([replace(one, place=place) for place in places])
    assert [heading.anchor for heading in view.headings] == ["x", "x-1", "x-2", "-", "x-3", "x-4"]


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '| <b onclick="x"> | "quoted" |\n|---|---|\n| <svg onload=alert(1)> | x |',
        '- item <a href="javascript:alert(1)">x</a>',
        "```html\n<script>alert(1)</script>\n```",
        '$x" onmouseover="alert(1)$ and $y<img src=x>$ and $\\text{<img src=x>}$',
        "Note — <script>alert(1)</script>\nBody <iframe src=x>",
        "[x](javascript:alert) ![y](data:image/png;base64,AA) [z](//evil) <a href=vbscript:x>",
    ],
)
def test_markup_in_the_book_is_no_active_content(hostile: str) -> None:
    for html in (_one(hostile), _page_of(hostile)):
        shown = _shown(html)
        assert not shown.tags & {"script", "img", "svg", "iframe"}
        assert not [name for name in shown.attributes if name.startswith(("on", "src"))]
        assert [link for link in shown.links if not link.startswith("#")] == []


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab .|-`\n#1<>&*_[]()!\\", max_size=120))
def test_any_text_is_shown_completely(text: str) -> None:
    document = Document((Paragraph(text.strip("\n") or "a", (0, 1)),), (), ())
    (made,) = passages_of(document, Place("a.md", "Title", "/a", "", "", ()), Metadata())
    shown = _shown(page_view([made]).html)
    assert _letters("".join(shown.text)) == _letters(made.text)
    prose = [unit for unit in made.units if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM)]
    assert len(shown.ids) >= len(prose)


def test_the_outline_has_every_page_in_order(tmp_path: Path) -> None:
    book = read_book(small_book(tmp_path))
    pages = outline(book.passages)
    assert [page.title for page in pages] == ["Welcome", "Building a kite"]
    assert [section.path for section in pages[0].sections] == [("Kites",), ("Kettles",)]
    assert pages[0].sections[0].url.endswith("#kites")
    assert sum(page.passages for page in pages) == len(book.passages)
    assert len(pages) == len(PAGES)
