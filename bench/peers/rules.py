"""What counts: which hit is right, which code fence is whole, what a large book is made of.

The rules look at text alone, so that they are the same for every splitter.
"""

from __future__ import annotations

import json
import random
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTE = r" ?Note [a-z]+ [a-z]+ [a-z]+\."  # what makes a copy of a paragraph differ from the others
NOISE = 0.2  # length of what is added to a copy's vector
_SHINGLE = 4  # words in a row
_FENCE = re.compile(r"^\s*(?P<marks>`{3,}|~{3,})(?P<rest>.*)$")


@dataclass(frozen=True)
class Row:
    question: str
    kind: str
    file: str | None  # relative to the docs folder
    paragraph: int | None


def read_rows(files: Iterable[Path]) -> list[Row]:
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    return [_row(json.loads(line)) for line in lines]


def _row(raw: dict[str, Any]) -> Row:
    file = raw["file"].removeprefix("docs/") if raw["file"] else None
    return Row(raw["question"], raw["kind"], file, raw["paragraph"])


# --- which hit is right ---------------------------------------------------------------------


class Judge:
    """A hit is right when it and the question's paragraph are, for the shorter one, half the same.

    So a piece of the paragraph is right, and so is a chunk that holds the paragraph among others;
    text of the file that merely stands nearby is not. Sameness is in shingles of four words.
    """

    def __init__(self, docs: Path) -> None:
        self._docs = docs
        self._paragraphs: dict[str, list[set[tuple[str, ...]]]] = {}

    def is_right(self, row: Row, file: str, text: str) -> bool:
        if row.file != file or row.paragraph is None:
            return False
        if file not in self._paragraphs:
            self._paragraphs[file] = [_shingles(part) for part in paragraphs(self._docs / file)]
        wanted, found = self._paragraphs[file][row.paragraph], _shingles(text)
        smaller = min(len(wanted), len(found))
        return smaller > 0 and 2 * len(wanted & found) >= smaller


def paragraphs(page: Path) -> list[str]:
    """The text below each second-level heading."""
    return [part.partition("\n")[2].strip() for part in _second_level(page.read_text("utf-8"))]


def _second_level(text: str) -> list[str]:
    return re.split(r"(?m)^## ", text)[1:]


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + _SHINGLE]) for i in range(len(words) - _SHINGLE + 1)}


# --- which code fence is whole --------------------------------------------------------------


def fences(page: str) -> list[str]:
    """The insides of a page's fenced code blocks."""
    blocks: list[str] = []
    marks, inside = "", list[str]()
    for line in page.splitlines():
        match = _FENCE.match(line)
        if not marks and match:
            marks, inside = match["marks"], []
        elif marks and match and match["marks"].startswith(marks) and not match["rest"].strip():
            blocks.append("\n".join(inside))
            marks = ""
        elif marks:
            inside.append(line)
    return [block for block in blocks if block.strip()]


def count_whole(pages: dict[str, str], chunks: Iterable[dict[str, str]]) -> tuple[int, int]:
    """How many fences stand whole in one chunk of their page, and how many there are.

    White space does not count: splitters and renderers treat it each in their way.
    """
    by_file: dict[str, list[str]] = {}
    for chunk in chunks:
        by_file.setdefault(chunk["file"], []).append(_squeeze(chunk["text"]))
    whole = total = 0
    for file, page in pages.items():
        for block in map(_squeeze, fences(page)):
            total += 1
            whole += any(block in text for text in by_file.get(file, ()))
    return whole, total


def _squeeze(text: str) -> str:
    return "".join(text.split())


# --- a large book ---------------------------------------------------------------------------


def copies(docs: Path, count: int) -> Iterator[tuple[int, dict[str, str]]]:
    """Real paragraphs again and again, each copy with a note of three words that makes it differ.

    Yields the number of the original with each.
    """
    originals = originals_of(docs)
    words = sorted({word for _, text in originals for word in re.findall(r"\b[a-z]{5,}\b", text)})
    notes = random.Random(7).sample(range(len(words) ** 3), count)  # as numbers with three digits
    for number, note in enumerate(notes):
        copy, original = divmod(number, len(originals))
        file, text = originals[original]
        three = [words[note // len(words) ** place % len(words)] for place in range(3)]
        said = f" Note {' '.join(three)}."
        yield original, {"file": f"copy-{copy}/{file}", "text": text + said}


def originals_of(docs: Path) -> list[tuple[str, str]]:
    return [
        (page.relative_to(docs).as_posix(), text)
        for page in sorted(docs.rglob("*.md"))
        for text in paragraphs(page)
        if text
    ]


def moved(vectors: Sequence[Sequence[float]]) -> array[float]:
    """Each vector moved a little, at random, and of unit length again; as one flat array."""
    dice = random.Random(7)
    flat = array("f")
    for vector in vectors:
        step = NOISE / len(vector) ** 0.5
        shifted = [value + dice.gauss(0, step) for value in vector]
        length = sum(value * value for value in shifted) ** 0.5
        flat.extend(value / length for value in shifted)
    return flat
