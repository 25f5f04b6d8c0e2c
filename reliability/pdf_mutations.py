"""Read mutated PDF files in a process of its own.

python -m reliability.pdf_mutations FIRST COUNT

Writes the number of each file before it is read, and what is wrong with the result: a file that
ends or hangs the process is then known by its number.
"""

from __future__ import annotations

import json
import random
import re
import signal
import sys

from tests.support.pdf_writer import BOLD, COURIER, Entry, PdfWriter

from bythebook_formats.pdf.codec import decode_chapter
from bythebook_formats.pdf.reading import read_lines

_SECONDS = 20  # for one file
_OBJECT = re.compile(rb"\d+ 0 obj\n.*?endobj\n", re.DOTALL)
_NUMBER = re.compile(rb"\d+")
_TOKENS = (b"<<", b">>", b"[", b"]", b"(", b")", b"/Kids", b"0 R", b"stream", b"\0", b"-1", b"1e99")
_PROSE = "the kite flies on a string because the wind pushes it upwards and keeps it there"


def seeds() -> list[bytes]:
    """Return files with everything that is looked for in them."""
    return [_book(compress=compress).bytes() for compress in (False, True)]


def _book(*, compress: bool) -> PdfWriter:
    pdf = PdfWriter("Kites", compress=compress)
    for number in range(5):
        page = pdf.page().text(72, 760, f"Kites {number}").text(72, 720, "Lift", 18, BOLD)
        prose = [(_PROSE[start:] + _PROSE)[:50] for start in range(8)]
        page.lines(72, 680, prose).lines(320, 680, prose)
        page.lines(72, 560, ["if wind:", "    fly()"], font=COURIER)
        for row in range(4):
            page.text(72, 500 - 14 * row, "cell").text(200, 500 - 14 * row, "another cell")
        page.dot(74, 402).text(84, 400, "paper").text(72, 380, "1. string").turned(30, 200, "up")
        page.text(72, 60, "1 A note.", 7)
    pdf.page().image()
    pdf.outline = [Entry("Lift", number, 730, [Entry("cell", number)]) for number in range(5)]
    return pdf


def mutated(number: int, sources: list[bytes]) -> bytes:
    """Return the file with this number."""
    dice = random.Random(number)
    content = bytearray(dice.choice(sources))
    for _ in range(dice.randrange(1, 5)):
        _change(content, dice)
    return bytes(content)


def _change(content: bytearray, dice: random.Random) -> None:
    place = dice.randrange(len(content) + 1)
    match dice.choice((0, 0, 1, 2, 3, 4, 4, 5, 5)):
        case 0:
            for _ in range(dice.randrange(1, 20)):
                if content:
                    content[dice.randrange(len(content))] = dice.randrange(256)
        case 1:
            del content[place:]
        case 2:
            del content[place : place + dice.randrange(1, 400)]
        case 3:
            content[place:place] = dice.choice(_TOKENS) * dice.randrange(1, 30)
        case 4:
            _splice(content, dice)
        case _:
            _renumber(content, dice)
    if not content:
        content += b"%PDF-1.7\n"


def _splice(content: bytearray, dice: random.Random) -> None:
    """Put the body of one object in the place of another."""
    objects = [found.span() for found in _OBJECT.finditer(content)]
    if len(objects) > 1:
        (start, end), (other, last) = dice.sample(objects, 2)
        content[start:end] = content[start : start + 8] + content[other + 8 : last]


def _renumber(content: bytearray, dice: random.Random) -> None:
    """Replace a number: of an object, a length, a count, a position."""
    numbers = [found.span() for found in _NUMBER.finditer(content)]
    if numbers:
        start, end = dice.choice(numbers)
        content[start:end] = str(dice.choice((0, 1, 2, 3, 7, 2**31, 10**12, -5))).encode()


def fault(content: bytes) -> str:
    """Return what is wrong with the result for a file: nothing, if it is pages or a refusal."""
    for line in read_lines(content, "mutated"):
        value = json.loads(line)
        if "chapter" in value:
            decode_chapter(value["chapter"])
        elif str(value.get("refused", "")).startswith("cannot be read ("):
            return str(value["refused"])
    return ""


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    sources = seeds()
    for number in range(first, first + count):
        print(number, flush=True)
        signal.alarm(_SECONDS)  # not handled: ends the process also within native code
        if found := fault(mutated(number, sources)):
            print(f"{number} {found}", flush=True)
    signal.alarm(0)
    print("end", flush=True)


if __name__ == "__main__":
    main()
