"""Search for the interpretations of a follow-up and keep the one the book answers best."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from bythebook.errors import EmbedderFailed, StoreFailed
from bythebook.retrieval.search import Findings, SearchContext, search
from bythebook.types import Hit, Question, VectorState

_log = logging.getLogger(__name__)

# Of the answerability: a later interpretation is chosen if it gains more. A question with unneeded
# context loses more than this; a follow-up without its context gains less.
_MARGIN = 0.1
_CONTEXT_WEIGHT = 0.5  # of the context's words, when sentences are chosen from the hits


async def search_best(
    interpretations: Sequence[Question], index: SearchContext, *, neighbours_of: int = 0
) -> Findings:
    """Return the findings of the first interpretation, or of another one that is clearly better.

    The context of a question only finds the passages. Their sentences are compared with the
    question itself: those nearest to the context were the earlier answer.
    """
    found = [await search(each, index, neighbours_of=neighbours_of) for each in interpretations]
    gains = [each.answerability - (_MARGIN if n else 0.0) for n, each in enumerate(found)]
    chosen = replace(
        found[gains.index(max(gains))],
        query_ms=sum(each.query_ms for each in found),
        search_ms=sum(each.search_ms for each in found),
    )
    return await _focus(chosen, index) if chosen.question.question.context else chosen


async def _focus(findings: Findings, index: SearchContext) -> Findings:
    """Weight the words and the sentences by the question without its context."""
    question = findings.question
    own = index.vocabulary.ask(question.question.text)
    terms = {
        term: idf * (1.0 if term in own else _CONTEXT_WEIGHT)
        for term, idf in question.terms.items()
    }
    focused = replace(findings, question=replace(question, terms=terms))
    if findings.vectors is not VectorState.READY:
        return focused
    try:
        cosines = await _cosines(
            question.question.text, (*findings.hits, *findings.neighbours), index
        )
    except (EmbedderFailed, StoreFailed) as error:
        _log.warning("choosing the sentences of a follow-up with its context: %s", error)
        return focused
    hits, neighbours = (
        tuple(
            replace(hit, unit_cosines=cosines.get(hit.passage.id, hit.unit_cosines)) for hit in each
        )
        for each in (findings.hits, findings.neighbours)
    )
    return replace(focused, hits=hits, neighbours=neighbours)


async def _cosines(
    text: str, hits: Sequence[Hit], index: SearchContext
) -> dict[str, tuple[float, ...]]:
    """Return the cosines between a text and the units of each hit."""
    vector = await index.question_vectors.of(text, index.embedder)
    entries = await index.store.fetch([hit.passage.id for hit in hits])
    return {
        entry.passage.id: tuple((entry.unit_vectors @ vector).tolist())
        for entry in entries
        if entry.vector is not None
    }
