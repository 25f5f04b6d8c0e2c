"""Convert retrieval signals into a score in [0, 1]: the probability that a passage has the answer.

The score is the product of two logistic models. *Found?* estimates whether the passage is on the
topic, from its fusion score (a weighted sum of the positive signals) and the gap to the best one
found. *Answers?* estimates whether such a passage answers the question, from semantic
similarity and the negative signals. 0.5 means "as likely to have the answer as not" with every
embedder. The weights are data, fitted by ``bench/fit_calibration.py``.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from bythebook.errors import damaged_catalog
from bythebook.interfaces.store import Generation
from bythebook.types import Signals, VectorState

_SEAL = "seal"
MOST_GAP = 4.0  # cap of the gap to the best fusion score
SELECTION_PRIOR = 0.8  # log odds added for selected text, where the answer is more likely
MOST_STRANGERS = 3.0  # cap of the count of names and numbers that the passage lacks


@dataclass(frozen=True, slots=True)
class Reading:
    """Weights of the model that estimates whether a found passage answers the question."""

    bias: float
    passage_cosine: float
    unit_cosine: float
    term_weight: float
    coverage: float
    missing: float
    denied: float
    strange: float

    def answers(self, seen: Signals) -> float:
        return _logistic(
            self.bias
            + self.passage_cosine * seen.passage_cosine
            + self.unit_cosine * seen.unit_cosine
            + self.term_weight * seen.term_weight
            + self.coverage * seen.coverage
            + self.missing * seen.missing_rare_term
            + self.denied * seen.negation_mismatch
            + self.strange * min(seen.unmatched_entities, MOST_STRANGERS)
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    # fusion score
    passage_cosine: float
    unit_cosine: float
    term_weight: float
    coverage: float
    # found?
    bias: float
    slope: float
    behind: float
    # answers?
    reading: Reading

    def fusion_score(self, seen: Signals) -> float:
        return (
            self.passage_cosine * seen.passage_cosine
            + self.unit_cosine * seen.unit_cosine
            + self.term_weight * seen.term_weight
            + self.coverage * seen.coverage
        )

    def scores(
        self, found: Sequence[Signals], *, best: float | None = None, chosen: bool = False
    ) -> list[float]:
        """Return one score for each passage.

        ``best`` is the highest fusion score of all passages found. ``chosen`` means that the reader
        selected the text and no search was made.
        """
        best = max(map(self.fusion_score, found), default=0.0) if best is None else best
        prior = SELECTION_PRIOR if chosen else 0.0
        return [
            0.0
            if seen.echo
            else self.found(self.fusion_score(seen), best, prior) * self.reading.answers(seen)
            for seen in found
        ]

    def found(self, fusion_score: float, best: float, prior: float = 0.0) -> float:
        """Return the probability that the passage is on the topic: the upper bound of its score."""
        gap_to_best = min(max(best - fusion_score, 0.0), MOST_GAP)
        return _logistic(self.bias + prior + self.slope * fusion_score - self.behind * gap_to_best)

    def to_json(self) -> str:
        """Return JSON with a checksum: an unnoticed corrupt weight would change every score."""
        weights = asdict(self)
        return json.dumps({**weights, _SEAL: _seal(weights)})

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        """Parse JSON from ``to_json``; raise ValueError if it is invalid or was changed."""
        try:
            weights = json.loads(text)
            if _SEAL in weights and weights.pop(_SEAL) != _seal(weights):
                raise ValueError("not as it was sealed")
            return _from_weights(weights)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError("no calibration") from error


def _from_weights(weights: Mapping[str, Any]) -> Calibration:
    return Calibration(**{**weights, "reading": Reading(**weights["reading"])})


def _seal(weights: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(weights).encode())


def _logistic(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, odds))))


def _shipped() -> dict[str, Calibration]:
    text = resources.files("bythebook.retrieval").joinpath("calibrations.json").read_text("utf-8")
    return {name: _from_weights(weights) for name, weights in json.loads(text).items()}


# Fitted on 1,250 questions about two books; the figures are in bench/RESULTS.md. The cosines of
# e5-small lie between .7 and .95, hence its larger weights.
MEASURED = _shipped()
# Keyword signals only, used while a book's vectors are pending.
WORDS_ALONE = MEASURED.pop("keywords")


def calibration_of(generation: Generation) -> Calibration:
    """Return the weights for scoring the passages of this generation."""
    if generation.vectors is VectorState.PENDING:
        return WORDS_ALONE
    if generation.calibration:
        try:
            return Calibration.from_json(generation.calibration)
        except ValueError:
            raise damaged_catalog("calibration") from None
    return MEASURED.get(generation.embedder, WORDS_ALONE)  # a short book, unknown embedder
