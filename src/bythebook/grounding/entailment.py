"""Compare a claim with a passage: find the windows that may support it, and their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bythebook.grounding.claim_parser import ParsedClaim, Term, TermKind, are_opposite, parse_claim
from bythebook.grounding.claim_probability import WEIGHTS, ClaimFeatures, probability_of
from bythebook.types import Hit, Unit, UnitKind

if TYPE_CHECKING:
    from bythebook.interfaces.models import Embedder
    from bythebook.types import Vectors

_WIDEST = 3  # maximum units in a window
_LOOKED_AT = 3  # windows that are compared with the claim
_NEAR = 2  # maximum distance of neighbouring terms
_MOST_MOVED = 0.5  # share; a higher one carries no more information
_MOST_SKIPPED = 3
_MOST_KIN = 24  # words of the passage that a missing word is compared with
_MOST_KNOWN = 20_000  # vectors that are kept: 30 MB
_MEASURED = frozenset(("local:minilm-int8",))


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive units of one passage that may together support a claim."""

    hit: Hit
    first: int
    last: int
    header: int | None = None  # the table header, or the sentence before the list

    @property
    def units(self) -> list[Unit]:
        units = self.hit.passage.units
        own = list(units[self.first : self.last + 1])
        return own if self.header is None else [units[self.header], *own]

    @property
    def texts(self) -> list[str]:
        return [self.hit.passage.unit_text(unit) for unit in self.units]

    @property
    def quote(self) -> str:
        units = self.hit.passage.units
        return self.hit.passage.text[units[self.first].start : units[self.last].end]


def windows(claim: ParsedClaim, hits: Sequence[Hit]) -> list[Window]:
    """Return the few windows that share the most terms with the claim."""
    candidates = [(_shared(claim, window), window) for window in _all_windows(hits)]
    candidates.sort(key=lambda candidate: candidate[0], reverse=True)
    chosen: list[Window] = []
    for share, window in candidates:
        # A wider window without further words of the claim only adds false matches.
        if share > 0 and not any(_adds_nothing(claim, window, other) for other in chosen):
            chosen.append(window)
        if len(chosen) == _LOOKED_AT:
            break
    return chosen


def _adds_nothing(claim: ParsedClaim, window: Window, other: Window) -> bool:
    within = window.hit is other.hit and window.first <= other.first <= other.last <= window.last
    return within and not (_keys_of(window) - _keys_of(other)) & claim.keys


def _all_windows(hits: Sequence[Hit]) -> Iterator[Window]:
    for hit in hits:
        units = hit.passage.units
        blank = [at for at, unit in enumerate(units) if not hit.passage.unit_text(unit).strip()]
        for width in range(1, _WIDEST + 1):
            for first in range(len(units) - width + 1):
                last = first + width - 1
                if any(first <= at <= last for at in blank):
                    continue
                yield Window(hit, first, last, header_of(units, first))


def header_of(units: Sequence[Unit], first: int) -> int | None:
    """Return the index of the table's first row, or of the sentence before the list."""
    kind = units[first].kind
    if kind not in (UnitKind.ROW, UnitKind.ITEM):
        return None
    above = first
    while above > 0 and units[above - 1].kind is kind:
        above -= 1
    if kind is UnitKind.ROW:
        return above if above < first else None
    return above - 1 if above else None


def _shared(claim: ParsedClaim, window: Window) -> float:
    """Return the share of the claim's terms in the window, minus a small penalty for width."""
    keys = _keys_of(window)
    if not claim.terms:
        return 0.0
    share = sum(term.key in keys for term in claim.terms) / len(claim.terms)
    return share - 0.04 * len(window.units) if share else 0.0


def _keys_of(window: Window) -> set[str]:
    return {key for text in window.texts for key in parse_claim(text).keys}


@dataclass(frozen=True, slots=True)
class Comparison:
    window: Window
    signals: ClaimFeatures
    lacking: tuple[Term, ...]  # terms of the claim that the window lacks
    spare: tuple[str, ...]  # words of the window that the claim lacks

    @property
    def lacking_words(self) -> list[str]:
        return [term.text.lower() for term in self.lacking if term.kind is TermKind.WORD]


