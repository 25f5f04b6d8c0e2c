"""Bullets that are small shapes, as browsers print them, or letters, as in Word."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

from pypdfium2 import raw

from bythebook_formats.pdf.model import Style, Word

_SMALLEST, _LARGEST = 0.15, 0.65  # of the font size
_FARTHEST = 2.5  # of the font size, to the text
_WIDER = 0.7  # of the font size, than a space: the gap after a letter that is a bullet
_MOST = 20_000  # objects of a page that are looked at

Box = tuple[float, float, float, float]  # left, bottom, right, top


def with_bullets(page: Any, words: list[Word]) -> list[Word]:
    """Write a bullet before each line that has a small shape, or an "o" as code, at its left."""
    starts = [
        word
        for before, word in zip([None, *words], words, strict=False)
        if (before is None or before.ends_line) and word.turn == 0
    ]
    for word, after in pairwise(words):
        is_round = word.text == "o" and word.style.mono and not after.style.mono
        if is_round and word in starts and after.left - word.right > _WIDER * word.size:
            word.text = "•"
    marked = _marked(starts, _small_shapes(page)) if starts else {}
    if not marked:
        return words
    found: list[Word] = []
    for word in words:
        if id(word) in marked:
            left, right = marked[id(word)]
            style = Style(mono=False, bold=False)
            found.append(Word("•", left, right, word.base, word.size, style, word.at))
        found.append(word)
    return found


def _marked(starts: Sequence[Word], shapes: Iterator[Box]) -> dict[int, tuple[float, float]]:
    """Return the left and right edges of bullets by the id of the word after each."""
    rows: dict[int, list[Word]] = defaultdict(list)
    for word in starts:
        rows[round(word.base / 4)].append(word)
    marked: dict[int, tuple[float, float]] = {}
    for shape in shapes:
        near = (word for key in _keys(shape) for word in rows.get(key, ()))
        beside = [word for word in near if _is_bullet(shape, word)]
        if beside:
            nearest = min(beside, key=lambda word: word.left)
            marked[id(nearest)] = (shape[0], shape[2])
    return marked


def _keys(shape: Box) -> range:
    middle = (shape[1] + shape[3]) / 2
    return range(round((middle - 14) / 4), round(middle / 4) + 1)


def _is_bullet(shape: Box, word: Word) -> bool:
    left, bottom, right, top = shape
    width, height = (right - left) / word.size, (top - bottom) / word.size
    middle = ((bottom + top) / 2 - word.base) / word.size
    gap = (word.left - right) / word.size
    is_small = _SMALLEST <= width <= _LARGEST and 0.7 * width <= height <= 1.4 * width
    return is_small and 0.1 <= middle <= 0.6 and 0 < gap <= _FARTHEST


def _small_shapes(page: Any) -> Iterator[Box]:
    edges = [ctypes.c_float() for _ in range(4)]
    for shape in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1), _MOST):
        if raw.FPDFPageObj_GetBounds(shape.raw, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            if right - left <= 12 and top - bottom <= 12:
                yield left, bottom, right, top
