"""Convert the text of a section to Markdown that is read back as the same text.

A section contains only what ``ingestion/render.py`` writes: paragraphs, lists, tables, fenced code,
maths between dollars, and lines that are the title of the block after them. Two lines without a
blank line between them belong to one block, or to one item of a list.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

from bythebook.sources.markdown.elements import ADMONITIONS
from bythebook.text.section_text import Joined
from bythebook.types import UnitKind

_ITEM = re.compile(r"( *)(-|[0-9]{1,9}\.)(?: +|$)")
_RULE_ROW = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_CELL = re.compile(r"(?<!\\)\|")
_NOTE = re.compile(rf"(?:{'|'.join(sorted(ADMONITIONS))})(?: — .+)?", re.IGNORECASE)
_HARD_BREAK = "  "

_MATHS = re.compile(
    r"(?<!\$)(?:\$(?![\s$])[^$]+(?<!\s)\$(?![\d$])|\$\$(?!\$)(?:[^$]|\$(?!\$))+\$\$(?!\$))"
)
_SPECIAL = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # an escape
    r"|`"
    r"|\*+|_+|~{2,}"  # emphasis
    r"|<(?=[A-Za-z/!?>])"  # a tag or an address
    r"|[\[\]]"  # a link or a footnote
    r"|&(?=#?\w+;)"  # an entity
    r"|\{(?=#)"  # the id of a heading
)
_LINK_END = re.compile(r"\][(\[:]")
_BLOCK_START = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[+*-](?=\s|$)|:::|(?P<rule>[-=_*])(?P=rule)*\s*$)|(?P<number>\d{1,9})[.)](?=\s|$)"
)


def escape(text: str, *, in_link: bool = False) -> str:
    """Escape the characters of a line that Markdown would take for markup; maths stay as is.

    In the text of a link, all brackets are escaped.
    """
    parts, done = [], 0
    for maths in _MATHS.finditer(text):
        parts += [_escape_words(text[done : maths.start()], in_link), maths.group()]
        done = maths.end()
    return "".join([*parts, _escape_words(text[done:], in_link)])


def _escape_words(text: str, in_link: bool) -> str:
    has_link = _LINK_END.search(text) is not None

    def escaped(found: re.Match[str]) -> str:
        signs, start, end = found.group(), found.start(), found.end()
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        if signs in "[]" and not (in_link or (signs == "[" and (has_link or after == "^"))):
            return signs
        if signs[0] in "*_" and _is_harmless(signs[0], before, after):
            return signs
        return "".join(f"\\{sign}" for sign in signs)

    return _SPECIAL.sub(escaped, text)


def _is_harmless(sign: str, before: str, after: str) -> bool:
    """Return whether a sign cannot start or end emphasis: ``a * b``, ``snake_case``."""
    alone = not (before.strip() or after.strip())
    return alone or (sign == "_" and before.isalnum() and after.isalnum())


def escape_line(text: str) -> str:
    """Escape a line of a paragraph, also what would start another block."""
    start = _BLOCK_START.match(text)
    if start is None:
        return escape(text)
    if (number := start["number"]) is not None:
        return f"{number}\\{escape(text[len(number) :])}"
    return f"\\{text[0]}{escape(text[1:])}"


def escape_heading(text: str) -> str:
    """Escape a heading, also the signs that would close it."""
    line = escape(" ".join(text.split()))
    return re.sub(r"(?:^| )(#+)$", lambda closing: closing.group().replace("#", "\\#"), line)


def section_markdown(section: Joined) -> str:
    """Return the section as Markdown, without its heading."""
    return _Section(section).markdown()


class _Section:
    def __init__(self, section: Joined) -> None:
        self._text = section.text
        self._units = section.units
        self._unit_starts = [unit.start for unit in section.units]
        blocks = (unit for unit in section.units if unit.kind in (UnitKind.CODE, UnitKind.MATHS))
        self._blocks = {unit.start for unit in blocks}
        self._lines = section.text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._at = 0

    def markdown(self) -> str:
        written: list[str] = []
        while self._skip_blank():
            gap = "\n" if self._is_code_title() else "\n\n"
            written += [gap if written else "", self._block()]
        return "".join(written)

    def _skip_blank(self) -> bool:
        while self._at < len(self._lines) and not self._lines[self._at].strip():
            self._at += 1
        return self._at < len(self._lines)

    def _is_code_title(self) -> bool:
        """Return whether the previous line is prose right above this code block."""
        return self._at > 0 and self._is_block(self._at) and bool(self._lines[self._at - 1].strip())

    # --- blocks: each method consumes the lines of its block

    def _block(self) -> str:
        if self._is_block(self._at):
            return "\n".join(self._code_or_maths())
        if self._is_table(self._at):
            return "\n".join(self._table())
        if _ITEM.match(self._lines[self._at]):
            return "\n".join(_List(self).lines())
        return self._paragraph()

    def _is_block(self, at: int) -> bool:
        """Return whether a code or maths block starts at this line."""
        if at >= len(self._lines):
            return False
        line = self._lines[at]
        return self._starts[at] + len(line) - len(line.lstrip()) in self._blocks

    def _is_table(self, at: int) -> bool:
        rule = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        return _is_row(self._lines[at]) and _RULE_ROW.fullmatch(rule) is not None

    def _code_or_maths(self) -> list[str]:
        line = self._lines[self._at]
        start = self._starts[self._at] + len(line) - len(line.lstrip())
        after = bisect_right(self._unit_starts, start)
        parts = list(takewhile(lambda unit: unit.continues, self._units[after:]))
        end = parts[-1].end if parts else self._units[after - 1].end
        while self._at < len(self._lines) and self._starts[self._at] < end:
            self._at += 1
        return self._text[start:end].split("\n")

    def _table(self) -> list[str]:
        rows: list[str] = []
        while self._at < len(self._lines) and _is_row(self._lines[self._at]):
            row = self._lines[self._at].strip()
            rows.append(row if _RULE_ROW.fullmatch(row) else _escape_row(row))
            self._at += 1
        return rows

    def _paragraph(self) -> str:
        lines: list[str] = []
        while self._at < len(self._lines) and self._is_prose(self._at, first=not lines):
            lines.append(escape_line(self._lines[self._at].strip()))
            self._at += 1
        if _NOTE.fullmatch(lines[0]):
            lines[0] = f"**{lines[0]}**"
        return f"{_HARD_BREAK}\n".join(lines)

    def _is_prose(self, at: int, *, first: bool) -> bool:
        line = self._lines[at]
        starts_other = self._is_block(at) or self._is_table(at) or _ITEM.match(line)
        return bool(line.strip()) and (first or not starts_other)

    # --- what a list needs

    def take_line(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def peek(self) -> str | None:
        """Return the next line of the section, or None at its end."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    def list_goes_on(self) -> bool:
        """Return whether an item or an indented line follows the blank lines here."""
        rest = (line for line in self._lines[self._at :] if line.strip())
        following = next(rest, "")
        return _ITEM.match(following) is not None or following.startswith(" ")

    def take_whole(self) -> Sequence[str]:
        """Take the code, the maths or the table that starts here; empty if none does."""
        if self._is_block(self._at):
            return self._code_or_maths()
        return self._table() if self._is_table(self._at) else ()


