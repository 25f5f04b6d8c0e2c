"""Find the book's own words that a sentence rests on.

Candidates are runs of neighbouring units of one passage: one or two sentences, or up to four items
or rows. Those that share the most words with the sentence are ordered by the cosine as well, and
the reading model chooses among the best three. Without a model, the words decide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.errors import ReaderFailed
from bythebook.grounding.claim_parser import ParsedClaim, parse_claim
from bythebook.grounding.entailment import header_of
from bythebook.grounding.stream_splitter import inside_fence
from bythebook.language.terms import language_of_passage
from bythebook.types import Hit, Passage, Unit, UnitKind

if TYPE_CHECKING:
    from bythebook.grounding.entailment import WordSimilarity
    from bythebook.interfaces.reader import Reader

LEAST_RELEVANCE = 0.9  # of a quotation; fitted by bench/check.py
_WIDEST = {UnitKind.SENTENCE: 2, UnitKind.ITEM: 4, UnitKind.ROW: 4}  # units in a run, else 1
_LONGEST = 500  # characters: as much as a citation quotes
_COMPARED = 8  # candidates that are embedded
_READ = 3  # … and read by the reading model
_WIDTH_COST = 0.06  # of each further unit: it must add words of the sentence


@dataclass(frozen=True, slots=True)
class Quotation:
    """Run of neighbouring units, with how much of a sentence it holds."""

    hit: Hit
    first: int
    last: int
    coverage: float = 0.0  # weighted share of the sentence's terms that it holds
    cosine: float | None = None  # None: there is no measured embedder
    support: float | None = None  # the reading model's probability that it supports the sentence

    @property
    def relevance(self) -> float:
        """Return a value from 0 to 2; without a cosine, the coverage counts twice."""
        return self.coverage + (self.coverage if self.cosine is None else self.cosine)

    @property
    def text(self) -> str:
        """Return the words as the passage has them, with list and table marks."""
        units, text = self.hit.passage.units, self.hit.passage.text
        start, end = units[self.first].start, units[self.last].end
        if units[self.first].kind in (UnitKind.ITEM, UnitKind.ROW):
            start = text.rfind("\n", 0, start) + 1
        if units[self.last].kind is UnitKind.ROW:
            end = text.find("\n", end) if "\n" in text[end:] else len(text)
        return text[start:end].strip()

    @property
    def quote(self) -> str:
        """Return the words to cite: verbatim, without the marks at the borders."""
        units, text = self.hit.passage.units, self.hit.passage.text
        words = text[units[self.first].start : units[self.last].end]
        return inside_fence(words) or words


async def find_quotation(
    sentence: str, hits: Sequence[Hit], similarity: WordSimilarity, reader: Reader | None
) -> Quotation | None:
    """Return the run that the sentence rests on, if any shares words with it."""
    claim = parse_claim(sentence)
    candidates = sorted(_candidates(claim, hits), key=_by_words, reverse=True)[:_COMPARED]
    if not candidates:
        return None
    cosines = await similarity.cosines(sentence, [_of(c).text for c in candidates])
    candidates = [replace(c, cosine=cosine) for c, cosine in zip(candidates, cosines, strict=True)]
    candidates.sort(key=_by_meaning, reverse=True)
    return _whole(await _read(sentence, candidates[:_READ], reader))


async def _read(sentence: str, candidates: Sequence[Quotation], reader: Reader | None) -> Quotation:
    """Return the candidate that the reading model prefers, or the first one without it."""
    passages = [_of(candidate) for candidate in candidates]
    if reader is None or any(language_of_passage(passage) != "en" for passage in passages):
        return candidates[0]
    try:
        (support,) = await reader.support([sentence], passages)
    except ReaderFailed:
        return candidates[0]
    chosen = candidates[support.passage or 0]
    return replace(chosen, support=support.probability)


def _of(candidate: Quotation) -> Passage:
    """Return the run as a passage, to be read by itself under its headings."""
    passage, units = candidate.hit.passage, candidate.hit.passage.units
    header = header_of(units, candidate.first)
    start = units[candidate.first].start
    text = passage.text[start : units[candidate.last].end]
    if header is not None:
        text = f"{passage.unit_text(units[header])}\n{text}"
    return replace(passage, text=text, units=(Unit(0, len(text)),))


def _by_words(candidate: Quotation) -> float:
    return candidate.coverage - _WIDTH_COST * (candidate.last - candidate.first)


def _by_meaning(candidate: Quotation) -> float:
    return candidate.relevance - _WIDTH_COST * (candidate.last - candidate.first)


def _candidates(claim: ParsedClaim, hits: Sequence[Hit]) -> Iterator[Quotation]:
    readings = [[_keys(hit.passage, unit) for unit in hit.passage.units] for hit in hits]
    counts = Counter(key for keys in readings for unit in keys for key in unit)
    total = sum(map(len, readings))
    asked = {
        term.key: math.log((total + 1) / (counts[term.key] + 0.5)) + 0.1
        for term in claim.terms
        if not term.is_light
    }
    everything = sum(asked.values())
    for hit, keys in zip(hits, readings, strict=True):
        placed = parse_claim(hit.passage.place.path).keys
        for first, last in _runs(hit.passage):
            header = header_of(hit.passage.units, first)
            within = frozenset().union(*keys[first : last + 1])
            around = within | placed | (keys[header] if header is not None else frozenset())
            if within.isdisjoint(asked):
                continue
            covered = sum(weight for key, weight in asked.items() if key in around)
            yield Quotation(hit, first, last, covered / everything)


def _keys(passage: Passage, unit: Unit) -> frozenset[str]:
    return parse_claim(passage.unit_text(unit)).keys


def _runs(passage: Passage) -> Iterator[tuple[int, int]]:
    units = passage.units
    for first, unit in enumerate(units):
        for last in range(first, min(len(units), first + _WIDEST.get(unit.kind, 1))):
            if units[last].kind is not unit.kind or units[last].end - unit.start > _LONGEST:
                break
            yield first, last


def _whole(chosen: Quotation) -> Quotation:
    """Add the unit before it if the run leans on it, and the table's header."""
    units, first = chosen.hit.passage.units, chosen.first
    if units[first].kind is UnitKind.ROW:
        above = header_of(units, first)
    else:
        leans = parse_claim(chosen.hit.passage.unit_text(units[first])).leans
        above = first - 1 if leans and first else None
    if above is None or units[chosen.last].end - units[above].start > _LONGEST:
        return chosen
    return replace(chosen, first=above)
