"""Extractive writer: answers with the book's own sentences and needs no model service.

It picks the few units (sentences, list items, table rows, code) that answer, adds the context
they depend on, and quotes them in reading order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bythebook.grounding.stream_splitter import has_words, inside_fence, split_line
from bythebook.grounding.verifier import Supported
from bythebook.language.english.lexicon import LEANS_BACK
from bythebook.language.terms import covered, language_of_passage, term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import Evidence, Hit, UnitKind

_MOST_CHARACTERS = 2000  # envelope: GroundedAnswer.text
_MOST_UNITS = 3
_LONGEST_LABEL = 2  # words
# Weights of a unit's score, in addition to its cosine with the question; a wide, flat optimum on
# both question sets of bench/RESULTS.md.
_OWN_WORDS = 0.5  # share of the question's words in the unit
_PLACED_WORDS = 0.3  # … in the unit or the headings above it
_SCORE = 0.5  # score of the passage that contains the unit
_UNLIKELY = -0.5  # labels, table headers, code that was not asked for, exercises
_DEFINES = 0.6  # it defines the term that was asked for
_COUNTS = 0.15  # it has a number and one was asked for
_READ = 0.5  # the reading model takes it for the answer; times its probability
_MARGIN = 0.4  # maximum difference in score to the best unit

_EXERCISES = re.compile(r"\b(exercises?|quiz(zes)?|self-check|self-assessment|practice)\b", re.I)
_LIST_MARKER = re.compile(r"(?:-|\d{1,3}\.) ")


@dataclass(frozen=True, slots=True)
class _Pick:
    hit: int  # index into the evidence
    unit: int  # index into the passage's units
    score: float
    defines: bool = False
    is_informative: bool = True  # adds information to the question
    read: float = 0.0  # part of the score that the reading model gives


@dataclass(frozen=True, slots=True)
class _Run:
    """One unit of the answer, quoted from a hit."""

    hit: Hit
    unit: int  # index into the passage's units
    marker: str = ""  # of a list item that is shown with its list: "- " or "1. "
    lead: str = ""  # separator before it: a space, a newline or an empty line

    @property
    def text(self) -> str:
        return self.marker + _text(self.hit, self.unit)

    @property
    def kind(self) -> UnitKind:
        return self.hit.passage.units[self.unit].kind

    def sentences(self) -> Iterator[Supported]:
        text, marker, lead = _text(self.hit, self.unit), self.marker, self.lead
        is_prose = self.kind in (UnitKind.SENTENCE, UnitKind.ITEM)
        for sentence in split_line(text) if is_prose else [text]:
            if has_words(sentence):
                quote = inside_fence(sentence) or sentence
                yield Supported(marker + sentence, self.hit, quote, lead)
            marker, lead = "", " "


class ExtractiveWriter:
    name = "extractive"

    def extract(self, question: AnalyzedQuestion, evidence: Evidence) -> Iterator[Supported]:
        """Yield the sentences that answer the question, with their hits, in reading order."""
        shown: set[str] = set()
        length = 0
        before: _Run | None = None
        chosen = self._choose(question, evidence)
        for index, unit in sorted(chosen):
            hit = evidence.hits[index]
            items = [other for at, other in chosen if at == index and _is_item(hit, other)]
            run = _Run(hit, unit, _list_marker(hit, unit) if len(items) > 1 else "")
            if run.text in shown:
                continue
            if length and length + len(run.text) > _MOST_CHARACTERS:
                return
            length += len(run.text)
            shown.add(run.text)
            yield from replace(run, lead=_lead(before, run)).sentences()
            before = run

    def _choose(self, question: AnalyzedQuestion, evidence: Evidence) -> set[tuple[int, int]]:
        """Return the best units with their context, as indices of the hit and of the unit."""
        chosen: set[tuple[int, int]] = set()
        for pick in _few(self._rank(question, evidence)):
            hit = evidence.hits[pick.hit]
            if pick.hit == 0 and question.type.steps and (steps := _steps(hit, pick.unit)):
                return {(0, unit) for unit in steps}  # the steps are the answer
            chosen.update((pick.hit, unit) for unit in _company(hit, pick.unit))
        return chosen

    def _rank(self, question: AnalyzedQuestion, evidence: Evidence) -> list[_Pick]:
        picks: list[_Pick] = []
        for index, hit in enumerate(evidence.hits):
            is_exercise = bool(_EXERCISES.search(hit.passage.place.heading))
            language = language_of_passage(hit.passage)
            headings = set(term_ids(hit.passage.place.path, language))
            scored = zip(hit.passage.units, hit.unit_cosines, hit.unit_informative, strict=False)
            for unit_index, (unit, cosine, is_informative) in enumerate(scored):
                text = hit.passage.unit_text(unit)
                words = set(term_ids(text, language))
                score = cosine + _SCORE * hit.score
                own = covered(question.terms, words)
                placed = covered(question.terms, words | headings)
                score += _OWN_WORDS * own + _PLACED_WORDS * placed
                defines = unit.kind is not UnitKind.CODE and question.type.is_defined_by(text)
                score += _DEFINES * defines + _COUNTS * question.type.is_counted_by(text)
                reading = hit.reading
                is_read = reading is not None and reading.sentence == unit_index
                read = _READ * reading.probability if reading and is_read else 0.0
                unasked = unit.kind is UnitKind.CODE and not question.type.code
                if unasked or is_exercise or _is_label(hit, unit_index):
                    score += _UNLIKELY
                pick = _Pick(index, unit_index, score + read, defines, is_informative, read)
                picks.append(pick)
        picks = [pick for pick in picks if pick.is_informative] or picks
        return sorted(picks, key=lambda pick: (-pick.score, pick.hit, pick.unit))


def _few(picks: Sequence[_Pick]) -> list[_Pick]:
    """Return the best units, at least one of the top hit unless the best is a definition."""
    margin = _MARGIN + (picks[0].read if picks else 0.0)
    few = [pick for pick in picks[:_MOST_UNITS] if pick.score >= picks[0].score - margin]
    first = next((pick for pick in picks if pick.hit == 0), None)
    if few and first and not few[0].defines and all(pick.hit for pick in few):
        few[_MOST_UNITS - 1 :] = [first]
    return few


def _company(hit: Hit, chosen: int) -> set[int]:
    """Return the unit and the neighbours that it cannot be understood without."""
    units = hit.passage.units
    company = {chosen}
    text = _text(hit, chosen)
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
    return kind is UnitKind.SENTENCE and len(_text(hit, unit).split()) <= _LONGEST_LABEL


def _list_marker(hit: Hit, unit: int) -> str:
    """Return the marker before a list item, such as "- " or "1. "; empty for other units."""
    if not _is_item(hit, unit):
        return ""
    text, end = hit.passage.text, hit.passage.units[unit].start
    marker = text[text.rfind("\n", 0, end) + 1 : end].strip()
    is_marker = marker == "-" or (marker.endswith(".") and marker[:-1].isdigit())
    return f"{marker} " if is_marker else ""


def _text(hit: Hit, unit: int) -> str:
    return hit.passage.unit_text(hit.passage.units[unit])


def _lead(before: _Run | None, run: _Run) -> str:
    """Return the separator: a space in prose, a newline before items, an empty line for blocks."""
    if before is None:
        return ""
    if "\n" in before.text or "\n" in run.text:
        return "\n\n"
    if _LIST_MARKER.match(run.text):
        return "\n" if before.kind is UnitKind.ITEM else "\n\n"
    if run.kind is UnitKind.ROW:
        return "\n"
    return "\n\n" if _LIST_MARKER.match(before.text) and not _same_line(before, run) else " "


def _same_line(before: _Run, run: _Run) -> bool:
    if before.hit is not run.hit:
        return False
    units = before.hit.passage.units
    return "\n" not in before.hit.passage.text[units[before.unit].end : units[run.unit].start]
