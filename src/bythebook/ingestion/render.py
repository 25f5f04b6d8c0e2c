"""Render blocks as text pieces, the units that chunking keeps whole, in reading order.

A piece is plain text, in which the marks of lists, tables and code are part of the text, with the
marks that make Markdown of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from bythebook.interfaces.blocks import (
    Anchor,
    Block,
    Box,
    Code,
    Heading,
    Listing,
    Maths,
    Paragraph,
    Quote,
    Span,
    Table,
    marks_of,
)
from bythebook.text.markdown import escape_marks, moved
from bythebook.text.text_kinds import kind_of_heading
from bythebook.text.units import NOTE, row_of
from bythebook.types import Mark, MarkKind, TextKind

_BACKTICKS = re.compile(r"`{3,}")


class PieceKind(Enum):
    PROSE = "prose"  # may be split between sentences
    TITLE = "title"  # a line that belongs to the next piece
    ROW = "row"
    CODE = "code"
    MATHS = "maths"


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str
    span: Span
    kind: PieceKind = PieceKind.PROSE
    gap: str = "\n\n"  # separator from the previous piece
    header: TextPiece | None = None  # of its table: repeated where the table is split
    nesting: int = 0  # 1: begins an item of a list that is in no other; 2: further inside
    is_part: bool = False  # part of a block that is too long for one passage
    continues: str | None = None  # for a part: its separator from the previous part
    text_kind: TextKind = TextKind.TEXT  # of the innermost box around it whose title names one
    marks: tuple[Mark, ...] = ()  # one before the start is in the gap


class _Layout(NamedTuple):
    """Where a block stands."""

    indent: str = ""  # of its lines, in a list
    gap: str = "\n\n"
    quote: str = ""  # before its lines in Markdown, in a quotation or a note: "> "
    shared: str = ""  # the same of what it has in common with the block before it
    apart: bool = True  # Markdown needs an empty line before it


def render(blocks: Sequence[Block]) -> list[TextPiece]:
    return list(_sequence(blocks, _Layout()))


def _pieces(block: Block, at: _Layout) -> Iterator[TextPiece]:
    match block:
        case Paragraph():
            yield _prose(block.text, block.span, PieceKind.PROSE, at)
        case Heading():
            yield _prose(block.text, block.span, PieceKind.TITLE, at)
        case Code():
            marks = escape_marks(block.title)
            yield _verbatim(_fenced(block), block.span, PieceKind.CODE, at, marks)
        case Maths():
            yield _verbatim(f"$$\n{block.text}\n$$", block.span, PieceKind.MATHS, at)
        case Table():
            yield from _table(block, at)
        case Listing():
            yield from _listing(block, at)
        case Quote():
            yield from _sequence(block.blocks, _quoted(at))
        case Box():
            kind = kind_of_heading(block.title)
            for piece in _boxed(block, at):
                inner = piece.text_kind
                yield piece if inner is not TextKind.TEXT else replace(piece, text_kind=kind)
        case Anchor():
            pass


def _boxed(box: Box, at: _Layout) -> Iterator[TextPiece]:
    inner = _quoted(at) if NOTE.fullmatch(box.title) else at
    if box.title:
        yield _prose(box.title, box.span, PieceKind.TITLE, inner)
        is_titled = isinstance(next(iter(box.blocks), None), Code)
        inner = inner._replace(gap="\n", shared=inner.quote, apart=not is_titled)
    yield from _sequence(box.blocks, inner)


def _quoted(at: _Layout) -> _Layout:
    return at if at.indent else at._replace(quote=f"{at.quote}> ")


def _sequence(blocks: Sequence[Block], at: _Layout) -> Iterator[TextPiece]:
    for block in blocks:
        yield from _pieces(block, at)
        at = at._replace(gap="\n" if at.indent else "\n\n", shared=at.quote, apart=True)


def _prose(
    text: str, span: Span, kind: PieceKind, at: _Layout, marker: str | None = None
) -> TextPiece:
    """Return a paragraph, a title, or the first lines of a list item, with its marker."""
    marks = [Mark(0, len(text), MarkKind.STRONG)] * (kind is PieceKind.TITLE and bool(text))
    marks += marks_of(text)
    marks += escape_marks(text, marks)
    breaks = (place for place, char in enumerate(text) if char == "\n")
    marks += (Mark(place, place, MarkKind.INSERTED, "  ") for place in breaks)
    indent = at.indent + " " * len(marker or "")
    if indent:
        depth = len(indent)
        marks = [
            mark._replace(
                start=mark.start + depth * (1 + text.count("\n", 0, mark.start)),
                end=mark.end + depth * (1 + text.count("\n", 0, mark.end)),
            )
            for mark in marks
        ]
        first = at.indent + marker if marker else indent
        text = first + text.replace("\n", f"\n{indent}")
    layout = _line_marks(text, at.quote, at)
    nesting = 1 if marker and not at.indent else 2 * bool(indent)
    return TextPiece(str(text), span, kind, at.gap, nesting=nesting, marks=(*layout, *marks))


def _verbatim(
    text: str, span: Span, kind: PieceKind, at: _Layout, marks: Sequence[Mark] = ()
) -> TextPiece:
    """Return a block whose lines are not indented in the text, but in Markdown."""
    layout = _line_marks(text, at.quote + at.indent, at)
    nesting = 2 * bool(at.indent)
    return TextPiece(text, span, kind, at.gap, nesting=nesting, marks=(*layout, *marks))


def _line_marks(text: str, prefix: str, at: _Layout) -> Iterator[Mark]:
    """Yield what Markdown needs before the lines of a block, and above it."""
    shared = at.shared.rstrip()
    if at.gap == "\n" and at.apart:
        yield Mark(0, 0, MarkKind.INSERTED, f"{shared}\n")
    elif at.gap == "\n\n" and shared:
        yield Mark(-1, -1, MarkKind.INSERTED, shared)
    if prefix:
        yield Mark(0, 0, MarkKind.INSERTED, prefix)
        for place, char in enumerate(text, 1):
            if char == "\n":
                yield Mark(place, place, MarkKind.INSERTED, prefix)


def _listing(listing: Listing, at: _Layout) -> Iterator[TextPiece]:
    if at.gap == "\n" and not (listing.ordered and listing.start != 1):
        at = at._replace(apart=False)
    for number, item in enumerate(listing.items, listing.start):
        marker = f"{number}. " if listing.ordered else "- "
        first, *rest = item or (Paragraph("", listing.span),)
        if isinstance(first, (Paragraph, Heading)):
            text = first.text if marks_of(first.text) else first.text.lstrip(" ")
            yield _prose(text, first.span, PieceKind.PROSE, at, marker)
        else:
            rest = list(item)
        inside = at._replace(indent=at.indent + " " * len(marker), gap="\n", shared=at.quote)
        yield from _sequence(rest, inside._replace(apart=True))
        at = at._replace(gap="\n", shared=at.quote, apart=False)


def _table(table: Table, at: _Layout) -> Iterator[TextPiece]:
    first, *_ = rows = [table.header, *table.rows]
    rule = f"\n|{'---|' * len(first)}"
    header = _row(first, table.span, PieceKind.TITLE, at, rule)
    yield header
    at = at._replace(gap="\n", apart=False)
    for row in rows[1:]:
        yield replace(_row(row, table.span, PieceKind.ROW, at), header=header)


def _row(
    cells: Sequence[str], span: Span, kind: PieceKind, at: _Layout, rule: str = ""
) -> TextPiece:
    marks: list[Mark] = []
    place = len("| ")
    for cell in cells:
        own = [*marks_of(cell), *escape_marks(cell, marks_of(cell), starts_line=False)]
        bars = [at for at, char in enumerate(cell) if char == "|"]
        if bars:  # they have a backslash in the text of the row
            own = [
                mark._replace(
                    start=mark.start + sum(bar < mark.start for bar in bars),
                    end=mark.end + sum(bar < mark.end for bar in bars),
                )
                for mark in own
            ]
        marks += moved(own, place)
        place += len(cell) + len(bars) + len(" | ")
    return _verbatim(row_of(cells) + rule, span, kind, at, marks)


def _fenced(code: Code) -> str:
    """Return the code in a fence that is longer than any fence inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(code.text)), default=2)
    fence = "`" * (longest + 1)
    title = f"{code.title}\n" if code.title else ""
    return f"{title}{fence}{code.language}\n{code.text}\n{fence}"