def compare(claim: ParsedClaim, window: Window) -> Comparison:
    """Compute the features that need no embedder."""
    readings = [parse_claim(text) for text in window.texts]
    source = [term for reading in readings for term in reading.terms]
    keys = {term.key for term in source}
    headings = parse_claim(window.hit.passage.place.path).terms
    placed = {term.key for term in headings if term.kind is not TermKind.NUMBER}
    telling = [term for term in claim.terms if not term.is_light or term.key in keys | placed]
    lacking = [term for term in telling if term.key not in keys | placed]
    common = [term for term in telling if term.key in keys]
    pairs = _pairs([term.key for term in common], [term.key for term in source])
    missing = sum(term.kind is TermKind.WORD for term in lacking)
    signals = ClaimFeatures(
        missing=missing,
        strange=missing,
        names=sum(term.kind is TermKind.NAME for term in lacking),
        numbers=sum(term.kind is TermKind.NUMBER for term in lacking),
        uncovered=len(lacking) / max(1, len(telling)),
        flips=_flips(claim, readings),
        clashes=_clashes(claim, readings) + are_opposite({t.key for t in lacking}, keys),
        headed=len({term.key for term in telling} & placed - keys),
        exchanged=_exchanged(common, source) + _mismeasured(claim.terms, source),
        cut=_skipped(claim, readings[window.header is not None]),
        moved=min(_MOST_MOVED, sum(pair != KEPT for pair in pairs) / max(1, len(pairs))),
        reversed=sum(one == two == TURNED for one, two in pairwise(pairs)),
        lost=_lost(common, pairs),
        leaps=sum(_skipped(claim, later) for later in readings[1:] if window.header is None),
        spread=window.last - window.first,
    )
    words = (t for t in source if t.kind is TermKind.WORD and t.key not in claim.keys)
    spare = dict.fromkeys(term.text.lower() for term in words)
    return Comparison(window, signals, tuple(lacking), tuple(spare))


KEPT, TURNED, APART = "kept", "turned", "apart"


def _pairs(claim: Sequence[str], source: Sequence[str]) -> list[str]:
    """Classify each pair of adjacent terms in the source: kept, turned round or apart."""
    shared = set(claim)
    indices: dict[str, list[int]] = {}
    for index, key in enumerate(key for key in source if key in shared):
        indices.setdefault(key, []).append(index)
    return [_pair(indices[one], indices[two]) for one, two in pairwise(claim)]


def _pair(ones: Sequence[int], twos: Sequence[int]) -> str:
    gaps = [two - one for one in ones for two in twos]
    if any(0 <= gap <= _NEAR for gap in gaps):
        return KEPT
    return TURNED if any(-_NEAR <= gap < 0 for gap in gaps) else APART


def _lost(common: Sequence[Term], pairs: Sequence[str]) -> int:
    """Count names and numbers that kept none of their neighbours."""
    ends = [None, *pairs, None][: len(common) + 1]
    return sum(
        term.kind is not TermKind.WORD and any(sides) and KEPT not in sides
        for term, sides in zip(common, pairwise(ends), strict=True)
    )


def _flips(claim: ParsedClaim, sources: Sequence[ParsedClaim]) -> int:
    """Count the words that one side negates and the other does not."""
    added = sum(
        claim.times_denied(reached[0]) > sum(source.times_denied(reached[0]) for source in sources)
        for reached in claim.denials
        if reached
    )
    removed = sum(
        _asserted(reached[0], [claim]) > _asserted(reached[0], sources)
        for source in sources
        for reached in source.denials
        if reached
    )
    bare = sum(not reached for reached in claim.denials)
    bare_there = sum(not reached for source in sources for reached in source.denials)
    return added + removed + (bare > bare_there or (bare < bare_there and len(sources) == 1))


def _asserted(key: str, readings: Sequence[ParsedClaim]) -> int:
    return sum(reading.times_said(key) - reading.times_denied(key) for reading in readings)


