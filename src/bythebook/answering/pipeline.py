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

from bythebook.answering.citations import Citations
from bythebook.answering.gate import gate, gather, settle
from bythebook.answering.generation import AnswerContext, GenerationRun
from bythebook.answering.outcome import outcome_of
from bythebook.answering.routing import WorkflowMode, mode_of
from bythebook.conversations.query_rewriting import interpret, parts_of, sides_of
from bythebook.language.english.overview_questions import asks_about_all
from bythebook.language.terms import term_ids
from bythebook.language.text import words
from bythebook.retrieval.interpretations import search_best
from bythebook.retrieval.search import (
    HITS_OF_PART,
    Findings,
    SearchContext,
    score_selection,
    search_contents,
)
from bythebook.text.selections import passage_of_selection
from bythebook.types import (
    Citation,
    Evidence,
    Message,
    Passage,
    Question,
    Reply,
    Sentence,
    Timings,
)

_NEIGHBOURS_OF = 2  # best hits whose neighbours in the section are added within the token budget


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
    """Answer one question; the last event is the reply."""
    began = time.perf_counter()
    yield State.RECEIVED
    yield State.VALIDATING
    yield State.RETRIEVING
    found = await _retrieve(interpret(question, history), context.index)
    findings = found[0]
    evidence, parts = gather(found, context_tokens=context.context_tokens)
    refusal = gate(findings.question, evidence)
    if refusal is not None and findings.failure is not None:
        # Too few hits by keywords alone do not justify a refusal: report the failure instead.
        raise findings.failure.with_traceback(None)
    evidence = settle(evidence, answered=refusal is None)
    yield evidence

    retrieved = time.perf_counter()
    run = GenerationRun(context, parts, evidence, history)
    citations, sentences = Citations(evidence), list[Sentence]()
    if refusal is None:
        yield State.GENERATING
        async with aclosing(run.sentences()) as verified:
            async for supported in verified:
                if not citations.has_room(supported, top_k=question.top_k):
                    continue  # a writer that searches by itself finds more than top_k passages
                sentence, new = citations.cite(supported)
                for citation in new:
                    yield citation
                sentences.append(sentence)
                yield sentence

    outcome = refusal or outcome_of(parts, run, citations, sentences)
    yield State.COMPLETE
    now = time.perf_counter()
    yield Reply(
        question,
        outcome,
        settle(run.evidence, answered=bool(sentences)),
        Timings(
            query_ms=findings.query_ms,
            search_ms=findings.search_ms,
            generation_ms=(now - retrieved) * 1000,
            total_ms=(now - began) * 1000,
        ),
        vectors=findings.vectors,
        verdicts=tuple(run.verdicts),
        writer=context.writer.name,
        usage=run.usage,
        fallback=run.fallback,
    )


def _states_something(selection: Passage) -> bool:
    """Return whether the selection has two different words, without which there is no statement."""
    return max(len(set(words(selection.text))), len(set(term_ids(selection.text)))) > 1


async def _retrieve(interpretations: Sequence[Question], index: SearchContext) -> list[Findings]:
    """Search for the whole question, and then for each of its parts if there are several."""
    question = interpretations[0]
    if mode_of(question) is WorkflowMode.SELECTED_TEXT_ONLY:
        selection = passage_of_selection(question.selection or "", url=question.selection_url)
        findings = await score_selection(question, selection, index)
        if not _states_something(selection):
            return [replace(findings, hits=())]
        if asks_about_all(question.text):  # it answers, however little its words are like those
            hits = tuple(replace(hit, score=1.0, answers=1.0) for hit in findings.hits)
            return [replace(findings, hits=hits, answerability=1.0, is_overview=True)]
        return [findings]
    if (overview := await search_contents(question, index)) is not None:
        return [overview]
    whole = await search_best(interpretations, index, neighbours_of=_NEIGHBOURS_OF)
    parts = parts_of(whole.question.question)
    sides: Sequence[Question] = ()
    if not parts and whole.is_answerable:
        sides = sides_of(whole.question.question)
    narrow = [replace(each, top_k=min(each.top_k, HITS_OF_PART)) for each in (*parts, *sides)]
    found = [await search_best([part], index, neighbours_of=_NEIGHBOURS_OF) for part in narrow]
    return [whole, *(replace(each, is_side=bool(sides)) for each in found)]
