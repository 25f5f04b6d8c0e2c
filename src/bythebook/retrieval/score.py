"""Score the passages of a search: which ones are about the question, and whether they answer it.

Four linear functions of a few signals, each in log odds. Their weights are data (``weights.json``),
fitted by ``bench/fit_score.py`` on labelled questions about fourteen books:

- *order* ranks the candidates by all that is cheap; the best of them are read.
- *answers* is the probability that a passage that was read holds the answer; it orders those.
- *similarity* is the probability that a passage is about what is asked, as a cosine is meant to
  say it. The thresholds of the contracts apply to it.
- *answerability* is the probability that the passages found answer the question. It decides
  whether the question is answered at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources

from bythebook.errors import damaged_catalog
from bythebook.interfaces.store import Candidate, Generation
from bythebook.language.terms import covered, language_of_passage, term_evidence, term_ids
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.types import Hit, Passage, PassageReading, Signals, VectorState

Linear = Mapping[str, float]  # weights of signals, and the bias

_CERTAIN = 1e-4  # a probability is never nearer to 0 or 1 than this
_NOTHING = math.log(_CERTAIN)  # log odds of what was not read
_ALL, _UNREAD = "read", "unread"  # weights for passages that a reading model has read, or not
_WORDS = "words"  # weights for a search without vectors


@dataclass(frozen=True, slots=True)
class CosineMarks:
    """Mean cosines with unrelated and own text, for whole passages and for their best unit.

    Embedders differ in their scale: unrelated texts have 0.1 with one and 0.7 with another. With
    these marks a cosine becomes 0 for unrelated text and 1 for the text itself.
    """

    strange_passage: float
    own_passage: float
    strange_unit: float
    own_unit: float

    @property
    def is_scale(self) -> bool:
        """Return whether own text is nearer than unrelated text."""
        return self.own_passage > self.strange_passage and self.own_unit > self.strange_unit

    def scaled(self, candidate: Candidate) -> tuple[float, float]:
        """Return the cosines of a passage and of its best unit on the common scale."""
        return (
            (candidate.cosine - self.strange_passage) / (self.own_passage - self.strange_passage),
            (candidate.unit_cosine - self.strange_unit) / (self.own_unit - self.strange_unit),
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def marks_of(generation: Generation) -> CosineMarks | None:
    """Return the marks of the generation's embedder; None if only words can be compared."""
    if generation.vectors is VectorState.PENDING:
        return None
    if not generation.calibration:
        return MEASURED.get(generation.embedder)
    try:
        return CosineMarks(**json.loads(generation.calibration))
    except (TypeError, ValueError):
        raise damaged_catalog("calibration") from None


def signals_of(
    candidate: Candidate, question: AnalyzedQuestion, marks: CosineMarks | None
) -> Signals:
    """Return what the index alone says about a passage."""
    cosine, unit_cosine = marks.scaled(candidate) if marks else (0.0, 0.0)
    return Signals(cosine, unit_cosine, *term_evidence(question.terms, candidate.terms))


def with_text(signals: Signals, question: AnalyzedQuestion, passage: Passage) -> Signals:
    """Return the signals with those of the passage's text: where the question's words stand."""
    language = language_of_passage(passage)
    units = (set(term_ids(passage.unit_text(unit), language)) for unit in passage.units)
    return replace(
        signals,
        heading_coverage=covered(question.terms, set(term_ids(passage.place.path, language))),
        best_unit_coverage=max((covered(question.terms, unit) for unit in units), default=0.0),
    )


def order_odds(signals: Signals, *, vectors: bool) -> float:
    return _odds(_weights("order", vectors=vectors), asdict(signals))


def similarity(signals: Signals, reading: PassageReading | None, *, vectors: bool) -> float:
    """Return the probability that a passage is about what is asked."""
    kinds, seen = _read(reading)
    weights = _weights("similarity", *kinds, vectors=vectors)
    return probability(_odds(weights, {**asdict(signals), **seen}))


