"""Answer pipeline: rewrite, retrieve, gate, generate, verify and cite, as a stream of events.

The events are states, the evidence, citations and sentences in order, and finally the reply.
Callers that do not stream use only the reply.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum

from bythebook.answering.answer_span import find_answer_span
from bythebook.answering.citations import Citations
from bythebook.answering.gate import gate, gather, settle, ungrounded
from bythebook.answering.generation import AnswerContext, GenerationRun
from bythebook.answering.routing import Mode, mode_of
from bythebook.chunking.passages import passage_of_selection
from bythebook.conversations.query_rewriting import rewrite_follow_up
from bythebook.retrieval.search import Findings, score_selection, search
from bythebook.types import (
    Answer,
    Citation,
    Evidence,
    Level,
    Message,
    Question,
    Refusal,
    Reply,
    Sentence,
    Timings,
)

_NEIGHBOURS_OF = 2  # best hits whose neighbours in the section are added within the token budget

DISCLAIMER = "The book says little about this; read the cited passages yourself."


class State(StrEnum):
    """Query processing states of the ask contract. Errors are raised, not sent as events."""

    RECEIVED = "RECEIVED"
    VALIDATING = "VALIDATING"
    RETRIEVING = "RETRIEVING"
    GENERATING = "GENERATING"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"


Event = State | Evidence | Citation | Sentence | Reply


async def respond(
    question: Question, context: AnswerContext, history: Sequence[Message] = ()
) -> AsyncGenerator[Event, None]:
    began = time.perf_counter()
    yield State.RECEIVED
    yield State.VALIDATING
    asked = rewrite_follow_up(question, history)
    yield State.RETRIEVING
    if mode_of(question) is Mode.SELECTED_TEXT_ONLY:
        selection = passage_of_selection(question.selection or "", url=question.selection_url)
        findings = await score_selection(asked, selection, context.index)
    else:
        findings = await search(asked, context.index, neighbours_of=_NEIGHBOURS_OF)
    evidence = gather(findings, context_tokens=context.context_tokens)
    outcome: Answer | Refusal | None = gate(findings.question, evidence)
    if outcome is not None and findings.failure is not None:
        # Too few hits by keywords alone do not justify a refusal: report the failure instead.
        raise findings.failure.with_traceback(None)
    evidence = settle(evidence, answered=outcome is None)
    yield evidence
    written, writing = (
        time.perf_counter(),
        GenerationRun(context, findings.question, evidence, history),
    )
    if outcome is None:
        yield State.GENERATING
        citations, sentences, cited = Citations(), [], []
        async with aclosing(writing.sentences()) as supported:
            async for each in supported:
                sentence, citation, new = citations.cite(each)
                if new:
                    cited.append(citation)
                    yield citation
                sentences.append(sentence)
                yield sentence
        marked = find_answer_span(findings.question, [sentence.text for sentence in sentences])
        said = tuple(sentences), tuple(cited), writing.writer, writing.disclaimer, marked
        outcome = Answer(*said) if sentences else ungrounded(question, evidence)
    yield State.COMPLETE
    yield _settled(
        Reply(
            question,
            outcome,
            writing.evidence,
            _timings(findings, began, written),
            vectors=findings.vectors,
            verdicts=tuple(writing.verdicts),
            writer=context.writer.name,
            usage=writing.usage,
            fallback=writing.fallback,
        )
    )


def _settled(reply: Reply) -> Reply:
    """Align the confidence with the outcome, and add a disclaimer if it is low."""
    outcome = reply.outcome
    evidence = settle(reply.evidence, answered=isinstance(outcome, Answer))
    if isinstance(outcome, Answer) and evidence.confidence.level is Level.LOW:
        told = " ".join(filter(None, (outcome.disclaimer, DISCLAIMER)))
        outcome = replace(outcome, disclaimer=told)
    return replace(reply, outcome=outcome, evidence=evidence)


def _timings(findings: Findings, began: float, written: float) -> Timings:
    now = time.perf_counter()
    return Timings(
        query_ms=findings.query_ms,
        search_ms=findings.search_ms,
        generation_ms=(now - written) * 1000,
        total_ms=(now - began) * 1000,
    )
