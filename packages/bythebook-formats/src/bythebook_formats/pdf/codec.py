"""JSON of chapters, as the worker writes them and the source reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields

from bythebook.interfaces.blocks import (
    Anchor,
    Block,
    Code,
    Heading,
    LeftOut,
    Listing,
    Paragraph,
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
    values = [getattr(block, each.name) for each in fields(block)]
    if isinstance(block, Listing):
        values[2] = [[_encode(inner) for inner in item] for item in block.items]
    return [type(block).__name__, *values]


def decode_chapter(value: object) -> PdfChapter:
    """Make a chapter of JSON; raise ValueError or TypeError if it is none."""
    match value:
        case {
            "title": str(title),
            "module": str(module),
            "page": int(page),
            "blocks": list(blocks),
            "words": list(words),
            "left_out": list(left_out),
        }:
            omitted = [LeftOut(reason, text) for reason, text in map(_texts, left_out)]
            return PdfChapter(
                title, module, page, [*map(_block, blocks)], [*_texts(words)], omitted
            )
    raise ValueError("no chapter")


def _block(value: object) -> Block:
    match value:
        case ["Heading", int(level), str(text), str(anchor), [int(start), int(end)]]:
            return Heading(level, text, anchor, (start, end))
        case ["Paragraph", str(text), [int(start), int(end)]]:
            return Paragraph(text, (start, end))
        case ["Code", _, _, str(text), [int(start), int(end)]]:
            return Code("", "", text, (start, end))
        case ["Table", list(header), list(rows), [int(start), int(end)]]:
            return Table(_texts(header), tuple(map(_texts, rows)), (start, end))
        case ["Listing", bool(ordered), int(first), list(items), [int(start), int(end)]]:
            return Listing(
                ordered, first, tuple(tuple(map(_block, each)) for each in items), (start, end)
            )
        case ["Anchor", str(name), [int(start), int(end)]]:
            return Anchor(name, (start, end))
    raise ValueError("no block")


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    texts = tuple(value for value in values if isinstance(value, str))
    if len(texts) != len(values):
        raise TypeError("not a text")
    return texts
