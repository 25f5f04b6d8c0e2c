"""Process that reads one PDF file: bytes on standard input, lines of JSON on standard output.

python -P -m bythebook_formats.pdf.worker SECONDS BYTES NAME

PDFium is native code, and a file can be made to crash it or to keep it busy; so it runs in a
process of its own, which may use so many seconds of the processor and so many bytes of memory.
A line is ``{"chapter": …}``, ``{"remark": reason}`` or ``{"refused": reason}``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence

from bythebook_formats.pdf.chapters import chapters_of
from bythebook_formats.pdf.codec import encode_chapter
from bythebook_formats.pdf.extraction import extract
from bythebook_formats.pdf.model import PdfRefused, PdfText

_MAX_OUTPUT = 1024 * 1024 * 1024  # bytes
_MAX_OPEN_FILES = 64
_SCANNED = "scanned, no text layer; run OCR, e.g. ocrmypdf"
_ALL_SCANNED = f"all pages are {_SCANNED}"
_EMPTY = "there is no text in it"
_BROKEN = "damaged, not read"


def main() -> None:
    seconds, memory, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    _limit(seconds, memory)
    content = sys.stdin.buffer.read()
    for line in read_lines(content, name):
        sys.stdout.write(line + "\n")
    sys.stdout.write('{"end": true}\n')


def _limit(seconds: int, memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: _MAX_OUTPUT,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, wanted in limits.items():
        allowed = resource.getrlimit(kind)[1]
        most = wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed)
        resource.setrlimit(kind, (most, most))


# --- lines of JSON --------------------------------------------------------------------------------


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


if __name__ == "__main__":
    main()
