"""Write the Markdown of a text with marks, and find the marks that a text needs.

A passage is stored as plain text and its marks. Its Markdown is the text with signs inserted, so
that the Markdown of any part of a passage is as easy to write as that of a page.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from bythebook.text.units import split_units
from bythebook.types import Mark, MarkKind, Unit, UnitKind

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
    r"(?:#{1,6}(?=\s|$)|>|\||[+*-](?=\s|$)|:::|(?P<rule>[-=_*])(?P=rule)*\s*$)"
    r"|(?P<number>\d{1,9})[.)](?=\s|$)"
)
_CLOSING_SIGNS = re.compile(r"(?:^| )(#+)$")
_TICKS = re.compile("`+")
# Of Markdown as language models write it: code and maths, and signs that they mean literally.
_KEPT = r"`[^`\n]+`|``[^\n]+?``|\$\$[^$\n]+\$\$|\$(?![\s$])[^$\n]+(?<!\s)\$(?!\d)"
_LITERAL = re.compile(rf"(?P<kept>{_KEPT})|[\\_]|(?<=\w)\*+(?=\w)")
_UNSAFE_IN_URL = {ord(sign): f"%{ord(sign):02X}" for sign in " <>()\"'\\`\n\t"}


def markdown(text: str, marks: Iterable[Mark]) -> str:
    """Return the text as Markdown. ``marks`` begin in order, the outer ones first."""
    marks = list(marks)
    shared = Counter(edge for mark in marks if _is_inline(mark) for edge in mark[:2])
    parts: list[str] = []
    opened: list[tuple[int, str]] = []  # end and closing sign, the innermost last
    done = 0

    def write(end: int, sign: str) -> None:
        nonlocal done
        parts.extend((text[done:end], sign))
        done = end

    for mark in marks:
        while opened and opened[-1][0] <= mark.start:
            write(*opened.pop())
        end = min(mark.end, opened[-1][0]) if opened else mark.end
        before, after = _signs(text, mark, shared)
        write(mark.start, before)
        if after:
            opened.append((end, after))
    while opened:
        write(*opened.pop())
    return "".join([*parts, text[done:]])


def _is_inline(mark: Mark) -> bool:
    return mark.kind is not MarkKind.INSERTED


def _signs(text: str, mark: Mark, shared: Counter[int]) -> tuple[str, str]:
    """Return the signs before and after the range of a mark."""
    if mark.kind is MarkKind.INSERTED:
        return mark.target, ""
    inside = text[mark.start : mark.end]
    if mark.kind is MarkKind.CODE:
        ticks = "`" * (1 + max(map(len, _TICKS.findall(inside)), default=0))
        space = " " if inside[0] == "`" or inside[-1] == "`" else ""
        return ticks + space, space + ticks
    if mark.kind in (MarkKind.LINK, MarkKind.IMAGE):
        return mark.kind.value, f"]({mark.target.translate(_UNSAFE_IN_URL)})"
    before, after = text[mark.start - 1 : mark.start], text[mark.end : mark.end + 1]
    opens = not before.isalnum() or (inside[0].isalnum() and shared[mark.start] < 2)
    closes = not after.isalnum() or (inside[-1].isalnum() and shared[mark.end] < 2)
    return (mark.kind.value, mark.kind.value) if opens and closes else ("", "")


# --- marks ----------------------------------------------------------------------------------------


def marks_within(marks: Iterable[Mark], start: int, end: int) -> Iterator[Mark]:
    """Yield the marks of ``text[start:end]``, with offsets in it."""
    for mark in marks:
        first, last = max(mark.start, start), min(mark.end, end)
        if first < last or start <= mark.start == mark.end < end:
            yield mark._replace(start=first - start, end=last - start)


def inline_marks(marks: Sequence[Mark] | None, start: int, end: int) -> tuple[Mark, ...] | None:
    """Return the marks within a line or a block, without those that a whole section needs."""
    if marks is None:
        return None
    return tuple(mark for mark in marks_within(marks, start, end) if mark.start < mark.end)


def moved(marks: Iterable[Mark], by: int) -> Iterator[Mark]:
    return (mark._replace(start=mark.start + by, end=mark.end + by) for mark in marks)


def in_order(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Sort marks: what is inserted at a place comes first, then the outer ones."""
    return tuple(sorted(marks, key=lambda mark: (mark.start, mark.start < mark.end, -mark.end)))


