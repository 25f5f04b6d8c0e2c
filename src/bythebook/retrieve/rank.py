"""Weighed passages in, one ranking out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bythebook.model import Hit, Passage, Signals
from bythebook.ports import Candidate

LIKELY = 0.5  # a score; of what has less, nobody would say that it offers an answer
_SHARE = 0.4  # of what is handed on, by a single file


@dataclass(frozen=True, slots=True)
class Weighed:
    candidate: Candidate
    signals: Signals
    merit: float


def best(found: Iterable[Weighed]) -> list[Weighed]:
    """Ordered by merit; of passages with the same words only the best stays."""
    kept: dict[str, Weighed] = {}
    for weighed in sorted(found, key=_merit):
        kept.setdefault(weighed.candidate.content_hash, weighed)
    return list(kept.values())


def _merit(weighed: Weighed) -> tuple[float, float, str]:
    # The id last: the ranking must not depend on the order in which a store found them.
    return -weighed.merit, -weighed.candidate.cosine, weighed.candidate.passage_id


def most_of_one_file(limit: int) -> int:
    """Return the share of one file: two of five, four of ten."""
    return math.ceil(_SHARE * limit)


def file_of(passage: Passage) -> str:
    return passage.place.file or passage.place.page_url


def shared(hits: Sequence[Hit], *, limit: int, likely: float = LIKELY) -> list[Hit]:
    """Return the best hits, in their order, with each file held to its share first.

    What is beyond the share gives way only to a passage of another file that is likely to hold
    the answer and is within the share of its own file. Places that remain then go to the best of
    the rest: of two files with many likely passages, one gives three of five.
    """
    most, taken = most_of_one_file(limit), Counter[str]()
    within: list[Hit] = []
    for hit in hits:
        if hit.score >= likely and taken[file_of(hit.passage)] < most:
            taken[file_of(hit.passage)] += 1
            within.append(hit)
    first = {hit.passage.id for hit in within[:limit]}
    spare = limit - len(first)
    first.update([hit.passage.id for hit in hits if hit.passage.id not in first][:spare])
    return [hit for hit in hits if hit.passage.id in first]