def answers(order: float, reading: PassageReading | None, *, vectors: bool) -> float:
    """Return the probability that a passage holds the answer, from its order and its reading."""
    kinds, seen = _read(reading)
    return probability(
        _odds(_weights("answers", *kinds, vectors=vectors), {"order": order, **seen})
    )


def _read(reading: PassageReading | None) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return the kind of weights for a passage, and the log odds of its reading if there is one."""
    if reading is None:
        return (_UNREAD,), {}
    best = log_odds(max(reading.relevance, default=0.0))
    return (), {"reading": log_odds(reading.probability), "relevance": best}


def answerability(question: AnalyzedQuestion, hits: Sequence[Hit], *, vectors: bool) -> float:
    """Return the probability that these hits answer the question."""
    seen, weights = evidence_for(question, hits, vectors=vectors)
    return probability(_odds(weights, seen)) if hits else 0.0


def of_selection(hit: Hit) -> float:
    """Return the probability that text which a reader has selected answers the question.

    Of the hits of a search few hold the answer; what is selected does as often as not.
    """
    return probability(log_odds(hit.answers) + _file()["selection"]["answers"]["bias"])


def evidence_for(
    question: AnalyzedQuestion, hits: Sequence[Hit], *, vectors: bool
) -> tuple[dict[str, float], Linear]:
    """Return the best of each signal and their weights: products of the two add up by hand."""
    read = [hit for hit in hits if hit.reading is not None]
    known = read or hits
    seen = {
        "answers": log_odds(max((hit.answers for hit in known), default=0.0)),
        "best_unit_coverage": max((hit.signals.best_unit_coverage for hit in known), default=0.0),
        "names": float(min((unmatched(question, hit.passage) for hit in known), default=0)),
        **of_question(question),
    }
    if not read:
        return seen, _weights("answerability", _UNREAD, vectors=vectors)
    readings = [_read(hit.reading)[1] for hit in read]
    relevance = sorted((each["relevance"] for each in readings), reverse=True)
    seen["fact_reading"] = seen["fact"] * max(each["reading"] for each in readings)
    seen["relevance"], seen["second_relevance"] = [*relevance, _NOTHING][:2]
    return seen, _weights("answerability", vectors=vectors)


def of_question(question: AnalyzedQuestion) -> dict[str, float]:
    """Return the signals of the question alone."""
    return {"unknown": question.unknown_share, "fact": float(question.type.fact)}


def unmatched(question: AnalyzedQuestion, passage: Passage) -> int:
    """Count the names and numbers of the question that the passage lacks."""
    text = passage.embedded_text.lower()
    return sum(name not in text for name in question.entities)


def contributions(weights: Linear, seen: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Return name, value and weight of each signal; weight times value, summed, are log odds."""
    return [
        (name, 1.0 if name == "bias" else seen[name], weight) for name, weight in weights.items()
    ]


def log_odds(chance: float) -> float:
    chance = min(max(chance, _CERTAIN), 1 - _CERTAIN)
    return math.log(chance / (1 - chance))


def probability(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, odds))))


def _odds(weights: Linear, seen: Mapping[str, float]) -> float:
    return sum(value * weight for _, value, weight in contributions(weights, seen))


@cache
def _file() -> dict[str, dict[str, dict[str, float]]]:
    text = resources.files("bythebook.retrieval").joinpath("weights.json").read_text("utf-8")
    found: dict[str, dict[str, dict[str, float]]] = json.loads(text)
    return found


def _weights(name: str, *kinds: str, vectors: bool) -> Linear:
    return _file()[name][" ".join((*kinds, *(() if vectors else (_WORDS,)))) or _ALL]


MEASURED = {name: CosineMarks(**marks) for name, marks in _file()["marks"].items()}
ANSWERABLE = _file()["limit"]["answerability"]["default"]
