"""Estimate the probability that a claim is supported, from features and the reading model.

A logistic function maps the features of a comparison (words, names and numbers that the passage
lacks, differing negations and scales, exchanged words) to a probability. A claim in other words
than the passage's gets a second chance: the reading model's support. The weights and the least
support were fitted by ``bench/check.py`` on true and false sentences about real books.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields

_CERTAIN = 1e-4  # a probability is never nearer to 0 or 1 than this


@dataclass(frozen=True, slots=True)
class ClaimFeatures:
    """Features of a claim; all are zero if the passage states exactly the claim."""

    missing: float = 0  # words that the passage lacks
    strange: float = 0  # … each reduced by its similarity to the nearest word of the passage
    names: float = 0  # names and identifiers that it lacks
    numbers: float = 0
    uncovered: float = 0  # share of the claim's terms that it lacks
    flips: float = 0  # words negated in one and not in the other
    clashes: float = 0  # scales on which the two have different positions
    headed: float = 0  # words found only in the headings
    exchanged: float = 0  # swapped words, replaced names or numbers, and wrong units
    cut: float = 0  # words at the start of the passage's sentence that the claim omits
    moved: float = 0  # share of adjacent terms that are not adjacent in the passage
    reversed: float = 0  # runs of words in reverse order
    lost: float = 0  # names and numbers that kept no neighbour
    leaps: float = 0  # terms skipped at the start of later sentences
    spread: float = 0  # units beyond the first


@dataclass(frozen=True, slots=True)
class Weights:
    bias: float
    features: ClaimFeatures  # weight of each feature

    def probability(self, signals: ClaimFeatures) -> float:
        weighted = zip(astuple(self.features), astuple(signals), strict=True)
        return _logistic(self.bias + sum(weight * value for weight, value in weighted))


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


# Fitted by bench/check.py on 1,500 sentences about three books; bench/RESULTS.md has the figures.
WEIGHTS = Weights(
    bias=2.83,
    features=ClaimFeatures(
        missing=0.29,
        strange=-4.58,
        names=-5.69,
        numbers=-5.65,
        uncovered=-1.94,
        flips=-5.78,
        clashes=-5.2,
        headed=-1.84,
        exchanged=-4.05,
        cut=-1.87,
        moved=-4.68,
        reversed=-3.71,
        lost=-2.26,
        leaps=-3.68,
        spread=-0.53,
    ),
)
# The reading model accepts a claim from this probability of support, chosen near the fit of
# bench/check.py. A claim that nearly repeats the passage needs more: one changed word can make it
# false.
READ_REWORDED = 0.72
READ_EDITED = 0.92
# A claim whose words come from several sentences is rejected if the reading model's probability is
# below NOT_SUPPORTED, unless the probability by words is at least SURE_BY_WORDS.
NOT_SUPPORTED, SURE_BY_WORDS = 0.5, 0.8
_FEWEST_OTHER = 2  # words of a sentence in other words
_MOSTLY_OTHER = 0.35  # share of such words that make it one in any order
NAMES = tuple(field.name for field in fields(ClaimFeatures))


def is_reworded(signals: ClaimFeatures) -> bool:
    """Return whether the claim is in other words or another order than the passage."""
    others = signals.missing >= _FEWEST_OTHER
    return others and (signals.moved > 0 or signals.uncovered > _MOSTLY_OTHER)


def is_readable(signals: ClaimFeatures) -> bool:
    """Return whether the reading model may accept the claim.

    It may not if all words are the passage's, or if a number, a scale, a unit or the order of words
    differs: there the features are more reliable.
    """
    changed = signals.numbers or signals.clashes or signals.exchanged or signals.reversed
    return bool(signals.uncovered) and not changed


def is_vetoed(signals: ClaimFeatures, support: float) -> bool:
    """Return whether the reading model rejects a claim whose words come from several sentences."""
    is_doubtful = signals.spread > 0 and WEIGHTS.probability(signals) < SURE_BY_WORDS
    return is_doubtful and support < NOT_SUPPORTED


def read_probability(signals: ClaimFeatures, support: float) -> float:
    """Return the probability by the reading model, 0.5 at the least support that is enough."""
    if not is_readable(signals):
        return 0.0
    least = READ_REWORDED if is_reworded(signals) else READ_EDITED
    return _logistic(_log_odds(support) - _log_odds(least))


def _log_odds(probability: float) -> float:
    probability = min(max(probability, _CERTAIN), 1 - _CERTAIN)
    return math.log(probability / (1 - probability))


def probability_of(signals: ClaimFeatures, support: float | None = None) -> float:
    """Return the probability that the claim is supported.

    ``support`` is the reading model's probability, if it has read the evidence.
    """
    by_words = WEIGHTS.probability(signals)
    if support is None:
        return by_words
    if is_vetoed(signals, support):
        by_words = min(by_words, support)
    return max(by_words, read_probability(signals, support))
