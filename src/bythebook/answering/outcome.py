"""Outcome of a question: the sentences as an answer with its disclaimer, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from bythebook.answering.answer_span import find_answer_span
from bythebook.answering.citations import Citations
from bythebook.answering.gate import QuestionPart, name_unanswered, settle, ungrounded
from bythebook.answering.generation import GenerationRun
from bythebook.refusals import DISCLAIMER, Refusal
from bythebook.types import Answer, Level, Sentence

_GOOD = 0.65  # similarity of a passage that needs no disclaimer


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
    seen = settle(run.evidence, answered=True).confidence
    counts = whole.question.min_confidence is not Level.INSUFFICIENT
    is_weak = seen.level is Level.LOW and (counts or seen.maximum < _GOOD)
    disclaimers = (
        run.disclaimer,
        name_unanswered(parts),
        DISCLAIMER if is_weak else None,
    )
    return Answer(
        tuple(sentences),
        citations.numbered,
        run.writer,
        " ".join(filter(None, disclaimers)) or None,
        find_answer_span(run.evidence.hits, sentences, citations.numbered, is_fact=whole.type.fact),
    )
