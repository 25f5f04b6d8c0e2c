"""Read the bytes of a PDF file to lines of JSON: chapters and problems.

A line is ``{"chapter": …}``, ``{"remark": reason}`` or ``{"refused": reason}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from bythebook_formats.pdf.chapters import chapters_of
from bythebook_formats.pdf.codec import encode_chapter
from bythebook_formats.pdf.extraction import extract
from bythebook_formats.pdf.model import PdfRefused, PdfText

_SCANNED = "scanned, no text layer; run OCR, e.g. ocrmypdf"
_ALL_SCANNED = f"all pages are {_SCANNED}"
_EMPTY = "there is no text in it"
_BROKEN = "damaged, not read"


def read_lines(content: bytes, name: str) -> list[str]:
    """Return the lines for a file; ``name`` is the title of a file without one."""
    try:
        text = extract(content)
        _check(text)
        return [*_remarks(text), *map(encode_chapter, chapters_of(text, name))]
    except PdfRefused as error:
        return [refusal(str(error))]
    except MemoryError:
        return [refusal("needs too much memory to be read")]
    except Exception as error:  # whatever a file does, it is a problem of this file alone
        return [refusal(f"cannot be read ({type(error).__name__})")]


def refusal(reason: str) -> str:
    return json.dumps({"refused": reason})


def _check(text: PdfText) -> None:
    if any(page.words for page in text.pages):
        return
    if text.scanned:
        raise PdfRefused(_ALL_SCANNED)
    raise PdfRefused(f"all pages are {_BROKEN}" if text.unreadable else _EMPTY)


def _remarks(text: PdfText) -> Iterator[str]:
    for numbers, reason in ((text.scanned, _SCANNED), (text.unreadable, _BROKEN)):
        for first, last in _ranges(numbers):
            pages = f"page {first}" if first == last else f"pages {first} to {last}"
            yield json.dumps({"remark": f"{pages}: {reason}"})


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each run without a gap."""
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            yield numbers[start], number
            start = index + 1