class _List:
    """Writer of one list, with the blocks inside its items."""

    def __init__(self, section: _Section) -> None:
        self._section = section
        self._written: list[str] = []
        self._base: int | None = None  # indent of the first item, which is written without
        self._content = 0  # column at which the text of the last item starts
        self._after_prose = False

    def lines(self) -> list[str]:
        section = self._section
        while (line := section.peek()) is not None and (line.strip() or section.list_goes_on()):
            self._add(line)
        return self._written

    def _add(self, line: str) -> None:
        section = self._section
        if not line.strip():
            self._write(section.take_line().strip())
        elif whole := section.take_whole():
            if _is_row(whole[0]):
                self._write("")
            for part in whole:
                self._write(" " * self._content + part if part else part)
        elif item := _ITEM.match(line):
            self._add_item(item, section.take_line()[item.end() :])
        else:
            self._add_continuation(section.take_line())

    def _add_item(self, item: re.Match[str], text: str) -> None:
        indent, marker = len(item[1]), item[2]
        if self._base is None:
            self._base = indent
        indent = max(0, indent - self._base)
        self._content = indent + len(marker) + 1
        self._write(f"{' ' * indent}{marker} {escape_line(text)}".rstrip(), is_prose=True)

    def _add_continuation(self, line: str) -> None:
        """Write a further line of an item, after a blank line if it belongs to an outer one."""
        text = line.lstrip()
        is_indented = line.startswith(" ")
        indent = len(line) - len(text) - (self._base or 0) if is_indented else self._content
        if indent < self._content or not self._after_prose:
            self._write("")
        else:
            self._written[-1] += _HARD_BREAK
        self._write(" " * max(0, indent) + escape_line(text.rstrip()), is_prose=True)

    def _write(self, line: str, *, is_prose: bool = False) -> None:
        self._written.append(line)
        self._after_prose = is_prose


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def _escape_row(row: str) -> str:
    cells = [cell.strip().replace("\\|", "|") for cell in _CELL.split(row[1:-1])]
    return "| " + " | ".join(escape(cell).replace("|", "\\|") for cell in cells) + " |"
