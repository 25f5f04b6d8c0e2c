"""Lists: marks at the start of a line, and items nested by their indent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bythebook.interfaces.blocks import Block, Listing, Span
from bythebook_formats.pdf.model import Word

_BULLETS = frozenset("•◦▪▫‣⁃●○■□–—*·-∗◆❖➢✓")
_NUMBER = re.compile(r"\(?([0-9]{1,3})[.)]")
_LETTER = re.compile(r"\((?:[a-zA-Z]|[ivx]{1,4})\)|(?:[a-z]|[ivx]{1,4})\)")


@dataclass(frozen=True, slots=True)
class Marker:
    number: int | None  # None: a bullet
    is_text: bool = False  # "(a)": kept as a part of the text


def marker_of(words: Sequence[Word]) -> Marker | None:
    """Return the mark that starts a list item, if there is one."""
    if len(words) < 2:
        return None
    text = words[0].text
    if text in _BULLETS:
        return Marker(None)
    if found := _NUMBER.fullmatch(text):
        return Marker(int(found[1]))
    return Marker(None, is_text=True) if _LETTER.fullmatch(text) else None


@dataclass(slots=True)
class Item:
    """List item while it is read."""

    left: float  # of its mark
    text_left: float
    marker: Marker
    span: Span = (0, 0)
    blocks: list[Block] = field(default_factory=list)
    below: list[Item] = field(default_factory=list)


def listings_of(items: Sequence[Item]) -> list[Listing]:
    """Return the lists of items; numbers that do not count on start another list."""
    groups: list[list[Item]] = []
    for item in items:
        if groups and _counts_on(groups[-1], item.marker.number):
            groups[-1].append(item)
        else:
            groups.append([item])
    return [_listing(group) for group in groups]


def _counts_on(items: Sequence[Item], number: int | None) -> bool:
    first = items[0].marker.number
    if first is None or number is None:
        return first is number
    return number == first + len(items)


def _listing(items: Sequence[Item]) -> Listing:
    blocks = tuple((*item.blocks, *listings_of(item.below)) for item in items)
    end = max([items[-1].span[1], *(block.span[1] for block in blocks[-1])])
    number = items[0].marker.number
    return Listing(number is not None, number or 0, blocks, (items[0].span[0], end))
