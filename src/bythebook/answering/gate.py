"""Answerability gate: select evidence, measure its confidence, refuse if it is insufficient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from bythebook.answering.routing import Mode, mode_of
from bythebook.language.english.question_types import QuestionType, question_type
from bythebook.refusals import Refusal, RefusalType, Topic
from bythebook.retrieval.question_analysis import AnalyzedQuestion
from bythebook.retrieval.search import Findings
from bythebook.types import Confidence, Evidence, Hit, Level, Question

DECISIVE = 0.85  # one passage with this score is enough for "medium"
_NEARBY_TOPICS = 3
_NEARBY_COSINE = 0.25  # a nearby topic has this cosine or this share of words
_NEARBY_WORDS = 0.5

# Bands of the chat contract: (average score, passages, level). Counts are capped by top_k.
_BANDS = ((0.85, 5, Level.HIGH), (0.75, 3, Level.MEDIUM), (0.60, 2, Level.LOW))
_ORDER = (Level.INSUFFICIENT, Level.LOW, Level.MEDIUM, Level.HIGH)


def gather(findings: Findings, *, context_tokens: int) -> Evidence:
    """Return the hits with the minimum score that fit the token budget, dropping the weakest first.

    Their neighbours fill the remaining budget and do not affect the confidence.
    """
    question = findings.question.question
    kept: list[Hit] = []
    tokens = 0
    for hit in findings.hits:
        if hit.score < question.min_score:
            break
        if kept and tokens + hit.passage.tokens > context_tokens:
            break
        kept.append(hit)
        tokens += hit.passage.tokens
    confidence = measure(kept, top_k=question.top_k)
    wanted = {neighbour for hit in kept for neighbour in hit.passage.neighbours}
    for hit in findings.neighbours:
        if hit.passage.id in wanted and tokens + hit.passage.tokens <= context_tokens:
            kept.append(hit)
            tokens += hit.passage.tokens
    return Evidence(tuple(kept), tokens, confidence, findings.hits)


def measure(hits: Sequence[Hit], *, top_k: int) -> Confidence:
    """Compute the chat contract's ConfidenceMetrics on calibrated scores."""
    if not hits:
        return Confidence()
    scores = [hit.score for hit in hits]
    average = min(max(sum(scores) / len(scores), min(scores)), max(scores))
    return Confidence(
        average=average,
        minimum=min(scores),
        maximum=max(scores),
        count=len(hits),
        diversity=_diversity(hits),
        level=_level(average, max(scores), len(hits), top_k),
    )


def band(score: float) -> Level:
    """Return the level of a single passage's score.

    It replaces the exact score, which would help to optimise text for retrieval.
    """
    return next((level for least, _, level in _BANDS if score >= least), Level.LOW)


def gate(question: AnalyzedQuestion, evidence: Evidence) -> Refusal | None:
    """Return a refusal if the evidence is insufficient for an answer."""
    if mode_of(question.question) is Mode.SELECTED_TEXT_ONLY:
        is_answered = evidence.hits and not _lacks_number(question.type, evidence)
        return None if is_answered else Refusal(RefusalType.SELECTED_TEXT_MISSING)
    needed = question.question.min_confidence
    if evidence.hits and _ORDER.index(evidence.confidence.level) >= _ORDER.index(needed):
        return None
    kind = RefusalType.LOW_RELEVANCE if evidence.considered else RefusalType.EMPTY_RETRIEVAL
    return Refusal(kind, nearby_topics(evidence))


def reasons(question: Question, evidence: Evidence) -> Iterator[str]:
    """Explain the gate's decision, with its figures."""
    best = max((hit.score for hit in evidence.considered), default=0.0)
    confidence = evidence.confidence
    yield (
        f"{confidence.count} of {len(evidence.considered)} passages score at least "
        f"{question.min_score:.2f}; the best has {best:.2f}"
    )
    beside = len(evidence.hits) - confidence.count
    if beside:
        yield f"{beside} more stand beside them in their sections"
    wanted = (
        "any will do"
        if question.min_confidence is Level.INSUFFICIENT
        else f"needed: {question.min_confidence}"
    )
    yield f"confidence is {confidence.level} (average {confidence.average:.2f}; {wanted})"
    if question.selection is not None and _lacks_number(question_type(question.text), evidence):
        yield "a number was asked for, and the selected text has none"


def _lacks_number(asked: QuestionType, evidence: Evidence) -> bool:
    """Return whether the question asks "how many" and the evidence has no number."""
    return asked.count and not any(asked.is_counted_by(hit.passage.text) for hit in evidence.hits)


def ungrounded(question: Question, evidence: Evidence) -> Refusal:
    """Return the refusal for a draft of which no sentence passed verification."""
    if mode_of(question) is Mode.SELECTED_TEXT_ONLY:
        return Refusal(RefusalType.SELECTED_TEXT_MISSING)
    return Refusal(RefusalType.INSUFFICIENT_GROUNDING, nearby_topics(evidence))


def settle(evidence: Evidence, *, answered: bool) -> Evidence:
    """Align the level with the outcome: insufficient for a refusal, at least low for an answer."""
    level = evidence.confidence.level
    if not answered:
        level = Level.INSUFFICIENT
    elif level is Level.INSUFFICIENT:
        level = Level.LOW
    return replace(evidence, confidence=replace(evidence.confidence, level=level))


def nearby_topics(evidence: Evidence) -> tuple[Topic, ...]:
    topics: dict[str, Topic] = {}
    for hit in evidence.considered:
        seen = hit.signals
        if seen.unit_cosine >= _NEARBY_COSINE or seen.coverage >= _NEARBY_WORDS:
            place = hit.passage.place
            topics.setdefault(place.url, Topic(place.path, place.url))
    return tuple(topics.values())[:_NEARBY_TOPICS]


def _level(average: float, best: float, count: int, top_k: int) -> Level:
    for least, passages, level in _BANDS:
        if average >= least and count >= min(passages, top_k):
            return level
        if level is Level.MEDIUM and best >= DECISIVE:
            return level
    return Level.INSUFFICIENT


def _diversity(hits: Sequence[Hit]) -> float:
    pairs = list(combinations([hit.vector for hit in hits if hit.vector is not None], 2))
    if not pairs:
        return 0.0
    similarity = sum(float(one @ other) for one, other in pairs) / len(pairs)
    return min(1.0, max(0.0, 1 - similarity))
