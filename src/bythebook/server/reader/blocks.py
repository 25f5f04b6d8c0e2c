"""Convert a section's text to HTML; each sentence, item, row and code block has an id.

A passage contains only what ``ingestion/render.py`` writes: paragraphs, lists, tables, fenced code,
maths between dollars, and lines that are the title of the block after them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from bythebook.server.html import to_html
from bythebook.sources.markdown.elements import ADMONITIONS
from bythebook.text.section_text import Joined, Marked
from bythebook.types import UnitKind

_ITEM = re.compile(r"( *)(?:([-*•])|([0-9]{1,9})[.)])[ \t]+")
_RULE_ROW = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_CELL = re.compile(r"(?<!\\)\|")
_STOPS = (".", "!", "?", ":", ";", "…", "。", "؟", "۔", "।")
_LONGEST_TITLE = 80  # characters
_MOST_TITLES = 3
_ADMONITION = re.compile(rf"({'|'.join(sorted(ADMONITIONS))})(?: — (.+))?", re.IGNORECASE)
_WORD = re.compile(r"[\w./~-]+(?:\(\))?")
_ID_DIGITS = 10
_OTHER = {"ul": "ol", "ol": "ul"}


def unit_id(passage_id: str, number: int) -> str:
    """Return the HTML id of a unit, which is also the fragment of its URL."""
    return f"u{passage_id[:_ID_DIGITS]}-{number}"


def section_html(section: Joined) -> str:
    return "\n".join(_Section(section).blocks())


def words_html(section: Joined) -> str:
    """Convert inline only: for a section that consists of its heading."""
    return _Section(section).inline(0, len(section.text))


@dataclass(slots=True)
class _Line:
    start: int
    end: int
    text: str

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    @property
    def is_row(self) -> bool:
        bare = self.text.strip()
        return len(bare) > 1 and bare[0] == bare[-1] == "|"


@dataclass(slots=True)
class ListItem:
    """List item: the HTML of its lines and of the blocks within it."""

    indent: int
    number: int | None  # in ordered lists
    parts: list[str] = field(default_factory=list)


class _Section:
    def __init__(self, section: Joined) -> None:
        self._text = section.text
        self._units = section.units
        self._starts = [unit.start for unit in section.units]
        blocks = (unit for unit in section.units if unit.kind in (UnitKind.CODE, UnitKind.MATHS))
        self._whole = {unit.start: unit for unit in blocks}
        self._lines = list(_lines(section.text))
        self._at = 0

    def blocks(self) -> Iterator[str]:
        while self._at < len(self._lines):
            if self._lines[self._at].is_blank:
                self._at += 1
            else:
                yield self._block()

    # --- blocks: each method consumes the lines of its block

    def _block(self) -> str:
        line = self._lines[self._at]
        if self._block_unit(line):
            return self._code_or_maths()
        if line.is_row:
            return self._table()
        if _ITEM.match(line.text):
            return self._list()
        return self._paragraph()

    def _block_unit(self, line: _Line) -> Marked | None:
        return self._whole.get(line.start + len(line.text) - len(line.text.lstrip()))

    def _code_or_maths(self, titles: str = "") -> str:
        unit = self._block_unit(self._lines[self._at])
        assert unit is not None
        first = last = bisect_right(self._starts, unit.start)
        while last < len(self._units) and self._units[last].continues:
            last += 1
        parts = self._units[first:last]
        end = parts[-1].end if parts else unit.end
        source = self._text[unit.start : end]
        while self._at < len(self._lines) and self._lines[self._at].start < end:
            self._at += 1
        # A citation of any part links to the whole block.
        opening = "".join(f"<div {_mark(part)}>" for part in reversed(parts))
        return f"{opening}{self._block_html(unit, source, titles)}{'</div>' * len(parts)}"

    def _block_html(self, unit: Marked, source: str, titles: str) -> str:
        mark = _mark(unit)
        if unit.kind is UnitKind.MATHS:
            letters = escape(source.strip("$\n "))
            return f'<div class="maths" {mark} data-words="{letters}">{to_html(source)}</div>'
        language = source.partition("\n")[0].strip("`~ \t").partition(" ")[0]
        named = f'<span class="language">{escape(language)}</span>' if language else ""
        caption = f"<figcaption>{titles}{named}</figcaption>" if titles or named else ""
        code = _scroll("Code", to_html(source))
        return f'<figure class="code" dir="ltr" {mark}>{caption}{code}</figure>'

    def _table(self) -> str:
        rows, head = list(self._take(lambda line: line.is_row)), ""
        if len(rows) > 1 and _RULE_ROW.fullmatch(rows[1].text):
            head = f"<thead>{self._row(rows.pop(0), 'th')}</thead>"
        body = "".join(self._row(row, "td") for row in rows if not _RULE_ROW.fullmatch(row.text))
        return _scroll("Table", f"<table>{head}<tbody>{body}</tbody></table>")

    def _row(self, row: _Line, cell: str) -> str:
        first, last = (bisect_left(self._starts, border) for border in (row.start, row.end))
        unit = self._units[first] if first < last else None
        scope = ' scope="col"' if cell == "th" else ""
        texts = [text.strip().replace("\\|", "|") for text in _CELL.split(row.text.strip()[1:-1])]
        cells = "".join(f'<{cell} dir="auto"{scope}>{_inline(text)}</{cell}>' for text in texts)
        return f"<tr {_mark(unit)}>{cells}</tr>" if unit else f"<tr>{cells}</tr>"

    def _list(self) -> str:
        items: list[ListItem] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            marker = _ITEM.match(line.text)
            if line.is_blank:
                following = self._lines[self._at + 1 : self._at + 2]
                if not following or not _ITEM.match(following[0].text):
                    break
                self._at += 1
            elif marker:
                number = int(marker[3]) if marker[3] else None
                words = self.inline(line.start + marker.end(), line.end)
                items.append(ListItem(len(marker[1]), number, [words]))
                self._at += 1
            elif self._block_unit(line):
                items[-1].parts.append(self._code_or_maths())
            elif line.text.startswith(" "):
                items[-1].parts.append(f"<br>{self.inline(line.start, line.end)}")
                self._at += 1
            else:
                break
        return nested(items)

    def _paragraph(self) -> str:
        lines = list(self._take(self._is_prose))
        following = self._lines[self._at] if self._at < len(self._lines) else None
        adjoins = following is not None and not following.is_blank
        note = _ADMONITION.fullmatch(lines[0].text.strip())
        if note and (len(lines) > 1 or adjoins):
            return self._note(note[1].lower(), lines, adjoins=adjoins)
        if adjoins and self._block_unit(self._lines[self._at]) and _are_titles(lines):
            titles = (f'<span class="name">{self._inline_of(line)}</span>' for line in lines)
            return self._code_or_maths("".join(titles))
        return self._prose(lines)

    def _note(self, kind: str, lines: list[_Line], *, adjoins: bool) -> str:
        title = f'<p class="title" dir="auto">{self._inline_of(lines[0])}</p>'
        body = self._prose(lines[1:]) if len(lines) > 1 else ""
        body += self._block() if adjoins else ""
        return f'<aside class="note {kind}">{title}{body}</aside>'

    def _prose(self, lines: list[_Line]) -> str:
        first, *rest = map(self._inline_of, lines)
        if rest and _are_titles(lines[:1]) and not _are_titles(lines[1:2]):
            first = f'<strong class="label">{first}</strong>'
        return f'<p dir="auto">{"<br>".join([first, *rest])}</p>'

    def _is_prose(self, line: _Line) -> bool:
        return not (
            line.is_blank or line.is_row or self._block_unit(line) or _ITEM.match(line.text)
        )

    def _take(self, wanted: Callable[[_Line], object]) -> Iterator[_Line]:
        while self._at < len(self._lines) and wanted(self._lines[self._at]):
            yield self._lines[self._at]
            self._at += 1

    # --- inline

    def _inline_of(self, line: _Line) -> str:
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


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield _Line(start, start + len(line), line)
        start += len(line) + 1


def _mark(unit: Marked) -> str:
    return f'id="{unit_id(unit.passage, unit.number)}" data-unit'


def _are_titles(lines: list[_Line]) -> bool:
    bare = [line.text.strip() for line in lines]
    return len(bare) <= _MOST_TITLES and all(
        len(text) <= _LONGEST_TITLE and not text.endswith(_STOPS) for text in bare
    )


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
