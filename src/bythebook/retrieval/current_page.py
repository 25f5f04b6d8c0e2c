"""Prefer hits on the page that the reader has open."""

from __future__ import annotations

import re
from dataclasses import replace

from bythebook.types import Hit, Question

_BONUS = 0.03  # added to the probability of an answer, for the order only
_BEFORE_PATH = re.compile(r"^[a-z]+://[^/]*", re.IGNORECASE)
_AFTER_PATH = re.compile(r"[?#].*", re.DOTALL)
_PAGE_ENDING = re.compile(r"(?:/index)?(?:\.html?)?\Z")


def page_first(hits: tuple[Hit, ...], question: Question) -> tuple[Hit, ...]:
    """Move hits on the page being read ahead of similar ones; ``min_score`` still applies."""
    if question.current_page is None:
        return hits
    page = page_path(question.current_page)

    def order(hit: Hit) -> tuple[bool, float]:
        here = page_path(hit.passage.place.url) == page
        return hit.score < question.min_score, -(hit.answers + _BONUS * here)

    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(sorted(hits, key=order), 1))


def page_path(url: str) -> str:
    """Return the path of a page's URL, independent of the host: ``/docs/topics``."""
    path = _BEFORE_PATH.sub("", _AFTER_PATH.sub("", url))
    return _PAGE_ENDING.sub("", path.rstrip("/")) or "/"
