"""Select the worst failures of an evaluation, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, zip_longest

from bythebook.evaluation.grade import DEEPEST_RANK, Case


class Fault(StrEnum):
    UNFOUNDED = "answered what the book does not say"
    MISSED = "answered, but not with the answer"
    WITHHELD = "refused what the book says"


@dataclass(frozen=True, slots=True)
class Failure:
    case: Case
    fault: Fault
    why: str

    @property
    def facts(self) -> dict[str, str]:
        case = self.case
        expected = (case.row.heading or "") if case.row.answerable else "a refusal"
        return {
            "why": self.why,
            "expected": " / ".join(case.row.answers[:3]) or expected,
            "shown" if case.answered else "withheld": case.text,
            "cited": "\n".join(dict.fromkeys(case.cited)),
            "best passage": "" if case.cited else case.best or "",
            "question": f"{case.row.id} ({case.row.kind})",
        }


def worst(cases: Sequence[Case], count: int) -> tuple[Failure, ...]:
    """Return the most confident mistakes, alternating between the kinds of fault."""
    groups = [
        sorted(
            (case for case in cases if _fault(case) is fault),
            key=lambda case: (-_gravity(case), case.row.id),
        )
        for fault in Fault
    ]
    turns = chain.from_iterable(zip_longest(*groups))
    failed = [case for case in turns if case is not None][:count]
    return tuple(
        Failure(case, fault, _why(case, fault)) for case in failed if (fault := _fault(case))
    )


def _fault(case: Case) -> Fault | None:
    if case.answered:
        if case.right is not False:
            return None
        return Fault.MISSED if case.row.answerable else Fault.UNFOUNDED
    return Fault.WITHHELD if case.row.answerable else None


def _gravity(case: Case) -> float:
    """Return the distance of the confidence from the correct value."""
    return case.confidence if case.answered else 1 - case.confidence


def _why(case: Case, fault: Fault) -> str:
    score = f"The best passage scored {case.confidence:.2f}."
    if fault is Fault.UNFOUNDED:
        return score
    if fault is Fault.MISSED:
        return f"{_location(case)} {_citing(case)}".strip()
    reason = str(case.refusal or "").replace("_", " ")
    return f"Refused because of {reason}. {score} {_location(case)}".strip()


def _location(case: Case) -> str:
    if not case.placed:
        return ""
    if case.rank is None:
        return f"The right section is not among the {DEEPEST_RANK} best passages."
    return f"The right section has rank {case.rank}."


def _citing(case: Case) -> str:
    if case.section:
        return "The answer cites it, but shows other sentences."
    if case.page:
        return "The answer cites another section of the page."
    return "The answer cites another page." if case.page is False else ""
