"""JSON of chapters, as the worker writes them and the source reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bythebook.interfaces.blocks import (
    Anchor,
    Block,
    Code,
    Heading,
    LeftOut,
    Listing,
    Paragraph,
    Span,
    Table,
)
from bythebook_formats.pdf.model import PdfChapter


def encode_chapter(chapter: PdfChapter) -> str:
    value = {
        "title": chapter.title,
        "module": chapter.module,
        "page": chapter.page,
        "blocks": [_encode(block) for block in chapter.blocks],
        "words": chapter.words,
        "left_out": [[each.reason, each.text] for each in chapter.left_out],
    }
    return json.dumps({"chapter": value}, separators=(",", ":"))


def _encode(block: Block) -> list[object]:
    match block:
        case Heading():
            return ["heading", block.span, block.level, block.text, block.anchor]
        case Paragraph():
            return ["paragraph", block.span, block.text]
        case Code():
            return ["code", block.span, block.text]
        case Table():
            return ["table", block.span, block.header, block.rows]
        case Listing():
            items = [[_encode(inner) for inner in item] for item in block.items]
            return ["listing", block.span, block.ordered, block.start, items]
        case Anchor():
            return ["anchor", block.span, block.name]
        case _:
            raise TypeError(f"no PDF file has a block {type(block).__name__}")


def decode_chapter(value: Any) -> PdfChapter:
    """Make a chapter of JSON; raise ValueError, TypeError or KeyError if it is none."""
    return PdfChapter(
        title=_text(value["title"]),
        module=_text(value["module"]),
        page=_number(value["page"]),
        blocks=_blocks(value["blocks"]),
        words=[_text(word) for word in value["words"]],
        left_out=[LeftOut(_text(why), _text(text)) for why, text in value["left_out"]],
    )


def _blocks(values: Iterable[Any]) -> list[Block]:
    return [_decode(*value) for value in values]


def _decode(kind: str, span: Any, *fields: Any) -> Block:
    at = _span(span)
    match kind, fields:
        case "heading", (level, text, anchor):
            return Heading(_number(level), _text(text), _text(anchor), at)
        case "paragraph", (text,):
            return Paragraph(_text(text), at)
        case "code", (text,):
            return Code("", "", _text(text), at)
        case "table", (header, rows):
            return Table(_texts(header), tuple(_texts(row) for row in rows), at)
        case "listing", (ordered, start, items):
            blocks = tuple(tuple(_blocks(item)) for item in items)
            return Listing(bool(ordered), _number(start), blocks, at)
        case "anchor", (name,):
            return Anchor(_text(name), at)
        case _:
            raise ValueError(f"no block: {kind!r}")


def _span(value: Any) -> Span:
    start, end = value
    return _number(start), _number(end)


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("not a number")
    return value
