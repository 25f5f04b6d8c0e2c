"""Render blocks as text pieces, the units that chunking keeps whole, in reading order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

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
)
from bythebook.text.text_kinds import kind_of_heading
from bythebook.text.units import row_of
from bythebook.types import TextKind

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
    header: str = ""  # of its table: repeated where the table is split
    is_part: bool = False  # part of a block that is too long for one passage
    continues: str | None = None  # for a part: its separator from the previous part
    text_kind: TextKind = TextKind.TEXT  # of the innermost box around it whose title names one


def render(blocks: Sequence[Block]) -> list[TextPiece]:
    pieces: list[TextPiece] = []
    for block in blocks:
        pieces.extend(_pieces(block, "", "\n\n"))
    return pieces


def _pieces(block: Block, indent: str, gap: str) -> Iterator[TextPiece]:
    match block:
        case Paragraph():
            yield TextPiece(_indented(block.text, indent), block.span, gap=gap)
        case Heading():
            yield TextPiece(_indented(block.text, indent), block.span, PieceKind.TITLE, gap)
        case Code():
            yield TextPiece(fenced(block), block.span, PieceKind.CODE, gap)
        case Maths():
            yield TextPiece(f"$$\n{block.text}\n$$", block.span, PieceKind.MATHS, gap)
        case Table():
            yield from _table(block, gap)
        case Listing():
            yield from _listing(block, indent, gap)
        case Quote():
            yield from _sequence(block.blocks, indent, gap)
        case Box():
            kind = kind_of_heading(block.title)
            for piece in _boxed(block, indent, gap):
                inner = piece.text_kind
                yield piece if inner is not TextKind.TEXT else replace(piece, text_kind=kind)
        case Anchor():
            pass


def _boxed(box: Box, indent: str, gap: str) -> Iterator[TextPiece]:
    if box.title:
        yield TextPiece(_indented(box.title, indent), box.span, PieceKind.TITLE, gap)
        gap = "\n"
    yield from _sequence(box.blocks, indent, gap)


def _sequence(blocks: Sequence[Block], indent: str, gap: str) -> Iterator[TextPiece]:
    for block in blocks:
        yield from _pieces(block, indent, gap)
        gap = "\n" if indent else "\n\n"


def _indented(text: str, indent: str) -> str:
    return indent + text.replace("\n", "\n" + indent) if indent else text


def _listing(listing: Listing, indent: str, gap: str) -> Iterator[TextPiece]:
    for number, item in enumerate(listing.items, listing.start):
        marker = f"{number}. " if listing.ordered else "- "
        deeper = indent + " " * len(marker)
        first, *rest = item or (Paragraph("", listing.span),)
        if isinstance(first, (Paragraph, Heading)):
            text = _indented(first.text, deeper).lstrip(" ")
            yield TextPiece(indent + marker + text, first.span, PieceKind.PROSE, gap)
        else:
            rest = list(item)
        for block in rest:
            yield from _pieces(block, deeper, "\n")
        gap = "\n"


def _table(table: Table, gap: str) -> Iterator[TextPiece]:
    header = f"{row_of(table.header)}\n|{'---|' * len(table.header)}"
    yield TextPiece(header, table.span, PieceKind.TITLE, gap)
    for row in table.rows:
        yield TextPiece(row_of(row), table.span, PieceKind.ROW, "\n", header)


def fenced(code: Code, *, text: str | None = None) -> str:
    """Return the code in a fence that is longer than any fence inside it."""
    text = code.text if text is None else text
    fence = fence_for(text)
    title = f"{code.title}\n" if code.title else ""
    return f"{title}{fence}{code.language}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    return "`" * (longest + 1)
