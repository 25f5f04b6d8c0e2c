"""Conversion of heading text to anchors, identical to github-slugger in Docusaurus."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from pathlib import Path

_RANGES = Path(__file__).with_name("slug_ranges.txt")


@cache
def _ranges() -> tuple[list[int], list[int]]:
    """Return the first and the last code points of the ranges that github-slugger deletes."""
    lines = _RANGES.read_text("ascii").splitlines()
    pairs = " ".join(line for line in lines if not line.startswith("#")).split()
    edges = [[int(edge, 16) for edge in pair.split("-")] for pair in pairs]
    return [pair[0] for pair in edges], [pair[-1] for pair in edges]


class _Deletions(dict[int, int | None]):
    """Table for ``str.translate`` that caches the lookup of each character."""

    def __missing__(self, point: int) -> int | None:
        first, last = _ranges()
        index = bisect_right(first, point) - 1
        deleted = index >= 0 and point <= last[index]
        self[point] = None if deleted else point
        return self[point]


_DELETIONS = _Deletions({0x20: 0x2D})  # every space becomes its own hyphen


def slug(text: str, *, keep_case: bool = False) -> str:
    return (text if keep_case else text.lower()).translate(_DELETIONS)


class Slugger:
    """Generator of unique slugs for the headings of one file: ``foo``, ``foo-1``, ``foo-2`` …"""

    def __init__(self, rule: Callable[[str], str] = slug) -> None:
        self._rule = rule
        self._seen: dict[str, int] = {}

    def slug(self, text: str) -> str:
        first = result = self._rule(text)
        while result in self._seen:
            self._seen[first] += 1
            result = f"{first}-{self._seen[first]}"
        self._seen[result] = 0
        return result
