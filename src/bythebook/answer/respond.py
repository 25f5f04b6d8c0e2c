"""The journey of a question, in order: from what was asked to a reply that stands in the book.

Events are the nouns themselves: states, the evidence, citations and sentences as they come, and
last the reply. The answer of a caller that does not stream is that last event.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum

from bythebook.answer.cite import Citations
from bythebook.answer.gate import gate, gather, settle, ungrounded
from bythebook.answer.mark import mark
from bythebook.answer.plan import Mode, plan
from bythebook.answer.write import Desk, Writing
from bythebook.book.passages import passage_of_selection
from bythebook.model import (
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
from bythebook.retrieve.search import Findings, search, weigh_selection
from bythebook.talk.standalone import stand_alone

_AROUND = 2  # of the best hits, the section is read on as far as the budget allows

DISCLAIMER = "The book says little about this; read the cited passages yourself."


class State(StrEnum):
    """S1's query processing states. An error is an exception, not an event."""

    RECEIVED = "RECEIVED"
    VALIDATING = "VALIDATING"
    RETRIEVING = "RETRIEVING"
    GENERATING = "GENERATING"
    COMPLETE = "COMPLETE"
    ERROR = "ERROR"


Event = State | Evidence | Citation | Sentence | Reply


async def respond(
    question: Question, desk: Desk, history: Sequence[Message] = ()
) -> AsyncGenerator[Event, None]:
    began = time.perf_counter()
    yield State.RECEIVED
    yield State.VALIDATING
    workflow = plan(question)
    asked = stand_alone(question, history)
    yield State.RETRIEVING
    if workflow.mode is Mode.SELECTED_TEXT_ONLY:
        selection = passage_of_selection(question.selection or "", url=question.selection_url)
        findings = await weigh_selection(asked, selection, desk.index)
    else:
        findings = await search(asked, desk.index, around=_AROUND)
    evidence = gather(
        asked, findings.hits, context_tokens=desk.context_tokens, around=findings.around
    )
    outcome: Answer | Refusal | None = gate(asked, workflow, evidence)
    if outcome is not None and findings.failure is not None:
        # Keywords alone found too little. That says nothing about the book: tell what failed.
        raise findings.failure.with_traceback(None)
    evidence = settle(evidence, answered=outcome is None)
    yield evidence
    written, writing = time.perf_counter(), Writing(desk, asked, evidence, history)
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
        marked = mark(asked.text, findings.terms, [sentence.text for sentence in sentences])
        said = tuple(sentences), tuple(cited), writing.writer, writing.disclaimer, marked
        outcome = Answer(*said) if sentences else ungrounded(workflow, evidence)
    yield State.COMPLETE
    yield _settled(
        Reply(
            question,
            outcome,
            writing.evidence,
            _timings(findings, began, written),
            vectors=findings.vectors,
            verdicts=tuple(writing.verdicts),
            writer=desk.writer.name,
            usage=writing.usage,
            fallback=writing.fallback,
        )
    )


def _settled(reply: Reply) -> Reply:
    """The reply with the confidence that fits its outcome, and a warning where it is low."""
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
