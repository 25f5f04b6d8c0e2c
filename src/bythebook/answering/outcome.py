"""Outcome of a question: the sentences as an answer with its disclaimer, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from bythebook.answering.answer_span import find_answer_span
from bythebook.answering.citations import Citations
from bythebook.answering.gate import QuestionPart, name_unanswered, settle, ungrounded
from bythebook.answering.generation import GenerationRun
from bythebook.refusals import DISCLAIMER, Refusal
from bythebook.types import Answer, Confidence, Level, Question, Sentence

_GOOD = 0.65  # score of a passage that needs no disclaimer


def outcome_of(
    parts: Sequence[QuestionPart],
    run: GenerationRun,
    citations: Citations,
    sentences: Sequence[Sentence],
) -> Answer | Refusal:
    """Return the answer; a refusal if no sentence was shown."""
    whole = parts[0].question
    if not sentences:
        return ungrounded(whole.question, run.evidence)
    hits, is_fact = run.evidence.hits, whole.type.fact
    confidence = settle(run.evidence, answered=True).confidence
    disclaimers = (
        run.disclaimer,
        name_unanswered(parts),
        DISCLAIMER if _is_unsure(whole.question, confidence) else None,
    )
    return Answer(
        tuple(sentences),
        citations.numbered,
        run.writer,
        " ".join(filter(None, disclaimers)) or None,
        find_answer_span(hits, sentences, citations.numbered, is_fact=is_fact),
    )


def _is_unsure(question: Question, confidence: Confidence) -> bool:
    """Return whether an answer of this confidence needs the disclaimer.

    The contract that asks for a level counts passages; for the others one good passage is enough.
    """
    counts = question.min_confidence is not Level.INSUFFICIENT
    return confidence.level is Level.LOW and (counts or confidence.maximum < _GOOD)
