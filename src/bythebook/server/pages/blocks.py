"""Convert a section's text to HTML; each sentence, item, row and code block has an id."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from bythebook.server.html import to_html
from bythebook.text.section_blocks import (
    Block,
    Item,
    Items,
    Line,
    Prose,
    Rows,
    Whole,
    are_titles,
    blocks_of,
)
from bythebook.text.section_text import Joined, Marked
from bythebook.text.units import NOTE, cells_of
from bythebook.types import UnitKind

_WORD = re.compile(r"[\w./~-]+(?:\(\))?")
_ID_DIGITS = 10
_OTHER = {"ul": "ol", "ol": "ul"}


def unit_id(passage_id: str, number: int) -> str:
    """Return the HTML id of a unit, which is also the fragment of its URL."""
    return f"u{passage_id[:_ID_DIGITS]}-{number}"


def section_html(section: Joined) -> str:
    return _Section(section).html()


def words_html(section: Joined) -> str:
    """Convert inline only: for a section that consists of its heading."""
    return _Section(section).inline(0, len(section.text))


@dataclass(slots=True)
class ListItem:
    """List item: the HTML of its lines and of the blocks within it."""

    indent: int
    number: int | None  # in ordered lists
    parts: list[str] = field(default_factory=list)


class _Section:
    def __init__(self, section: Joined) -> None:
        self._section = section
        self._text, self._units = section.text, section.units
        self._starts = [unit.start for unit in section.units]

    def html(self) -> str:
        return "\n".join(map(self._block, blocks_of(self._section)))

    def _block(self, block: Block) -> str:
        match block:
            case Whole():
                return _whole(block)
            case Rows():
                return self._table(block)
            case Items():
                return nested(map(self._item, block.items))
            case Prose():
                return self._paragraph(block)

    def _table(self, table: Rows) -> str:
        head = f"<thead>{self._row(table.header, 'th')}</thead>" if table.header else ""
        body = "".join(self._row(row, "td") for row in table.rows)
        return _scroll("Table", f"<table>{head}<tbody>{body}</tbody></table>")

    def _row(self, row: Line, cell: str) -> str:
        first, last = (bisect_left(self._starts, border) for border in (row.start, row.end))
        mark = f" {_mark(self._units[first])}" if first < last else ""
        scope = ' scope="col"' if cell == "th" else ""
        texts = map(_inline, cells_of(row.text))
        cells = "".join(f'<{cell} dir="auto"{scope}>{text}</{cell}>' for text in texts)
        return f"<tr{mark}>{cells}</tr>"

    def _item(self, item: Item) -> ListItem:
        parts = [self._inline_of(item.line), *map(self._block_in_item, item.blocks)]
        return ListItem(item.indent, item.number, parts)

    def _block_in_item(self, block: Block) -> str:
        if not (isinstance(block, Prose) and block.lines[0].text[0] == " "):
            return self._block(block)
        lines = "".join(f"<br>{self._inline_of(line)}" for line in block.lines)
        return lines + (self._block(block.below) if block.below else "")

    def _paragraph(self, prose: Prose) -> str:
        lines, below = prose.lines, prose.below
        note = NOTE.fullmatch(lines[0].text.strip())
        if note and (len(lines) > 1 or below):
            title = f'<p class="title" dir="auto">{self._inline_of(lines[0])}</p>'
            body = self._prose(lines[1:]) if len(lines) > 1 else ""
            body += self._block(below) if below else ""
            return f'<aside class="note {note[1].lower()}">{title}{body}</aside>'
        if isinstance(below, Whole) and are_titles(lines):
            titles = (f'<span class="name">{self._inline_of(line)}</span>' for line in lines)
            return _whole(below, "".join(titles))
        return "\n".join([self._prose(lines), *([self._block(below)] if below else [])])

    def _prose(self, lines: tuple[Line, ...]) -> str:
        first, *rest = map(self._inline_of, lines)
        if rest and are_titles(lines[:1]) and not are_titles(lines[1:2]):
            first = f'<strong class="label">{first}</strong>'
        return f'<p dir="auto">{"<br>".join([first, *rest])}</p>'

    def _inline_of(self, line: Line) -> str:
        return self.inline(line.start, line.end)

    def inline(self, start: int, end: int) -> str:
        parts: list[str] = []
        done = start
        first, last = (bisect_left(self._starts, border) for border in (start, end))
        for unit in self._units[first:last]:
            if unit.start < done or unit.end > end:
                continue
            parts += [_inline(self._text[done : unit.start]), self._unit(unit)]
            done = unit.end
        return "".join([*parts, _inline(self._text[done:end])])

    def _unit(self, unit: Marked) -> str:
        source = self._text[unit.start : unit.end]
        made = _inline(source)
        # The text of rendered maths differs from that quoted in a citation.
        words = f' data-words="{escape(source)}"' if "<math" in made else ""
        return f"<span {_mark(unit)}{words}>{made}</span>"


def _scroll(name: str, html: str) -> str:
    """Wrap a wide block in a container that scrolls, by keyboard, too."""
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{name}">{html}</div>'


def _whole(block: Whole, titles: str = "") -> str:
    """Return code or maths; a citation of any part of it links to the whole block."""
    unit, *parts = block.parts
    if unit.kind is UnitKind.MATHS:
        letters = escape(block.source.strip("$\n "))
        drawn = f'<div class="maths" {_mark(unit)} data-words="{letters}">'
        html = f"{drawn}{to_html(block.source)}</div>"
    else:
        language = block.source.partition("\n")[0].strip("`~ \t").partition(" ")[0]
        named = f'<span class="language">{escape(language)}</span>' if language else ""
        caption = f"<figcaption>{titles}{named}</figcaption>" if titles or named else ""
        code = _scroll("Code", to_html(block.source))
        html = f'<figure class="code" dir="ltr" {_mark(unit)}>{caption}{code}</figure>'
    opening = "".join(f"<div {_mark(part)}>" for part in reversed(parts))
    return f"{opening}{html}{'</div>' * len(parts)}"


def _mark(unit: Marked) -> str:
    return f'id="{unit_id(unit.passage, unit.number)}" data-unit'


def _inline(text: str) -> str:
    bare = text.strip()
    if text.count("$") > 1:
        html = to_html(bare).strip()
        if "<math" in html and html.startswith("<p>") and html.endswith("</p>"):
            before, _, after = text.partition(bare)
            return (" " if before else "") + html[3:-4] + (" " if after else "")
    parts, done = [], 0
    for start, end in _names(text):
        parts += [escape(text[done:start]), f"<code>{escape(text[start:end])}</code>"]
        done = end
    return "".join([*parts, escape(text[done:])])


def _names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of code names; the catalog does not keep their inline code markup."""
    for word in _WORD.finditer(text):
        start, end = word.start(), word.start() + len(word[0].rstrip("."))
        beside = text[start - 1 : start] + text[end : end + 1]
        if not set(beside) & set("<@") and _is_name(text[start:end]):
            yield start, end


def _is_name(word: str) -> bool:
    """Return whether a word is like ``snake_case``, ``/a/path``, ``--option`` or ``call()``."""
    if not word.isascii() or not word.lstrip("/~-.")[:1].isalpha():
        return False
    is_path = word[0] == "/" and word[1:2].isalpha()
    return is_path or word.startswith("--") or word.endswith("()") or "_" in word.strip("_")


def nested(items: Iterable[ListItem]) -> str:
    """Return nested lists according to the indents of their items; each item is read once."""
    html: list[str] = []
    opened: list[tuple[int, str]] = []  # indent and tag of each list whose last item is open
    for item in items:
        tag = "ul" if item.number is None else "ol"
        while opened and (opened[-1][0] > item.indent or opened[-1] == (item.indent, _OTHER[tag])):
            html.append(f"</li></{opened.pop()[1]}>")
        if opened and opened[-1][0] == item.indent:
            html.append("</li>")
        else:
            start = "" if item.number in (None, 1) else f' start="{item.number}"'
            html.append(f"<{tag}{start}>")
            opened.append((item.indent, tag))
        html += ['<li dir="auto">', *item.parts]
    html += [f"</li></{tag}>" for _, tag in reversed(opened)]
    return "".join(html)
