"""Functions on block trees that do not depend on a format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bythebook.interfaces.blocks import (
    Anchor,
    Block,
    Box,
    Code,
    Document,
    Heading,
    Listing,
    Paragraph,
    Quote,
    Remark,
    Table,
)
from bythebook.language.text import words


def document_of(blocks: Sequence[Block], remarks: Sequence[Remark] = ()) -> Document:
    """Make a document whose headings and visible words are those of its blocks."""
    return Document(
        blocks=tuple(blocks),
        headings=tuple(headings_of(blocks)),
        words=tuple(words(plain_text(blocks))),
        remarks=tuple(remarks),
    )


def headings_of(blocks: Sequence[Block]) -> Iterator[Heading]:
    """Yield all headings in page order, including those inside boxes, quotes and lists."""
    for block in blocks:
        match block:
            case Heading():
                yield block
            case Box() | Quote():
                yield from headings_of(block.blocks)
            case Listing():
                for item in block.items:
                    yield from headings_of(item)
            case _:
                pass


def plain_text(blocks: Sequence[Block]) -> str:
    """Return the text of blocks, for single-line use: a summary, a cell, a heading."""
    lines: list[str] = []
    for block in blocks:
        match block:
            case Paragraph() | Heading():
                lines.append(block.text)
            case Code():
                lines.extend((block.title, block.text))
            case Listing():
                lines.extend(plain_text(item) for item in block.items)
            case Quote():
                lines.append(plain_text(block.blocks))
            case Box():
                lines.extend((block.title, plain_text(block.blocks)))
            case Table():
                lines.extend(" ".join(row) for row in (block.header, *block.rows))
            case Anchor():
                pass
            case _:
                lines.append(f"${block.text}$")
    return "\n".join(line for line in lines if line)
