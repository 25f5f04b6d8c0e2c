"""Values that are passed between the steps: words, bookmarks, pages, chapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bythebook.interfaces.blocks import Block, LeftOut


class PdfRefused(Exception):
    """Reason why a PDF file is not read."""


class Style(NamedTuple):
    mono: bool
    bold: bool


@dataclass(slots=True, eq=False)
class Word:
    """Word with its box, turned so that its text runs from left to right."""

    text: str
    left: float
    right: float
    base: float  # y of the base line; larger is higher on the page
    size: float
    style: Style
    at: int  # offset of its first character in the text of the file
    turn: int = 0  # quarter turns of the text on the page
    ends_line: bool = False  # PDFium ends a line after it
    chapter: int | None = None  # set when a block is made of it
    left_out: str = ""  # why it is in no block: part of a running head or a table of contents

    @property
    def end(self) -> int:
        return self.at + len(self.text)


@dataclass(slots=True)
class PageText:
    """Words of one page, in the order of the file."""

    number: int  # from 1
    words: list[Word]
    bottom: float
    top: float
    lost: Sequence[str] = ()  # text that PDFium has and the words do not


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Entry of the outline."""

    level: int  # from 0
    title: str
    page: int  # from 1
    top: float | None  # y on the page


@dataclass(slots=True)
class PdfText:
    """What is read from a PDF file."""

    title: str  # from the metadata
    pages: list[PageText] = field(default_factory=list)
    outline: list[Bookmark] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)  # pages with images and no text
    unreadable: list[int] = field(default_factory=list)  # broken pages


@dataclass(slots=True)
class PdfChapter:
    """Part of the file that becomes one page of the book."""

    title: str
    module: str
    page: int  # on which it starts, from 1
    blocks: list[Block]
    words: list[str]  # visible words, counted without the blocks
    left_out: list[LeftOut] = field(default_factory=list)
