"""Cosines and term evidence in, scores in [0, 1] out: the odds that a passage holds the answer.

Two steps, both small enough to read. A passage's *merit* is a weighted sum of its signals and
decides the order. Its *score* is a logistic function of that merit and of how far the passage
falls behind the best one found, so that 0.5 means "as likely to hold the answer as not" whatever
the embedder. The weights are data, fitted by ``bench/fit_calibration.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bythebook.model import Signals, VectorState
from bythebook.ports import Generation

MOST_BEHIND = 4.0  # in merit; farther than this is equally far


@dataclass(frozen=True, slots=True)
class Calibration:
    # merit
    passage_cosine: float
    unit_cosine: float
    term_weight: float
    coverage: float
    # score
    bias: float
    slope: float
    behind: float

    def merit(self, signals: Signals) -> float:
        return (
            self.passage_cosine * signals.passage_cosine
            + self.unit_cosine * signals.unit_cosine
            + self.term_weight * signals.term_weight
            + self.coverage * signals.coverage
        )

    def scores(self, found: Sequence[Signals]) -> list[float]:
        """One score for each passage found for a question. The order of merit is kept."""
        merits = [self.merit(signals) for signals in found]
        best = max(merits, default=0.0)
        return [self._score(merit, best - merit) for merit in merits]

    def _score(self, merit: float, behind: float) -> float:
        logit = self.bias + self.slope * merit - self.behind * min(behind, MOST_BEHIND)
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Calibration:
        return cls(**json.loads(text))


MEASURED = {
    # 850 questions on two books, cross-validated by page; the figures are in bench/RESULTS.md.
    "local:minilm": Calibration(
        passage_cosine=4.87,
        unit_cosine=6.55,
        term_weight=4.56,
        coverage=4.77,
        bias=-5.21,
        slope=0.66,
        behind=1.43,
    ),
}

# For an embedder that nobody measured: the words decide more, the cosines less.
_UNMEASURED = Calibration(
    passage_cosine=2.5,
    unit_cosine=3.5,
    term_weight=5.0,
    coverage=7.5,
    bias=-5.21,
    slope=0.66,
    behind=1.43,
)


# While a book's vectors are pending, its words alone decide.
WORDS_ALONE = Calibration(
    passage_cosine=0.0,
    unit_cosine=0.0,
    term_weight=8.85,
    coverage=7.25,
    bias=-3.09,
    slope=0.57,
    behind=1.31,
)


def calibration_for(embedder: str) -> Calibration:
    return MEASURED.get(embedder, _UNMEASURED)


def calibration_of(generation: Generation) -> Calibration:
    """The weights by which this generation's passages are judged."""
    if generation.vectors is VectorState.PENDING:
        return WORDS_ALONE
    if generation.calibration:
        return Calibration.from_json(generation.calibration)
    return calibration_for(generation.embedder)
