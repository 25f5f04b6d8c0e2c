"""Deduplicate ranked passages and limit how many come from one file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bythebook.interfaces.store import Candidate
from bythebook.types import Hit, Passage, Signals

LIKELY = 0.5  # score below which a passage is not considered to answer
_SHARE = 0.4  # maximum share of the hits from a single file


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    candidate: Candidate
    signals: Signals
    fusion_score: float  # weighted sum of the signals


def dedupe(candidates: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Sort by fusion score and keep only the best of passages with the same content."""
    kept: dict[str, ScoredCandidate] = {}
    for scored in sorted(candidates, key=_order):
        kept.setdefault(scored.candidate.content_hash, scored)
    return list(kept.values())


def _order(scored: ScoredCandidate) -> tuple[float, float, str]:
    # The id breaks ties: the ranking must not depend on the order of the store's results.
    return -scored.fusion_score, -scored.candidate.cosine, scored.candidate.passage_id


def most_of_one_file(limit: int) -> int:
    """Return the maximum number of hits from one file: two of five, four of ten."""
    return math.ceil(_SHARE * limit)


def file_of(passage: Passage) -> str:
    return passage.place.file or passage.place.page_url


def limit_per_file(hits: Sequence[Hit], *, limit: int, likely: float = LIKELY) -> list[Hit]:
    """Return the best hits, in their order, limiting each file to its share first.

    A hit beyond the share is replaced only by a passage of another file that is likely to contain
    the answer and is within its own file's share. Remaining places go to the best of the rest: of
    two files with many likely passages, one contributes three of five.
    """
    most, taken = most_of_one_file(limit), Counter[str]()
    within: list[Hit] = []
    for hit in hits:
        if hit.score >= likely and taken[file_of(hit.passage)] < most:
            taken[file_of(hit.passage)] += 1
            within.append(hit)
    first = {hit.passage.id for hit in within[:limit]}
    remaining = limit - len(first)
    first.update([hit.passage.id for hit in hits if hit.passage.id not in first][:remaining])
    return [hit for hit in hits if hit.passage.id in first]
