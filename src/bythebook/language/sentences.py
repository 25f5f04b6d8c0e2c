"""Split prose into sentences, and passages into units: sentences, items, rows, code, maths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bythebook.language.text import word_set
from bythebook.types import Unit, UnitKind

# Sentence-ending punctuation, repeated or not, with closing quotes and brackets. The first group
# must be followed by a space; the second (Chinese, Japanese) need not.
_STOP = re.compile(
    r"(?:(?<![.!?…؟۔।॥։።᙮])[.!?…؟۔।॥։።᙮]++[\"'”’»)\]}›」』]*+(?=\s|\Z))"
    r"|(?:[。！？｡]+[」』”’）)\]\"'»]*)"
)
_WORD_BEFORE = re.compile(r"(?<![\w.])[\w.]*+\Z")
_OPENERS = "\"'“‘«([{‹「『*_¿¡"
_NEVER_LAST = word_set(
    "e.g i.e cf vs viz approx ca dr mr mrs ms prof st fig figs eq eqs sec secs ch chap vol pp "
    "ed eds resp incl excl gen col lt sgt rev hon pres gov sen rep ph.d no nos art ref refs tab "
    "dept est p"
)
_RARELY_LAST = word_set("etc al inc ltd co corp jr sr bros a.m p.m u.s u.k u.n")
_NEEDS_NUMBER = word_set("no nos p pp fig figs eq eqs sec secs ch chap vol art ref refs tab")
_LONG_ITEM = 240  # characters: a longer list item is split into sentences

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|[0-9]{1,9}[.)])[ \t]+")
_RULE_ROW = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")
_BLOCK_SIGNS = frozenset("`~$")
_HAS_WORD = re.compile(r"\w|[^\s\w!-/:-@\[-`{-~—–…·•]")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each sentence. A line end always ends a sentence."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        end = offset + len(line)
        begin = offset
        for stop in _STOP.finditer(text, offset, end):
            if _ends_sentence(text, begin, stop, end):
                _add_trimmed(spans, text, begin, stop.end())
                begin = stop.end()
        _add_trimmed(spans, text, begin, end)
        offset = end
    return spans


def _add_trimmed(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    bare = piece.lstrip()
    if bare and _HAS_WORD.search(bare):
        first = end - len(bare)
        spans.append((first, first + len(bare.rstrip())))


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
    match = _WORD_BEFORE.search(before)
    word = match.group().lower() if match else ""
    if word in _NEEDS_NUMBER:
        return following.isdigit() or word not in ("no", "p", "art", "ch", "tab", "ref")
    if word in _NEVER_LAST:
        return True
    if word in _RARELY_LAST:
        return not following.isupper()
    if word.isdigit():
        return before.strip() == word  # a leading "1." is a number, not a sentence
    is_initial = len(word) == 1 and word.isalpha() and before[-1:].isupper()
    if not is_initial:
        return False
    # "J. Smith", "George W. Bush", "met J. R. Miller"; but "vitamin C. It" ends.
    previous = before[:-1].rstrip().rpartition(" ")[2]
    return not previous or previous[:1].isupper() or after[1:2] == "."


def split_units(text: str) -> tuple[Unit, ...]:
    """Return the smallest pieces of a passage that can be shown separately, in order."""
    units: list[Unit] = []
    lines = text.split("\n")
    index = start = 0
    while index < len(lines):
        line = lines[index]
        indent = len(line) - len(line.lstrip())
        last = _block_end(lines, index) if line[indent : indent + 1] in _BLOCK_SIGNS else None
        if last is None:
            units.extend(_line_units(line, start))
            last = index
        else:
            size = sum(map(len, lines[index : last + 1])) + last - index
            kind = UnitKind.MATHS if line[indent] == "$" else UnitKind.CODE
            units.append(Unit(start + indent, start + size, kind))
        start += sum(map(len, lines[index : last + 1])) + last + 1 - index
        index = last + 1
    return tuple(units)


def _block_end(lines: list[str], index: int) -> int | None:
    """Return the last line of the code or maths block that starts here, or None."""
    fence = _FENCE.match(lines[index])
    if fence is None and lines[index].strip() != "$$":
        return None
    mark = fence.group(1) if fence else "$$"
    for later in range(index + 1, len(lines)):
        if mark in lines[later]:
            closing = lines[later].strip()
            if closing.startswith(mark) and not closing.strip(mark[0]):
                return later
    return len(lines) - 1 if fence else None


def _line_units(line: str, start: int) -> Iterator[Unit]:
    """Yield the units of a line whose offset is ``start``."""
    bare = line.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == "|":
        row = line.strip(" \t|")
        if row and not _RULE_ROW.match(line):
            first = start + line.index(row)
            yield Unit(first, first + len(row), UnitKind.ROW)
        return
    marker = _ITEM.match(line)
    inside = marker.end() if marker else 0
    spans = split_sentences(line[inside:])
    start += inside
    if marker is None:
        kind = UnitKind.SENTENCE
    else:
        kind = UnitKind.ITEM
        if spans and len(line) - inside - spans[0][0] <= _LONG_ITEM:
            spans = [(spans[0][0], spans[-1][1])]
    for first, last in spans:
        yield Unit(start + first, start + last, kind)
