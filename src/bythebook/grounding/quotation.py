"""Find the book's own words that a sentence rests on.

Candidates are runs of neighbouring units of one passage: one or two sentences, or up to four items
or rows. They are ordered by the words and the meaning (cosine) that they share with the sentence;
the reading model reads the best three. Without models, the words decide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import ReaderFailed
from bythebook.grounding.claim_parser import ParsedClaim, parse_claim
from bythebook.grounding.entailment import header_of
from bythebook.language.markup import is_readable
from bythebook.language.terms import language_of_passage
from bythebook.text.text_kinds import mistakes_label
from bythebook.text.units import inside_fence
from bythebook.types import Hit, Passage, Unit, UnitKind

if TYPE_CHECKING:
    from bythebook.grounding.entailment import WordSimilarity
    from bythebook.interfaces.models import Reader

LEAST_RELEVANCE = 0.7  # of a quotation; chosen with bench/check.py
_WIDEST = {UnitKind.SENTENCE: 2, UnitKind.ITEM: 4, UnitKind.ROW: 4}  # units in a run, else 1
_LONGEST = 500  # characters: as much as a citation quotes
_MOST_UNITS = 100  # that are embedded
_ENOUGH_COVERED = 0.6  # of the sentence's words by one quotation
_LEAST_ADDED = 0.2  # … by a second one
_LEAST_NEAR = 0.4  # cosine of a second one
_ON_TOPIC = 0.25  # least cosine of a quotation with the question
_READ = 3  # candidates that the reading model reads
_SUPPORT = 0.3  # weight of its probability
_WIDTH_COST = 0.05  # of each further unit: it must add words of the sentence


@dataclass(frozen=True, slots=True)
class Quotation:
    """Run of neighbouring units, with how much of a sentence it holds."""

    hit: Hit
    first: int
    last: int
    keys: frozenset[str] = frozenset()  # terms of the sentence that it or its headings hold
    coverage: float = 0.0  # their weighted share
    cosine: float | None = None  # None: there is no measured embedder
    support: float = 0.0  # the reading model's probability that it supports the sentence

    @property
    def relevance(self) -> float:
        """Return a value from 0 to 2; without a cosine, only more than half of the words help."""
        cosine = max(0.0, 2 * self.coverage - 1) if self.cosine is None else self.cosine
        return self.coverage + cosine

    @property
    def unit_texts(self) -> list[str]:
        passage = self.hit.passage
        units = passage.units[self.first : self.last + 1]
        return [passage.unit_text(unit)[:_LONGEST] for unit in units]

    @property
    def text(self) -> str:
        """Return the words as the passage has them, with list and table marks.

        Those of a list of mistakes come after its heading: else they would be taken for advice.
        """
        units, text = self.hit.passage.units, self.hit.passage.text
        start, end = units[self.first].start, units[self.last].end
        if units[self.first].kind in (UnitKind.ITEM, UnitKind.ROW):
            start = text.rfind("\n", 0, start) + 1
        if units[self.last].kind is UnitKind.ROW:
            end = text.find("\n", end) if "\n" in text[end:] else len(text)
        label = mistakes_label(self.hit.passage, range(self.first, self.last + 1))
        return f"{label}\n\n{text[start:end].strip()}" if label else text[start:end].strip()

    @property
    def quote(self) -> str:
        """Return the words to cite: verbatim, without the marks at the borders."""
        units, text = self.hit.passage.units, self.hit.passage.text
        words = text[units[self.first].start : units[self.last].end]
        return inside_fence(words) or words


async def find_quotations(
    sentence: str, hits: Sequence[Hit], similarity: WordSimilarity, reader: Reader | None
) -> list[Quotation]:
    """Return the run that the sentence rests on most, and a second one for the rest of its words.

    The second is there only if the first lacks many of them; none if there is no text.
    """
    weights = _weights(parse_claim(sentence), hits)
    runs = [run for run in _candidates(weights, hits) if _is_on_topic(run)]
    candidates = await _with_cosines(sentence, runs, similarity)
    if not candidates:
        return []
    ranked = sorted(candidates, key=_rank, reverse=True)
    best = max([await _read(sentence, each, reader) for each in ranked[:_READ]], key=_rank)
    second = _second(best, ranked, weights)
    return [_whole(each) for each in (best, second) if each is not None]


def _is_on_topic(run: Quotation) -> bool:
    """Return whether the run is similar to the question; unknown similarities pass.

    A passage may hold an order to the model that it obeyed: its words are not an answer.
    """
    cosines = run.hit.unit_cosines[run.first : run.last + 1]
    return not cosines or max(cosines) >= _ON_TOPIC


def _second(
    best: Quotation, others: Sequence[Quotation], weights: Mapping[str, float]
) -> Quotation | None:
    """Return the run that adds most of the words that the best one lacks, if it adds enough."""
    if best.coverage >= _ENOUGH_COVERED:
        return None
    everything = sum(weights.values()) or 1.0

    def added(other: Quotation) -> float:
        return sum(weights[key] for key in other.keys - best.keys) / everything

    apart = [
        other
        for other in others
        if other.hit is not best.hit or other.last < best.first or other.first > best.last
    ]
    second = max(apart, key=lambda other: added(other) + _rank(other) / 2, default=None)
    if second is None or added(second) < _LEAST_ADDED:
        return None
    near = second.coverage if second.cosine is None else second.cosine
    return second if near >= _LEAST_NEAR else None


async def _with_cosines(
    sentence: str, candidates: Sequence[Quotation], similarity: WordSimilarity
) -> Sequence[Quotation]:
    """Add the cosine of the sentence with the mean of the units of each run."""
    texts = list(dict.fromkeys(text for each in candidates for text in each.unit_texts))
    vectors = await similarity.vectors([sentence, *texts[:_MOST_UNITS]])
    if vectors is None or not texts:
        return candidates
    asked, known = vectors[0], dict(zip(texts, vectors[1:], strict=False))
    found = []
    for each in candidates:
        own = [known[text] for text in each.unit_texts if text in known]
        mean = np.sum(own, axis=0) if own else np.zeros_like(asked)
        cosine = float(mean @ asked) / max(float(np.linalg.norm(mean)), 1e-9)
        found.append(replace(each, cosine=cosine))
    return found


async def _read(sentence: str, candidate: Quotation, reader: Reader | None) -> Quotation:
    passage = _of(candidate)
    if reader is None or language_of_passage(passage) != "en":
        return candidate
    try:
        (support,) = await reader.support([sentence], [passage])
    except ReaderFailed:
        return candidate
    return replace(candidate, support=support.probability)


def _of(candidate: Quotation) -> Passage:
    """Return the run as a passage, to be read by itself under its headings."""
    passage, units = candidate.hit.passage, candidate.hit.passage.units
    header = header_of(units, candidate.first)
    start = units[candidate.first].start
    text = passage.text[start : units[candidate.last].end]
    if header is not None:
        text = f"{passage.unit_text(units[header])}\n{text}"
    return replace(passage, text=text, units=(Unit(0, len(text)),))


def _rank(candidate: Quotation) -> float:
    width = candidate.last - candidate.first
    return candidate.relevance + _SUPPORT * candidate.support - _WIDTH_COST * width


def _weights(claim: ParsedClaim, hits: Sequence[Hit]) -> dict[str, float]:
    """Return the weight of each term of the claim by its rarity in the evidence; at least 1 use."""
    units = [_keys(hit.passage, unit) for hit in hits for unit in hit.passage.units]
    counts = Counter(key for keys in units for key in keys)
    return {
        term.key: math.log((len(units) + 1) / (max(1, counts[term.key]) + 0.5)) + 0.1
        for term in claim.terms
        if not term.is_light
    }


def _candidates(weights: Mapping[str, float], hits: Sequence[Hit]) -> list[Quotation]:
    everything = sum(weights.values()) or 1.0
    found = []
    for hit in hits:
        units = hit.passage.units
        keys = [_keys(hit.passage, unit) & weights.keys() for unit in units]
        placed = parse_claim(hit.passage.place.path).keys & weights.keys()
        for first, last in _runs(hit.passage):
            header = header_of(units, first)
            own = placed.union(*keys[first : last + 1], keys[header] if header is not None else ())
            coverage = sum(weights[key] for key in own) / everything
            found.append(Quotation(hit, first, last, own, coverage))
    return found


def _keys(passage: Passage, unit: Unit) -> frozenset[str]:
    return parse_claim(passage.unit_text(unit)).keys


def _runs(passage: Passage) -> Iterator[tuple[int, int]]:
    units = passage.units
    for first, unit in enumerate(units):
        for last in range(first, min(len(units), first + _WIDEST.get(unit.kind, 1))):
            if units[last].kind is not unit.kind or units[last].end - unit.start > _LONGEST:
                break
            if not is_readable(passage.unit_text(units[last])):
                break
            yield first, last


def _whole(chosen: Quotation) -> Quotation:
    """Add the unit before it if the run leans on it, the table's header, and a formula after it."""
    chosen = _with_formula(chosen)
    units, first = chosen.hit.passage.units, chosen.first
    if units[first].kind is UnitKind.ROW:
        above = header_of(units, first)
    elif units[first].kind is UnitKind.ITEM:
        above = _lead_in(chosen)
    else:
        leans = parse_claim(chosen.hit.passage.unit_text(units[first])).leans
        above = first - 1 if leans and first else None
        if above is not None and not is_readable(chosen.hit.passage.unit_text(units[above])):
            above = None
    if above is None or units[chosen.last].end - units[above].start > _LONGEST:
        return chosen
    return replace(chosen, first=above)


def _with_formula(chosen: Quotation) -> Quotation:
    units, after = chosen.hit.passage.units, chosen.last + 1
    if after == len(units) or units[after].kind is not UnitKind.MATHS:
        return chosen
    is_short = units[after].end - units[chosen.first].start <= _LONGEST
    return replace(chosen, last=after) if is_short else chosen


def _lead_in(chosen: Quotation) -> int | None:
    """Return the index of the sentence that announces the list, if there is one."""
    passage, above = chosen.hit.passage, header_of(chosen.hit.passage.units, chosen.first)
    if above is None or not passage.unit_text(passage.units[above]).rstrip("*_ ").endswith(":"):
        return None
    return above
