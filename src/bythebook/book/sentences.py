"""Prose to sentences, and a passage's text to its units: sentences, items, rows, code, maths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bythebook.book.letters import word_set
from bythebook.model import Unit, UnitKind

# A stop, its repetitions, and what closes with it. The first group needs a space after it; the
# second (Chinese, Japanese) does not.
_STOP = re.compile(
    r"(?:[.!?…؟۔।॥։።᙮]+[\"'”’»)\]}›」』]*(?=\s|\Z))|(?:[。！？｡]+[」』”’）)\]\"'»]*)"
)
_WORD_BEFORE = re.compile(r"[\w.]*\Z")
_OPENERS = "\"'“‘«([{‹「『*_¿¡"
_NEVER_LAST = word_set(
    "e.g i.e cf vs viz approx ca dr mr mrs ms prof st fig figs eq eqs sec secs ch chap vol pp "
    "ed eds resp incl excl gen col lt sgt rev hon pres gov sen rep ph.d no nos art ref refs tab "
    "dept est p"
)
_RARELY_LAST = word_set("etc al inc ltd co corp jr sr bros a.m p.m u.s u.k u.n")
_NEEDS_NUMBER = word_set("no nos p pp fig figs eq eqs sec secs ch chap vol art ref refs tab")
_LONG_ITEM = 240  # characters: a list item longer than this is shown sentence by sentence

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|[0-9]{1,9}[.)])[ \t]+")
_RULE_ROW = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")
_HAS_WORD = re.compile(r"\w|[^\s\w!-/:-@\[-`{-~—–…·•]")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence of some prose starts and ends. A line end always ends one."""
    spans: list[tuple[int, int]] = []
    place = 0
    for line in text.splitlines(keepends=True):
        spans.extend(_split_line(text, place, place + len(line)))
        place += len(line)
    return spans


def _split_line(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for stop in _STOP.finditer(text, start, end):
        if _ends_sentence(text, begin, stop, end):
            yield from _trimmed(text, begin, stop.end())
            begin = stop.end()
    yield from _trimmed(text, begin, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    bare = piece.strip()
    if bare and _HAS_WORD.search(bare):
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(bare)


def _ends_sentence(text: str, begin: int, stop: re.Match[str], end: int) -> bool:
    after = text[stop.end() : min(end, stop.end() + 40)].lstrip().lstrip(_OPENERS)
    following = after[:1]
    if not following or stop.group()[0] in "。！？｡":
        return True
    if following.islower():
        return False  # "approx. five", "(why?) because", "node.js is"
    if stop.group()[0] != "." or stop.group().startswith(".."):
        return True
    return not _is_abbreviation(text[max(begin, stop.start() - 40) : stop.start()], after)


def _is_abbreviation(before: str, after: str) -> bool:
    following = after[0]
    found = _WORD_BEFORE.search(before)
    word = found.group().lower() if found else ""
    if word in _NEEDS_NUMBER:
        return following.isdigit() or word not in ("no", "p", "art", "ch", "tab", "ref")
    if word in _NEVER_LAST:
        return True
    if word in _RARELY_LAST:
        return not following.isupper()
    if word.isdigit():
        return before.strip() == word  # "1." before the first words is a number, not a sentence
    is_initial = len(word) == 1 and word.isalpha() and before[-1:].isupper()
    if not is_initial:
        return False
    # "J. Smith", "George W. Bush", "met J. R. Miller"; but "vitamin C. It" ends.
    previous = before[:-1].rstrip().rpartition(" ")[2]
    return not previous or previous[:1].isupper() or after[1:2] == "."


def split_units(text: str) -> tuple[Unit, ...]:
    """The smallest pieces of a passage that can be shown by themselves, in order."""
    units: list[Unit] = []
    lines = _lines(text)
    place = 0
    while place < len(lines):
        start, end = lines[place]
        line = text[start:end]
        last = _block_end(text, lines, place)
        if last is not None:
            kind = UnitKind.MATHS if line.lstrip().startswith("$$") else UnitKind.CODE
            first = start + len(line) - len(line.lstrip())
            units.append(Unit(first, lines[last][1], kind))
            place = last + 1
            continue
        units.extend(_line_units(text, start, end))
        place += 1
    return tuple(units)


def _lines(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    place = 0
    for line in text.split("\n"):
        spans.append((place, place + len(line)))
        place += len(line) + 1
    return spans


def _block_end(text: str, lines: list[tuple[int, int]], place: int) -> int | None:
    """The last line of the code or maths block that starts here, if one does."""
    line = text[slice(*lines[place])]
    fence = _FENCE.match(line)
    if fence is None and line.strip() != "$$":
        return None
    mark = fence.group(1) if fence else "$$"
    for later in range(place + 1, len(lines)):
        closing = text[slice(*lines[later])].strip()
        if closing.startswith(mark) and not closing.strip(mark[0]):
            return later
    return len(lines) - 1 if fence else None


def _line_units(text: str, start: int, end: int) -> Iterator[Unit]:
    line = text[start:end]
    bare = line.strip()
    if len(bare) > 1 and bare.startswith("|") and bare.endswith("|"):
        if not _RULE_ROW.match(line):
            yield from _row_unit(text, start, end)
        return
    marker = _ITEM.match(line)
    if marker is None:
        yield from (Unit(*span) for span in split_sentences_within(text, start, end))
        return
    spans = list(split_sentences_within(text, start + marker.end(), end))
    if spans and end - spans[0][0] <= _LONG_ITEM:
        spans = [(spans[0][0], spans[-1][1])]
    yield from (Unit(first, last, UnitKind.ITEM) for first, last in spans)


def _row_unit(text: str, start: int, end: int) -> Iterator[Unit]:
    row = text[start:end].strip(" \t|")
    if row:
        first = text.index(row, start, end)
        yield Unit(first, first + len(row), UnitKind.ROW)


def split_sentences_within(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    return ((first + start, last + start) for first, last in split_sentences(text[start:end]))
