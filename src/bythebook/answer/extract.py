"""Evidence in, the book's own sentences out: the writer that needs no model service.

It picks the few units (sentences, list items, table rows, code) that answer, brings along what
they lean on, and writes them verbatim in reading order, each with the number of its hit.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from bythebook.index.lexicon import Vocabulary, number_of, term_evidence, terms_of
from bythebook.model import Evidence, Hit, Message, Question, UnitKind

_MOST_CHARACTERS = 2000  # S2: GroundedAnswer.text
_MOST_UNITS = 3
_FEWEST_TERMS = 2
_MARGIN = 0.25  # how much weaker than the best a second unit may be
_COVERAGE_WEIGHT = 0.7  # of the question's words in a unit, against its cosine

_ASKS_CODE = re.compile(
    r"\b(code|command|snippet|script|syntax|show me|example of|how (do|can) (i|you) "
    r"(run|start|launch|build|install|call|write|create|declare|launch))\b",
    re.IGNORECASE,
)
_ASKS_STEPS = re.compile(r"\b(how (do|can|should) (i|we|you)|how to|steps?|procedure)\b", re.I)
_LEANS_BACK = re.compile(
    r"(it|its|they|their|them|this|these|that|those|he|she|his|her|such|both|here|there)\b", re.I
)


@dataclass(frozen=True, slots=True)
class _Pick:
    hit: int  # index into the evidence
    unit: int  # index into the passage's units
    merit: float


class ExtractiveWriter:
    name = "extractive"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        del history  # the question already stands alone
        written = 0
        for hit_number, text in self._choose(question, evidence):
            piece = f"{text} [{hit_number}]\n\n"
            if written and written + len(text) > _MOST_CHARACTERS:
                return
            written += len(piece)
            yield piece

    def _choose(self, question: Question, evidence: Evidence) -> Iterator[tuple[int, str]]:
        picks = self._rank(question, evidence)
        if not picks:
            return
        chosen: set[tuple[int, int]] = set()
        for pick in picks[:_MOST_UNITS]:
            if pick.merit >= picks[0].merit - _MARGIN:
                hit = evidence.hits[pick.hit]
                chosen.update((pick.hit, unit) for unit in _with_company(question, hit, pick.unit))
        shown: set[str] = set()
        for hit_index, unit_index in sorted(chosen):
            in_list = bool({(hit_index, unit_index - 1), (hit_index, unit_index + 1)} & chosen)
            text = _line(evidence.hits[hit_index], unit_index, in_list=in_list)
            if text not in shown:
                shown.add(text)
                yield hit_index + 1, text

    def _rank(self, question: Question, evidence: Evidence) -> list[_Pick]:
        asked = self._vocabulary.ask(question.text)
        wants_code = bool(_ASKS_CODE.search(question.text))
        picks: list[_Pick] = []
        for index, hit in enumerate(evidence.hits):
            headings = {number_of(term) for term in terms_of(hit.passage.place.path)}
            for unit_index, unit in enumerate(hit.passage.units):
                words = {number_of(term) for term in terms_of(hit.passage.unit_text(unit))}
                _, own = term_evidence(asked, dict.fromkeys(words, 1.0))
                _, placed = term_evidence(asked, dict.fromkeys(words | headings, 1.0))
                coverage = 0.6 * own + 0.4 * placed
                merit = hit.unit_cosines[unit_index] + _COVERAGE_WEIGHT * coverage + 0.3 * hit.score
                if unit.kind is UnitKind.CODE:
                    merit += 0.1 if wants_code else -0.5
                elif unit.kind is UnitKind.SENTENCE and len(words) < _FEWEST_TERMS:
                    merit -= 0.5  # a label, such as a tab's
                picks.append(_Pick(index, unit_index, merit))
        return sorted(picks, key=lambda pick: (-pick.merit, pick.hit, pick.unit))


def _with_company(question: Question, hit: Hit, chosen: int) -> set[int]:
    """The unit and the neighbours without which it says nothing."""
    units = hit.passage.units
    company = {chosen}
    text = hit.passage.unit_text(units[chosen])
    if chosen and units[chosen].kind is UnitKind.SENTENCE and _LEANS_BACK.match(text):
        company.add(chosen - 1)
    if text.rstrip().endswith(":"):
        company |= _run(hit, chosen + 1)
    if units[chosen].kind is UnitKind.ITEM and _ASKS_STEPS.search(question.text):
        company |= _whole_list(hit, chosen)
    if units[chosen].kind is UnitKind.CODE and chosen:
        company.add(chosen - 1)
    return company


def _run(hit: Hit, start: int) -> set[int]:
    """What a colon announces: the list, the table or the block that follows."""
    units = hit.passage.units
    if start >= len(units):
        return set()
    if units[start].kind is not UnitKind.ITEM:
        return {start}
    return _whole_list(hit, start)


def _whole_list(hit: Hit, inside: int) -> set[int]:
    units = hit.passage.units
    first = last = inside
    while first > 0 and units[first - 1].kind is UnitKind.ITEM:
        first -= 1
    while last + 1 < len(units) and units[last + 1].kind is UnitKind.ITEM:
        last += 1
    return set(range(first, last + 1))


def _line(hit: Hit, unit_index: int, *, in_list: bool) -> str:
    """The unit as it stands; an item that comes with its list keeps its marker."""
    unit = hit.passage.units[unit_index]
    text = hit.passage.unit_text(unit)
    if unit.kind is not UnitKind.ITEM or not in_list:
        return text
    start = hit.passage.text.rfind("\n", 0, unit.start) + 1
    marker = hit.passage.text[start : unit.start].strip()
    is_marker = marker == "-" or (marker.endswith(".") and marker[:-1].isdigit())
    return f"{marker} {text}" if is_marker else text
