"""Sentences about the sample book in a person's own words: true ones, and false ones like them.

``handwritten.txt`` has three lines for each: words by which the passage is found, a true
paraphrase, a lie. The check is not fitted on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bythebook.types import Passage
from tests.grounding.claim_mutations import Case

_ROWS = Path(__file__).with_suffix(".txt")


def rows() -> list[tuple[str, str, str]]:
    blocks = [block.splitlines() for block in _ROWS.read_text("utf-8").strip().split("\n\n")]
    return [(found, true, lie) for found, true, lie in blocks]


def handwritten(passages: Sequence[Passage]) -> Iterator[Case]:
    for number, (found, true, lie) in enumerate(rows()):
        here = next((passage for passage in passages if found in passage.text), None)
        if here is None:
            return  # another book
        step = len(passages) // 5
        others = [passages[(number * 7 + n * step) % len(passages)] for n in range(4)]
        evidence = (here, *(other for other in others if other is not here))
        yield Case("by hand", True, true, evidence)
        yield Case("by hand", False, lie, evidence)
