"""The block tree: what a reader sees on a page, in order, with Markdown's own marks gone.

Every block knows the slice of its source file (``span``), so that a citation can be shown in place.
"""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str | None  # as in the page's HTML; None where the page has no id for it
    span: Span


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Code:
    language: str
    title: str
    text: str  # byte for byte, without the last line end
    span: Span


@dataclass(frozen=True, slots=True)
class Maths:
    text: str  # the source between the dollars
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
    """Blocks under a visible title: an admonition, a tab, ``<details>`` or a footnote."""

    title: str
    blocks: tuple[Block, ...]
    span: Span


Block = Heading | Paragraph | Code | Maths | Table | Listing | Quote | Box


@dataclass(frozen=True, slots=True)
class Remark:
    """Something of a page that its author should know."""

    line: int | None  # from 1, in the file
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file."""

    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]  # every one on the page, those inside boxes and lists too
    words: tuple[str, ...]  # the visible words, read off the parser's tokens
    remarks: tuple[Remark, ...] = ()
