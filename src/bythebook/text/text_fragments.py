"""Add a URL text fragment to each unit of a page's passages.

A text fragment (``#:~:text=…``) makes a browser scroll to the quoted words and highlight them. It
must match exactly once on the page, so it is computed here, where the whole page is available,
and stored with the unit. A unit without a unique fragment, or whose text a browser renders
differently from the source (code, maths, table rows), has none: its link uses the heading's anchor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote, unquote

from bythebook.text.section_text import fresh_part
from bythebook.types import Passage, Unit, UnitKind

_SHORT = 8  # words: sentences up to this length are quoted in full
_LEAST = 3  # words tried first for the start and end of a longer one
_MOST = 9
_CONTEXT = 5  # words of prefix, where its own are not unique
_LETTERS = re.compile(r"[^\W_]+")
_FOLDED = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)) * 2
# Browsers render these differently from the source: maths, line ends, zero-width spaces.
_UNSEEN = re.compile(r"[$\\\n\u200b\u00ad]")
# Read backwards; a note in brackets, such as the credit of a picture, may follow the stop.
_STOP_FROM_END = re.compile(r"(?:\)[^()]*\(\s)?[^\w\s]*?[.!?:;…。！？؟۔।]")
_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def with_fragments(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    page = _Page(passages)
    return tuple(
        replace(
            passage,
            units=tuple(
                replace(unit, fragment=fragment) if fragment else unit
                for unit in passage.units
                for fragment in (_fragment(passage, unit, page),)
            ),
        )
        for passage in passages
    )


def fragment_of(passage: Passage, units: Sequence[Unit]) -> str:
    """Return a fragment of the units: a range that is as long as possible, and what is left.

    A browser ends a range at the first place that has its last words, so a range can end only
    with a unit whose last words do not occur before.
    """
    found = [unit for unit in units if unit.fragment]
    if not found:
        return ""
    first, *left = found
    *prefix, start = first.fragment.removeprefix("text=").split(",")[:2]
    if prefix and not prefix[0].endswith("-"):  # it is the start, and the unit's own end follows
        start, prefix = prefix[0], []
    spoken = len(unquote(start).split())
    texts = [first.fragment]
    for last in reversed([unit for unit in units if unit.start > first.start]):
        rest = passage.text[first.start : last.end].split()[spoken:]
        most = len(passage.unit_text(last).split()) if _is_prose(passage, last) else 0
        if end := _end_words(rest, most):
            texts = [f"text={','.join([*prefix, start, _encoded(end)])}"]
            left = [unit for unit in left if unit.start > last.start]
            break
    return "&".join([*texts, *(unit.fragment for unit in left)])


class _Page:
    """Text of a page as a browser compares it: letters and digits, case-insensitive."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        headings = {name: None for passage in passages for name in passage.place.section}
        title = passages[0].place.title if passages else ""
        self._text = f" {' '.join(map(folded, (title, *headings, *_texts(passages))))} "

    def has_once(self, words: Sequence[str]) -> bool:
        """Return whether these words occur exactly once on the page, as whole words."""
        wanted = f" {folded(' '.join(words))} "
        first = self._text.find(wanted)
        return first >= 0 and self._text.find(wanted, first + 1) < 0


def _texts(passages: Sequence[Passage]) -> Iterator[str]:
    """Yield each passage's text without the sentence repeated from the previous one."""
    before: Passage | None = None
    for passage in passages:
        yield passage.text[fresh_part(before, passage)[0] if before else 0 :]
        before = passage


def folded(text: str) -> str:
    """Return the words as a browser compares them: no case, accents or punctuation."""
    if text.isascii():  # several times faster than the regular expression
        return " ".join(text.encode().translate(_FOLDED).decode().split())
    return " ".join(map(_without_accents, _LETTERS.findall(text.casefold())))


@lru_cache(maxsize=65536)
def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFKD", word)
    return "".join(char for char in parts if not unicodedata.combining(char))


def _fragment(passage: Passage, unit: Unit, page: _Page) -> str:
    if not _is_prose(passage, unit):
        return ""
    words = passage.unit_text(unit).split()
    if len(words) > _SHORT:
        return _by_its_ends(words, page)
    if len(words) < _LEAST or not _is_seen(words):
        return ""
    if page.has_once(words):
        return f"text={_encoded(words)}"
    return _with_prefix(passage, unit, words, page)


def _is_prose(passage: Passage, unit: Unit) -> bool:
    """Return whether a browser shows the unit as written; themes change titles of notes, tabs."""
    ends = _STOP_FROM_END.match(passage.unit_text(unit)[::-1])
    return unit.kind is UnitKind.ITEM or (unit.kind is UnitKind.SENTENCE and bool(ends))


def _by_its_ends(words: Sequence[str], page: _Page) -> str:
    """Return a fragment of the shortest unique start of the sentence, and its end."""
    for length in range(_LEAST, min(_MOST, len(words) - _LEAST) + 1):
        start = words[:length]
        if page.has_once(start):
            if not _is_seen(start):
                return ""
            end = _end_words(words[length:], len(words) - length)
            return f"text={_encoded(start)},{_encoded(end)}" if end else f"text={_encoded(start)}"
    return ""


def _end_words(rest: Sequence[str], most: int) -> Sequence[str]:
    """Return the shortest run of at most as many last words that occurs only once in ``rest``."""
    there = f" {folded(' '.join(rest))} "
    for length in range(max(1, min(_LEAST, most)), min(_MOST, most) + 1):
        end = rest[-length:]
        wanted = f" {folded(' '.join(end))} "
        if _is_seen(end) and there.find(wanted) == len(there) - len(wanted):
            return end
    return ()


def _with_prefix(passage: Passage, unit: Unit, words: Sequence[str], page: _Page) -> str:
    line = passage.text[passage.text.rfind("\n", 0, unit.start) + 1 : unit.start]
    before = line.split()[-_CONTEXT:]
    for length in range(1, len(before) + 1):
        prefix = before[-length:]
        if _is_seen([*prefix, *words]) and page.has_once([*prefix, *words]):
            return f"text={_encoded(prefix)}-,{_encoded(words)}"
    return ""


def _is_seen(words: Sequence[str]) -> bool:
    """Return whether a browser finds these words as written."""
    phrase = " ".join(words)
    return not _UNSEEN.search(phrase) and bool(_LETTERS.search(phrase))


def _encoded(words: Sequence[str]) -> str:
    """Percent-encode the words, including the characters of the directive's syntax."""
    inner = _INNER.search(" ".join(words))
    return "%20".join(map(_quoted, inner[0].split(" "))) if inner else ""


@lru_cache(maxsize=65536)
def _quoted(word: str) -> str:
    return quote(word, safe="").replace("-", "%2D")
