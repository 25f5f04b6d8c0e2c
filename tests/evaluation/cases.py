"""Graded cases for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bythebook.evaluation.grade import Case
from bythebook.evaluation.questions import NuggetScore, Row
from bythebook.evaluation.report import BookFacts
from bythebook.types import Timings

FACTS = BookFacts("Kites", "fake:bag", 3, 12, datetime(2026, 5, 4, tzinfo=UTC))
# Probability and label of claims.
CLAIMS = ((0.1, False), (0.8, True), (0.88, False))
_YES = Row("yes", "How long?", "answerable", True, ("a week",), "a.md", "Plan")
_NO = Row("no", "Who won?", "off_book", False)


def answered(confidence: float = 0.9, *, right: bool = True, rank: int | None = 1) -> Case:
    """A question that the book answers, and that was answered."""
    return Case(
        row=_YES,
        answered=True,
        confidence=confidence,
        right=right,
        rank=rank,
        placed=True,
        gold=right,
        page=True,
        section=rank == 1,
        sentences=2,
        quoted=(True,),
        linked=(True,),
        self_cited=(True, False),
        supported=(True, True),
        verbatim=(True, False),
        withheld=(False, False, True),
        text="It takes a week.",
        cited=("Title › Plan",),
        timings=Timings(5, 10, 15, 30),
    )


def withheld(confidence: float = 0.3) -> Case:
    """… and that was refused."""
    kept = replace(answered(confidence), answered=False, gold=None, page=None, section=None)
    nothing_shown = replace(
        kept,
        sentences=0,
        quoted=(),
        linked=(),
        self_cited=(),
        supported=(),
        verbatim=(),
        withheld=(),
        cited=(),
    )
    return replace(nothing_shown, refusal="low_relevance", timings=Timings(5, 10, 0, 15))


def refused(confidence: float = 0.1) -> Case:
    """A question that the book does not answer, and that was refused."""
    return Case(
        row=_NO,
        answered=False,
        confidence=confidence,
        right=False,
        refusal="low_relevance",
        text="It takes a week.",
        timings=Timings(5, 10, 0, 15),
    )


def unfounded(confidence: float = 0.8, *, kind: str = "off_book") -> Case:
    """… and that was answered."""
    return replace(
        refused(confidence), row=replace(_NO, kind=kind), answered=True, refusal=None, sentences=1
    )


def scored(case: Case, score: NuggetScore) -> Case:
    """The same case, of a question with nuggets."""
    return replace(case, nuggets=score)


def of_kind(case: Case, kind: str, *, selection: str | None = None) -> Case:
    return replace(case, row=replace(case.row, kind=kind, selection=selection))
