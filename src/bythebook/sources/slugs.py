"""Conversion of heading text to anchors, identical to github-slugger in Docusaurus."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from bythebook.sources.slug_table import DELETED

_EDGES = [tuple(int(edge, 16) for edge in pair.split("-")) for pair in DELETED.split()]
_FIRST = [edges[0] for edges in _EDGES]
_LAST = [edges[-1] for edges in _EDGES]


class _Deletions(dict[int, int | None]):
    """Table for ``str.translate`` that caches the lookup of each character."""

    def __missing__(self, point: int) -> int | None:
        place = bisect_right(_FIRST, point) - 1
        deleted = place >= 0 and point <= _LAST[place]
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
