"""Extractive writer: answers with the book's own sentences and needs no model service.

It picks the few units (sentences, list items, table rows, code) that answer, adds the context
they depend on, and writes them verbatim in reading order, each with the number of its hit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from bythebook.language.english.question_types import QuestionType, question_type
from bythebook.language.terms import Vocabulary, covered, language_of_passage, term_ids
from bythebook.retrieval.echo_filter import LEANS_BACK, adds_information
from bythebook.types import Evidence, Hit, Message, Question, UnitKind

_MOST_CHARACTERS = 2000  # envelope: GroundedAnswer.text
_MOST_UNITS = 3
_LONGEST_LABEL = 2  # words
# Weights of a unit's merit, in addition to its cosine with the question; a wide, flat optimum on
# both question sets of bench/RESULTS.md.
_OWN_WORDS = 0.5  # share of the question's words in the unit
_PLACED_WORDS = 0.3  # … in the unit or the headings above it
_SCORE = 0.5  # score of the passage that contains the unit
_UNLIKELY = -0.5  # labels, table headers, code that was not asked for, exercises
_DEFINES = 0.6  # it defines the term that was asked for
_COUNTS = 0.15  # it has a number and one was asked for
_MARGIN = 0.4  # maximum difference in merit to the best unit

_EXERCISES = re.compile(r"\b(exercises?|quiz(zes)?|self-check|self-assessment|practice)\b", re.I)
_LIST_MARKER = re.compile(r"(?:-|\d{1,3}\.) ")


@dataclass(frozen=True, slots=True)
class _Pick:
    hit: int  # index into the evidence
    unit: int  # index into the passage's units
    merit: float
    defines: bool = False
    tells: bool = True  # adds information to the question


class ExtractiveWriter:
    name = "extractive"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        del history  # the question has already been rewritten to be self-contained
        written = 0
        for lead, hit_number, text in self._choose(question, evidence):
            if written and written + len(text) > _MOST_CHARACTERS:
                return
            written += len(text)
            yield f"{lead}{text} [{hit_number}]"

    def _choose(self, question: Question, evidence: Evidence) -> Iterator[tuple[str, int, str]]:
        """Yield (separator before the text, number of the hit, text), in reading order."""
        wants = question_type(question.text)
        chosen: set[tuple[int, int]] = set()
        for pick in _few(self._rank(question, evidence, wants)):
            hit = evidence.hits[pick.hit]
            if pick.hit == 0 and wants.steps and (steps := _steps(hit, pick.unit)):
                chosen = {(0, unit) for unit in steps}  # the steps are the answer
                break
            chosen.update((pick.hit, unit) for unit in _company(hit, pick.unit))
        shown: set[str] = set()
        before: tuple[Hit, int, str] | None = None
        for hit_index, unit_index in sorted(chosen):
            hit = evidence.hits[hit_index]
            items = [u for h, u in chosen if h == hit_index and _is_item(hit, u)]
            text = _line(hit, unit_index, in_list=len(items) > 1)
            if text not in shown:
                shown.add(text)
                yield _lead(before, (hit, unit_index, text)), hit_index + 1, text
                before = hit, unit_index, text

    def _rank(self, question: Question, evidence: Evidence, wants: QuestionType) -> list[_Pick]:
        asked = self._vocabulary.ask(question.text)
        picks: list[_Pick] = []
        for index, hit in enumerate(evidence.hits):
            is_exercise = bool(_EXERCISES.search(hit.passage.place.heading))
            language = language_of_passage(hit.passage)
            headings = set(term_ids(hit.passage.place.path, language))
            told = adds_information(question.text, hit.passage)
            for unit_index, unit in enumerate(hit.passage.units):
                text = hit.passage.unit_text(unit)
                words = set(term_ids(text, language))
                merit = hit.unit_cosines[unit_index] + _SCORE * hit.score
                own, placed = covered(asked, words), covered(asked, words | headings)
                merit += _OWN_WORDS * own + _PLACED_WORDS * placed
                defines = unit.kind is not UnitKind.CODE and wants.is_defined_by(text)
                merit += _DEFINES * defines + _COUNTS * wants.is_counted_by(text)
                unasked = unit.kind is UnitKind.CODE and not wants.code
                if unasked or is_exercise or _is_label(hit, unit_index):
                    merit += _UNLIKELY
                picks.append(_Pick(index, unit_index, merit, defines, told[unit_index]))
        picks = [pick for pick in picks if pick.tells] or picks
        return sorted(picks, key=lambda pick: (-pick.merit, pick.hit, pick.unit))


def _few(picks: Sequence[_Pick]) -> list[_Pick]:
    """Return the best units, at least one of the top hit unless the best is a definition."""
    few = [pick for pick in picks[:_MOST_UNITS] if pick.merit >= picks[0].merit - _MARGIN]
    first = next((pick for pick in picks if pick.hit == 0), None)
    if few and first and not few[0].defines and all(pick.hit for pick in few):
        few[_MOST_UNITS - 1 :] = [first]
    return few


def _company(hit: Hit, chosen: int) -> set[int]:
    """Return the unit and the neighbours that it cannot be understood without."""
    units = hit.passage.units
    company = {chosen}
    text = hit.passage.unit_text(units[chosen])
    if chosen and units[chosen].kind is UnitKind.SENTENCE and LEANS_BACK.match(text):
        company.add(chosen - 1)
    if text.rstrip().endswith(":"):
        company |= _announced(hit, chosen + 1)
    if units[chosen].kind is UnitKind.CODE and chosen and not _is_label(hit, chosen - 1):
        company.add(chosen - 1)
    if units[chosen].kind is UnitKind.ROW:
        company.add(_header(hit, chosen))
    return company


def _header(hit: Hit, row: int) -> int:
    """Return the header row of the table that contains this row."""
    first = row
    while first and hit.passage.units[first - 1].kind is UnitKind.ROW:
        if _is_header(hit, first):
            break
        first -= 1
    return first


def _is_header(hit: Hit, unit: int) -> bool:
    following = hit.passage.text[hit.passage.units[unit].end :].split("\n", 2)
    return len(following) > 1 and following[1].startswith("|--")


def _announced(hit: Hit, start: int) -> set[int]:
    """Return the units that a colon introduces: a list, or the block below its label."""
    units = hit.passage.units
    after = start
    while after < len(units) and _is_label(hit, after):
        after += 1
    if after == len(units):
        return set()
    if _is_item(hit, after):
        return _steps(hit, after)
    return {after}


def _steps(hit: Hit, inside: int) -> set[int]:
    """Return the whole list around an item, with the code between its steps."""
    units = hit.passage.units
    if not _is_item(hit, inside):
        return set()
    first = last = inside
    while first > 0 and _belongs_to_list(hit, first - 1):
        first -= 1
    while last + 1 < len(units) and _belongs_to_list(hit, last + 1):
        last += 1
    steps = [unit for unit in range(first, last + 1) if not _is_label(hit, unit)]
    while not _is_item(hit, steps[0]):
        steps.pop(0)
    return set(steps)


def _belongs_to_list(hit: Hit, unit: int) -> bool:
    kind = hit.passage.units[unit].kind
    return kind in (UnitKind.ITEM, UnitKind.CODE) or _is_label(hit, unit)


def _is_item(hit: Hit, unit: int) -> bool:
    return hit.passage.units[unit].kind is UnitKind.ITEM


def _is_label(hit: Hit, unit: int) -> bool:
    """Return whether the unit is the title of a tab or listing, or a table header."""
    kind = hit.passage.units[unit].kind
    if kind is UnitKind.ROW:
        return _is_header(hit, unit)
    text = hit.passage.unit_text(hit.passage.units[unit])
    return kind is UnitKind.SENTENCE and len(text.split()) <= _LONGEST_LABEL


def _line(hit: Hit, unit_index: int, *, in_list: bool) -> str:
    """Return the text of the unit; an item shown with its list keeps its marker."""
    unit = hit.passage.units[unit_index]
    text = hit.passage.unit_text(unit)
    if not _is_item(hit, unit_index) or not in_list:
        return text
    start = hit.passage.text.rfind("\n", 0, unit.start) + 1
    marker = hit.passage.text[start : unit.start].strip()
    is_marker = marker == "-" or (marker.endswith(".") and marker[:-1].isdigit())
    return f"{marker} {text}" if is_marker else text


def _lead(before: tuple[Hit, int, str] | None, now: tuple[Hit, int, str]) -> str:
    """Return the separator: a space in prose, a newline before items, an empty line for blocks."""
    if before is None:
        return ""
    text, earlier = now[2], before[2]
    if "\n" in earlier or "\n" in text:
        return "\n\n"
    if _LIST_MARKER.match(text):
        return "\n" if _is_item(*before[:2]) else "\n\n"
    if now[0].passage.units[now[1]].kind is UnitKind.ROW:
        return "\n"
    return "\n\n" if _LIST_MARKER.match(earlier) and not _same_line(before, now) else " "


def _same_line(before: tuple[Hit, int, str], now: tuple[Hit, int, str]) -> bool:
    (hit, first, _), (other, second, _) = before, now
    units = hit.passage.units
    between = slice(units[first].end, units[second].start) if hit is other else slice(0)
    return hit is other and "\n" not in hit.passage.text[between]
