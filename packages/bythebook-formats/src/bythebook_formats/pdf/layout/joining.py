"""Join the words of lines to running text: hyphens at line ends, scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from bythebook_formats.pdf.model import Word

_SOFT = "\N{SOFT HYPHEN}"
HYPHENS = ("-", _SOFT, "\N{HYPHEN}")
_LETTERS = re.compile(r"[^\W\d_]+")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
_URL_BREAKS = ("/", "-", "_", "=", "&", "?")
_SHORTEST_PART = 3  # letters of a part of a compound


class SeenWords:
    """Words of the file that are not divided by a line end: they say how others are spelled."""

    def __init__(self, words: Iterable[Word]) -> None:
        self._seen: set[str] = set()
        for word in words:
            text = word.text.casefold()
            if not text.endswith(HYPHENS):
                self._seen.add(text.strip(".,;:!?()[]{}'\"“”‘’"))
                self._seen.update(_LETTERS.findall(text))

    def is_compound(self, first: str, second: str) -> bool:
        """Return whether the parts are written with a hyphen, rather than as one word."""
        before, after = _last_letters(first), _first_letters(second)
        if before + after in self._seen:
            return False
        if f"{before}-{after}" in self._seen:
            return True
        parts = before, after
        return all(len(part) >= _SHORTEST_PART and part in self._seen for part in parts)


def _last_letters(text: str) -> str:
    parts: list[str] = _LETTERS.findall(text.casefold())
    return parts[-1] if parts else ""


def _first_letters(text: str) -> str:
    parts: list[str] = _LETTERS.findall(text.casefold())
    return parts[0] if parts else ""


def join_lines(lines: Iterable[Sequence[Word]], vocabulary: SeenWords) -> str:
    """Return the text of a paragraph."""
    text = ""
    for line in lines:
        words = line_text(line)
        text = join(text, words, vocabulary) if text else words
    return visible(text)


def line_text(words: Sequence[Word]) -> str:
    """Return the text of a line; the dots that lead to a page number become one sign."""
    text = ""
    for is_dots, run in groupby(words, key=lambda word: not word.text.strip(".")):
        texts = [word.text for word in run]
        if is_dots and sum(map(len, texts)) > 3:
            texts = ["…"]
        for piece in texts:
            text += ("" if not text or _are_wide(text, piece) else " ") + piece
    return text


def has_leader(words: Sequence[Word]) -> bool:
    """Return whether dots lead from a title to a page number, as in a table of contents."""
    dots = sum(len(word.text) for word in words if not word.text.strip("."))
    return dots > 3 or (dots > 1 and words[-1].text.isdecimal())


def join(text: str, line: str, vocabulary: SeenWords) -> str:
    """Append a line to a paragraph."""
    if not line:
        return text
    last, first = text.rpartition(" ")[2], line.partition(" ")[0]
    if last.endswith(HYPHENS) and last[-2:-1].isalnum() and first[:1].isalnum():
        is_divided = last[-2].isalpha() and first[0].islower()
        is_word = is_divided and not vocabulary.is_compound(last[:-1], first)
        return text[:-1] + ("" if is_word else "-") + line
    is_address = "://" in last and last.endswith(_URL_BREAKS) and not first[0].isupper()
    if is_address or _are_wide(text, line):
        return text + line
    return f"{text} {line}"


def _are_wide(before: str, after: str) -> bool:
    """Return whether both are of a script without spaces."""
    return bool(_WIDE.match(before[-1]) and _WIDE.match(after[0]))


def visible(text: str) -> str:
    """Write a soft hyphen before a space, or at the end, as a hyphen; remove the others."""
    if _SOFT not in text:
        return text
    kept = text.replace(f"{_SOFT} ", "- ")
    return (kept[:-1] + "-" if kept.endswith(_SOFT) else kept).replace(_SOFT, "")
