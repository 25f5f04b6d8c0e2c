"""Blocks to pieces of text: the least that may not be cut apart, in reading order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from bythebook.book.blocks import (
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

_BACKTICKS = re.compile(r"`{3,}")


class Kind(Enum):
    PROSE = "prose"  # may be cut between sentences
    TITLE = "title"  # a line that belongs to what follows
    ROW = "row"
    CODE = "code"
    MATHS = "maths"


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    span: Span
    kind: Kind = Kind.PROSE
    gap: str = "\n\n"  # what separates it from the piece before
    header: str = ""  # of its table: said again where the table is cut
    is_part: bool = False  # of a block that is too long for one passage
    continues: str | None = None  # a part: what stood between it and the part before


def render(blocks: Sequence[Block]) -> list[Piece]:
    pieces: list[Piece] = []
    for block in blocks:
        pieces.extend(_pieces(block, "", "\n\n"))
    return pieces


def _pieces(block: Block, indent: str, gap: str) -> Iterator[Piece]:
    match block:
        case Paragraph():
            yield Piece(_indented(block.text, indent), block.span, gap=gap)
        case Heading():
            yield Piece(_indented(block.text, indent), block.span, Kind.TITLE, gap)
        case Code():
            yield Piece(fenced(block), block.span, Kind.CODE, gap)
        case Maths():
            yield Piece(f"$$\n{block.text}\n$$", block.span, Kind.MATHS, gap)
        case Table():
            yield from _table(block, gap)
        case Listing():
            yield from _listing(block, indent, gap)
        case Quote():
            yield from _sequence(block.blocks, indent, gap)
        case Box():
            if block.title:
                yield Piece(_indented(block.title, indent), block.span, Kind.TITLE, gap)
                gap = "\n"
            yield from _sequence(block.blocks, indent, gap)


def _sequence(blocks: Sequence[Block], indent: str, gap: str) -> Iterator[Piece]:
    for block in blocks:
        yield from _pieces(block, indent, gap)
        gap = "\n" if indent else "\n\n"


def _indented(text: str, indent: str) -> str:
    return indent + text.replace("\n", "\n" + indent) if indent else text


def _listing(listing: Listing, indent: str, gap: str) -> Iterator[Piece]:
    for number, item in enumerate(listing.items, listing.start):
        marker = f"{number}. " if listing.ordered else "- "
        deeper = indent + " " * len(marker)
        first, *rest = item or (Paragraph("", listing.span),)
        if isinstance(first, (Paragraph, Heading)):
            text = _indented(first.text, deeper).lstrip(" ")
            yield Piece(indent + marker + text, first.span, Kind.PROSE, gap)
        else:
            rest = list(item)
        for block in rest:
            yield from _pieces(block, deeper, "\n")
        gap = "\n"


def _table(table: Table, gap: str) -> Iterator[Piece]:
    header = f"{_row(table.header)}\n|{'---|' * len(table.header)}"
    yield Piece(header, table.span, Kind.TITLE, gap)
    for row in table.rows:
        yield Piece(_row(row), table.span, Kind.ROW, "\n", header)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def fenced(code: Code, *, text: str | None = None) -> str:
    """Code between fences that nothing inside it can close."""
    text = code.text if text is None else text
    fence = fence_for(text)
    title = f"{code.title}\n" if code.title else ""
    return f"{title}{fence}{code.language}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    return "`" * (longest + 1)
