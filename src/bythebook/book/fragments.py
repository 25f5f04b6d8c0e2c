"""The passages of one page in; the same passages out, each unit with a text fragment of its own.

A text fragment (``#:~:text=…``) lets a browser open the page at the quoted words and mark them.
It must be found on the page once and nowhere else; that takes the whole page, so it is worked out
here, where the whole page is at hand, and travels with the unit. A unit that no fragment can tell
from another, or whose words a browser does not see as they are written (code, maths, rows of a
table), has none: its link ends in the heading's anchor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

from bythebook.book.joined import fresh_part
from bythebook.model import Passage, Unit, UnitKind

_SHORT = 8  # words: a sentence no longer than this is written out
_LEAST = 3  # words that each end of a longer one begins with
_MOST = 9
_CONTEXT = 5  # words of what stands before it, where its own are not enough
_LETTERS = re.compile(r"[^\W_]+")
_FOLDED = bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128)) * 2
# A browser sees these otherwise than they are written: maths, line ends, zero-width spaces.
_UNSEEN = re.compile(r"[$\\\n\u200b\u00ad]")
_STOP_FROM_END = re.compile(r"[^\w\s]*?[.!?:;…。！？؟۔।]")
_INNER = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def with_fragments(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    page = _Page(passages)
    return tuple(
        replace(
            passage,
            units=tuple(
                Unit(unit.start, unit.end, unit.kind, _fragment(passage, unit, page))
                for unit in passage.units
            ),
        )
        for passage in passages
    )


class _Page:
    """What stands on a page, as a browser compares it: letters and digits, without case."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        headings = {name: None for passage in passages for name in passage.place.section}
        title = passages[0].place.title if passages else ""
        self._text = f" {' '.join(map(folded, (title, *headings, *_texts(passages))))} "

    def has_once(self, words: Sequence[str]) -> bool:
        """Whether these words stand on the page, as whole words, and stand there once."""
        wanted = f" {folded(' '.join(words))} "
        first = self._text.find(wanted)
        return first >= 0 and self._text.find(wanted, first + 1) < 0


def _texts(passages: Sequence[Passage]) -> Iterator[str]:
    """Each passage's text, without the sentence that it repeats from the one before."""
    before: Passage | None = None
    for passage in passages:
        yield passage.text[fresh_part(before, passage)[0] if before else 0 :]
        before = passage


def folded(text: str) -> str:
    """Words as a browser compares them: without case, accents and punctuation."""
    if text.isascii():  # several times faster than the same by a regular expression
        return " ".join(text.encode().translate(_FOLDED).decode().split())
    return " ".join(map(_without_accents, _LETTERS.findall(text.casefold())))


@lru_cache(maxsize=65536)
def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFKD", word)
    return "".join(char for char in parts if not unicodedata.combining(char))


def _fragment(passage: Passage, unit: Unit, page: _Page) -> str:
    text = passage.unit_text(unit)
    is_label = unit.kind is UnitKind.SENTENCE and not _STOP_FROM_END.match(text[::-1])
    if is_label or unit.kind not in (UnitKind.SENTENCE, UnitKind.ITEM):
        return ""  # the theme draws the title of a note or a tab in its own way
    words = text.split()
    if len(words) > _SHORT:
        return _by_its_ends(words, page)
    if len(words) < _LEAST or not _is_seen(words):
        return ""
    if page.has_once(words):
        return f"text={_encoded(words)}"
    return _with_prefix(passage, unit, words, page)


def _by_its_ends(words: Sequence[str], page: _Page) -> str:
    """The first words, as few as stand here alone, and the last ones."""
    for length in range(_LEAST, min(_MOST, len(words) - _LEAST) + 1):
        start = words[:length]
        if page.has_once(start):
            if not _is_seen(start):
                return ""
            end = _end_words(words[length:])
            return f"text={_encoded(start)},{_encoded(end)}" if end else f"text={_encoded(start)}"
    return ""


def _end_words(rest: Sequence[str]) -> Sequence[str]:
    """The last words, if they stand nowhere else in what follows the first."""
    there = f" {folded(' '.join(rest))} "
    for length in range(_LEAST, min(_MOST, len(rest)) + 1):
        end = rest[-length:]
        if _is_seen(end) and there.count(f" {folded(' '.join(end))} ") == 1:
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
    """Whether a browser finds these words as they are written."""
    phrase = " ".join(words)
    return not _UNSEEN.search(phrase) and bool(_LETTERS.search(phrase))


def _encoded(words: Sequence[str]) -> str:
    """Every sign of the directive's own grammar is written as a percent code."""
    inner = _INNER.search(" ".join(words))
    return quote(inner[0] if inner else "", safe="").replace("-", "%2D")
