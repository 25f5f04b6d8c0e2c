"""Read the best hits with the reading model and combine its judgement with the retrieval score.

Retrieval knows whether a passage is about the question, the reader whether it answers. One
logistic function of both is the new score, the probability that the passage holds the answer.
Its weights are fitted by ``bench/fit_reader.py``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bythebook.errors import ReaderFailed
from bythebook.interfaces.models import Reader
from bythebook.language.detection import language_of
from bythebook.language.terms import language_of_passage
from bythebook.language.text import words
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import Hit

_log = logging.getLogger(__name__)

READ_HITS = 5  # best hits that are read; the others stay behind them
_LANGUAGE = "en"  # of the reading model; other passages keep their retrieval score
_CERTAIN = 1e-4  # a probability is never nearer to 0 or 1 than this


@dataclass(frozen=True, slots=True)
class ReaderCalibration:
    """Weights of the log odds of the retrieval score and of the reader's probability."""

    bias: float
    retrieval: float
    reading: float

    def score(self, retrieval: float, reading: float, *, penalty: float = 0.0) -> float:
        odds = self.bias + self.retrieval * log_odds(retrieval) + self.reading * log_odds(reading)
        return 1 / (1 + math.exp(penalty - odds))


# Chosen near the fit of bench/fit_reader.py, with a bias that favours answering: refusing what the
# book says is worse than showing a passage that only comes close. For a name, number or date the
# reader is reliable; an explanation it often does not recognise.
CALIBRATION = ReaderCalibration(bias=1.0, retrieval=0.48, reading=0.5)
CALIBRATION_OF_FACTS = ReaderCalibration(bias=0.6, retrieval=0.4, reading=0.8)
# Penalties in log odds.
_UNKNOWN_NAME = 1.0  # none of the read passages has a name that the question has
_RARE_WORD = 0.45  # the book has a word of the question once or never: it hardly explains it
_UNKNOWN_WORDS = 2.5  # factor for the share of unknown words above the next value
_TOLERATED_UNKNOWN = 0.3  # share of words that the book never has, weighted by IDF


def log_odds(probability: float) -> float:
    probability = min(max(probability, _CERTAIN), 1 - _CERTAIN)
    return math.log(probability / (1 - probability))


async def rerank(
    question: AnalyzedQuestion, hits: Sequence[Hit], reader: Reader | None
) -> tuple[Hit, ...]:
    """Return the hits with new scores, best first.

    Without a reader, or if it fails, the hits keep their scores. So do passages in other languages
    than the reader's.
    """
    if reader is None or language_of(words(question.text)) != _LANGUAGE:
        return tuple(hits)
    best = [hit for hit in hits[:READ_HITS] if _is_readable(hit)]
    try:
        readings = await reader.read(question.text, [hit.passage for hit in best])
    except ReaderFailed as error:
        _log.warning("answering without the reading model: %s", error)
        return tuple(hits)
    calibration = CALIBRATION_OF_FACTS if question.type.fact else CALIBRATION
    penalty = penalty_of(question, best)
    read = {
        hit.passage.id: replace(
            hit,
            score=calibration.score(hit.score, reading.probability, penalty=penalty),
            reading=reading,
        )
        for hit, reading in zip(best, readings, strict=True)
    }
    scored = [read.get(hit.passage.id, hit) for hit in hits]
    first = sorted(scored[:READ_HITS], key=lambda hit: -hit.score)
    limit = min((hit.score for hit in first), default=1.0)
    rest = (replace(hit, score=min(hit.score, limit)) for hit in scored[READ_HITS:])
    ordered = enumerate((*first, *rest), 1)
    return tuple(replace(hit, rank=rank) for rank, hit in ordered)


def penalty_of(question: AnalyzedQuestion, hits: Sequence[Hit]) -> float:
    """Return the penalty, in log odds, for words of the question that the book hardly has."""
    name = _UNKNOWN_NAME if has_unknown_name(question, hits) else 0.0
    if question.question.selection is not None and question.question.selection_only:
        return name  # how often the book has a word says nothing about the selection
    rare = _RARE_WORD if question.has_rare_word else 0.0
    return name + rare + _UNKNOWN_WORDS * max(0.0, question.unknown_share - _TOLERATED_UNKNOWN)


def has_unknown_name(question: AnalyzedQuestion, hits: Sequence[Hit]) -> bool:
    """Return whether none of the hits has one of the question's names."""
    text = "\n".join(hit.passage.embedded_text for hit in hits).lower()
    names = [name for name in question.entities if not name[0].isdigit()]
    return bool(hits) and any(name.removesuffix("s") not in text for name in names)


def _is_readable(hit: Hit) -> bool:
    return not hit.signals.echo and language_of_passage(hit.passage) == _LANGUAGE
