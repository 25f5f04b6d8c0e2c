"""Join the passages of one section into its original text, without duplicated sentences.

Where a section was split, a passage starts with the last sentence of the previous one, and a
table repeats its header. Both are removed here, so that the paragraph or table continues. A code
or maths block that was split becomes one block again, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bythebook.text.markdown import found_marks, moved
from bythebook.types import Mark, Passage, Unit, UnitKind


@dataclass(frozen=True, slots=True)
class Marked:
    """Unit of a passage with its position in the joined text."""

    start: int
    end: int
    kind: UnitKind
    passage: str  # passage id
    number: int  # index of the unit in the passage
    continues: bool = False  # part of the same block as the previous unit


@dataclass(frozen=True, slots=True)
class Joined:
    text: str
    units: tuple[Marked, ...]
    marks: tuple[Mark, ...] = ()


def join(passages: Sequence[Passage]) -> Joined:
    """Join passages of one section, given in reading order."""
    text = ""
    units: list[Marked] = []
    marks: list[Mark] = []
    before: Passage | None = None
    for passage in passages:
        if before and passage.continues is not None:
            text, units = _with_part(text, units, passage)
            before = passage
            continue
        start, gap = fresh_part(before, passage) if before else (0, "")
        shift = len(text) + len(gap) - start
        text += gap + passage.text[start:]
        own = found_marks(passage.text) if passage.marks is None else passage.marks
        marks += moved((mark for mark in own if mark.start >= start), shift)
        units += [
            Marked(unit.start + shift, unit.end + shift, unit.kind, passage.id, number)
            for number, unit in enumerate(passage.units)
            if unit.start >= start
        ]
        before = passage
    return Joined(text, tuple(units), tuple(marks))


def _with_part(text: str, units: list[Marked], passage: Passage) -> tuple[str, list[Marked]]:
    """Append a passage that continues the block at the end of the text."""
    closing = text.rfind("\n")
    joint, body = passage.continues or "", passage.text.partition("\n")[2]
    part = Marked(
        closing + len(joint), closing + len(joint + body), units[-1].kind, passage.id, 0, True
    )
    before = replace(units[-1], end=closing)
    return text[:closing] + joint + body, [*units[:-1], before, part]


def fresh_part(before: Passage, passage: Passage) -> tuple[int, str]:
    """Return where the text not repeated from ``before`` starts, and the separator to use."""
    if before.place == passage.place and before.units and passage.units:
        first, last = passage.units[0], before.units[-1]
        if _is_cut_table(before, last, passage, first):
            return _rows_start(passage.text, first), "\n"
        if first.kind is UnitKind.SENTENCE and before.text.endswith(passage.unit_text(first)):
            rest = passage.text[first.end :]
            spaces = len(rest) - len(rest.lstrip(" "))
            return first.end + spaces, "" if rest.startswith("\n") else " "
    return 0, "\n\n"


def _is_cut_table(before: Passage, last: Unit, passage: Passage, first: Unit) -> bool:
    if (last.kind, first.kind) != (UnitKind.ROW, UnitKind.ROW):
        return False
    if passage.source[0] >= before.source[1]:  # a different table with the same header
        return False
    header = passage.unit_text(first)
    return header in (before.unit_text(unit) for unit in before.units)


def _rows_start(text: str, header: Unit) -> int:
    """Return the offset after the header row and the delimiter row."""
    rule = text.find("\n", header.end) + 1
    return text.find("\n", rule) + 1