def _clashes(claim: ParsedClaim, sources: Sequence[ParsedClaim]) -> int:
    """Count scales on which the claim has one position more and another less than the passage."""
    here = Counter(claim.scales)
    there = Counter(scale for source in sources for scale in source.scales)
    more = {scale for (scale, position), n in here.items() if n > there[scale, position]}
    less = {scale for (scale, position), n in there.items() if n > here[scale, position]}
    return len(more & less)


def _skipped(claim: ParsedClaim, source: ParsedClaim) -> int:
    """Count the words of a sentence before the first one that the claim uses."""
    used = [index for index, term in enumerate(source.terms) if term.key in claim.keys]
    return min(_MOST_SKIPPED, used[0]) if used and not source.leans else 0


def _exchanged(claim: Sequence[Term], source: Sequence[Term]) -> int:
    """Count pairs of swapped words, and names or numbers replaced by others of their kind."""
    there = [term.key for term in source]
    steps = SequenceMatcher(None, [term.key for term in claim], there, autojunk=False)
    places = [
        (mine, theirs)
        for step, start, end, first, last in steps.get_opcodes()
        if step == "replace"
        for mine, theirs in zip(claim[start:end], source[first:last], strict=False)
    ]
    keys = {(mine.key, theirs.key) for mine, theirs in places}
    mutual = sum((theirs, mine) in keys for mine, theirs in keys) // 2
    special = sum(
        mine.kind is theirs.kind and mine.kind is not TermKind.WORD for mine, theirs in places
    )
    return mutual + special


class WordSimilarity:
    """Similarity of words or sentences by an embedder; what was embedded is kept for a while.

    The cosine of unrelated words differs between embedders, so an embedder that was not measured
    is not used: then every word that the passage lacks counts in full.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        is_measured = embedder is not None and embedder.name in _MEASURED
        self._embedder = embedder if is_measured else None
        self._known: dict[str, Vectors] = {}

    async def dissimilarity(self, comparison: Comparison) -> float:
        """Sum over the missing words: 0 for a synonym in the passage, up to 1 for none."""
        words, others = comparison.lacking_words, comparison.spare[:_MOST_KIN]
        if self._embedder is None or not words or not others:
            return float(len(words))
        await self._learn([*words, *others], self._embedder)
        there = np.stack([self._known[word] for word in others])
        nearest = (np.stack([self._known[word] for word in words]) @ there.T).max(axis=1)
        return float((1 - nearest.clip(0, 1)).sum())

    async def vectors(self, texts: Sequence[str]) -> Vectors | None:
        """Return a vector for each text, of length 1; None without a measured embedder."""
        if self._embedder is None or not texts:
            return None
        await self._learn(texts, self._embedder)
        return np.stack([self._known[text] for text in texts])

    async def _learn(self, words: Sequence[str], embedder: Embedder) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if new:
            vectors = await embedder.embed(new, role="passage")
            self._known.update(zip(new, vectors, strict=True))


def _mismeasured(claim: Sequence[Term], source: Sequence[Term]) -> int:
    """Count numbers of the claim with a unit that the passage gives to another number."""
    measured = {(one.key, two.key) for one, two in pairwise(source)}
    units = {term.key for term in source}
    return sum(
        one.kind is TermKind.NUMBER
        and two.is_measure
        and two.key in units
        and (one.key, two.key) not in measured
        for one, two in pairwise(claim)
    )


async def compare_claim(
    claim: ParsedClaim,
    hits: Sequence[Hit],
    similarity: WordSimilarity,
    support: float | None = None,
) -> tuple[Comparison, float] | None:
    """Return the window that supports the claim best, and the probability that it does.

    ``support`` is the reading model's probability, if it has read the evidence.
    """
    comparisons = [compare(claim, window) for window in windows(claim, hits)]
    if not comparisons:
        return None
    best = max(comparisons, key=lambda comparison: WEIGHTS.probability(comparison.signals))
    if best.signals.missing:
        strange = await similarity.dissimilarity(best)
        best = replace(best, signals=replace(best.signals, strange=strange))
    return best, probability_of(best.signals, support)
