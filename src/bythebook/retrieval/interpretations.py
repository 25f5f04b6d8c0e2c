"""Search for several interpretations of one question and keep the one the book answers best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bythebook.retrieval.search import Findings, SearchContext, search
from bythebook.types import Question

# A later interpretation is chosen if its best hit scores this much more. A question with unneeded
# context loses more than this, a follow-up without its context gains less (bench/follow_ups.py).
_MARGIN = 0.1


async def search_best(
    interpretations: Sequence[Question], index: SearchContext, *, neighbours_of: int = 0
) -> Findings:
    """Return the findings of the likeliest interpretation, which is the first unless one is better.

    The times are those of all searches.
    """
    found = [await search(each, index, neighbours_of=neighbours_of) for each in interpretations]
    margins = [0.0, *[_MARGIN] * (len(found) - 1)]
    gains = [_best(each) - margin for each, margin in zip(found, margins, strict=True)]
    return replace(
        found[gains.index(max(gains))],
        query_ms=sum(each.query_ms for each in found),
        search_ms=sum(each.search_ms for each in found),
    )


def _best(findings: Findings) -> float:
    return max((hit.score for hit in findings.hits), default=0.0)