def cut_at_units(text: str, marks: Iterable[Mark], units: Sequence[Unit]) -> tuple[Mark, ...]:
    """Cut marks where a unit begins or ends, so that none is partly in a unit."""
    borders = sorted({border for unit in units for border in (unit.start, unit.end)})
    cut: list[Mark] = []
    for mark in marks_within(marks, 0, len(text)):
        inner = borders[bisect_right(borders, mark.start) : bisect_left(borders, mark.end)]
        edges = [mark.start, *inner, mark.end]
        for start, end in pairwise(edges):
            if start == end or text[start:end].strip():
                cut.append(mark._replace(start=start, end=end))
    return in_order(cut)


def found_marks(text: str) -> tuple[Mark, ...]:
    """Return the escapes of signs that are literal in Markdown as language models write it.

    ``__init__``, ``2*3*4``, ``a\\*b`` and ``handlers[0](event)`` are text, not markup.
    """
    found: list[Mark] = []
    whole = [unit for unit in split_units(text) if unit.kind in (UnitKind.CODE, UnitKind.MATHS)]
    done = 0
    for unit in [*whole, Unit(len(text), len(text))]:
        for sign in _LITERAL.finditer(text, done, unit.start):
            if sign["kept"] is None:
                found.extend(map(_backslash, range(sign.start(), sign.end())))
        done = unit.end
    return tuple(found)


def _backslash(place: int) -> Mark:
    return Mark(place, place + 1, MarkKind.INSERTED, "\\")


def escape_marks(text: str, marks: Sequence[Mark] = (), *, starts_line: bool = True) -> list[Mark]:
    """Return the escapes of literal text around its inline code, and of what starts a block."""
    has_link = any(mark.kind in (MarkKind.LINK, MarkKind.IMAGE) for mark in marks)
    codes = [mark for mark in marks if mark.kind is MarkKind.CODE]
    found: list[Mark] = []
    done = 0
    for code in [*codes, Mark(len(text), len(text), MarkKind.CODE)]:
        places = _special(text[done : code.start], in_link=has_link)
        found += (_backslash(done + place) for place in places)
        done = max(done, code.end)
    start, taken = 0, {mark.start for mark in (*found, *codes)}
    for line in text.split("\n") if starts_line else ():
        begun = _BLOCK_START.match(line)
        place = start + (begun.end("number") if begun and begun["number"] else 0)
        if begun is not None and taken.isdisjoint((start, place)):
            found.append(_backslash(place))
        start += len(line) + 1
    return found


def _special(text: str, *, in_link: bool) -> Iterator[int]:
    """Yield the places of signs that Markdown would take for markup; maths stays as is."""
    done = 0
    for maths in _MATHS.finditer(text):
        yield from _special_in_words(text, done, maths.start(), in_link)
        done = maths.end()
    yield from _special_in_words(text, done, len(text), in_link)


def _special_in_words(text: str, start: int, end: int, in_link: bool) -> Iterator[int]:
    has_link = in_link or _LINK_END.search(text, start, end) is not None
    for found in _SPECIAL.finditer(text, start, end):
        sign = found.group()[0]
        before, after = (
            text[max(0, found.start() - 1) : found.start()],
            text[found.end() : found.end() + 1],
        )
        if sign in "[]" and not (in_link or (sign == "[" and (has_link or after == "^"))):
            continue
        if sign in "*_" and _is_harmless(sign, before, after):
            continue
        yield from range(found.start(), found.end())


def _is_harmless(sign: str, before: str, after: str) -> bool:
    """Return whether a sign cannot start or end emphasis: ``a * b``, ``snake_case``."""
    alone = not (before.strip() or after.strip())
    return alone or (sign == "_" and before.isalnum() and after.isalnum())


def escape(text: str, *, in_link: bool = False) -> str:
    """Return one line of plain text as Markdown; in a link's text, all brackets are escaped."""
    return markdown(text, map(_backslash, _special(text, in_link=in_link)))


def escape_heading(text: str) -> str:
    """Return a heading as Markdown, without its level; signs at its end would close it."""
    line = escape(" ".join(text.split()))
    return _CLOSING_SIGNS.sub(lambda closing: closing.group().replace("#", "\\#"), line)
