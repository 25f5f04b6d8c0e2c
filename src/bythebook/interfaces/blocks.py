"""Block tree of a page: its visible content in order.

Every block has its offsets in the source file (``span``), so that a citation can be located. The
text of a paragraph, a heading or a cell may be a ``MarkedText``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bythebook.types import Mark

Span = tuple[int, int]


class MarkedText(str):
    """Plain text that knows its links, images, inline code and emphasis."""

    marks: tuple[Mark, ...] = ()


def marked(text: str, marks: Sequence[Mark]) -> str:
    """Return the text with marks, the outer ones first."""
    if not marks:
        return text
    made = MarkedText(text)
    made.marks = tuple(marks)
    return made


def marks_of(text: str) -> tuple[Mark, ...]:
    return text.marks if isinstance(text, MarkedText) else ()


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str | None  # as in the page's HTML; None if the heading has no id there
    span: Span


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Code:
    language: str
    title: str
    text: str  # verbatim, without the last line end
    span: Span


@dataclass(frozen=True, slots=True)
class Maths:
    text: str  # the source between the dollar signs
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Listing:
    ordered: bool
    start: int
    items: tuple[tuple[Block, ...], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple[Block, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Box:
    """Blocks with a visible title: an admonition, a tab, ``<details>`` or a footnote."""

    title: str
    blocks: tuple[Block, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Anchor:
    """Position without visible text; what follows, up to the next heading, is linked here.

    Used where a format has finer positions than headings: the pages of a PDF file, the cells of a
    notebook.
    """

    name: str
    span: Span


Block = Heading | Paragraph | Code | Maths | Table | Listing | Quote | Box | Anchor


@dataclass(frozen=True, slots=True)
class Remark:
    """Warning about a page for its author."""

    line: int | None  # from 1, in the file
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Text that a reader of a format leaves out on purpose."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed file."""

    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]  # all on the page, including those inside boxes and lists
    words: tuple[str, ...]  # that passages should have, counted without the blocks
    remarks: tuple[Remark, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
