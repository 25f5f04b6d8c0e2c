"""The better interpretation of a follow-up is kept, and its sentences answer the follow-up."""

from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.errors import EmbedderFailed
from bythebook.providers.testing import FakeEmbedder
from bythebook.retrieval.interpretations import search_best
from bythebook.retrieval.question_analysis import analyze
from bythebook.retrieval.search import SearchContext, search
from bythebook.types import Question, VectorState
from tests.retrieval.test_search import index_of

_PAGE = """# Kitchen

## Kettles

A kettle is a pot that boils water. It weighs nine hundred grams.

## Anchors

An anchor holds a ship. It weighs four tonnes and rusts in salty water.
"""
_FOLLOW_UP = Question("How much does it weigh in grams?", context="What is a kettle?")


@pytest.fixture
async def index(tmp_path: Path) -> SearchContext:
    return await index_of(tmp_path, {"kitchen.md": _PAGE})


async def test_the_context_finds_the_passage(index: SearchContext) -> None:
    findings = await search_best([_FOLLOW_UP], index)
    assert findings.hits[0].passage.place.heading == "Kettles"
    assert findings.question.question == _FOLLOW_UP


async def test_sentences_are_compared_with_the_follow_up_itself(index: SearchContext) -> None:
    with_context = (await search(_FOLLOW_UP, index)).hits[0]
    focused = (await search_best([_FOLLOW_UP], index)).hits[0]
    defining, weighing = with_context.unit_cosines
    assert defining > focused.unit_cosines[0]
    assert weighing < focused.unit_cosines[1]
    assert with_context.score == focused.score


async def test_words_of_the_context_count_half(index: SearchContext) -> None:
    terms = (await search_best([_FOLLOW_UP], index)).question.terms
    whole = analyze(_FOLLOW_UP, index.vocabulary).terms
    own = index.vocabulary.ask(_FOLLOW_UP.text)
    assert set(terms) == set(whole) > set(own)
    assert all(terms[term] == whole[term] * (1 if term in own else 0.5) for term in terms)


async def test_a_question_that_is_answered_better_alone_is_searched_alone(
    index: SearchContext,
) -> None:
    alone = Question("what about anchors that rust in salty water?")
    polluted = replace(alone, context="How do I descale the coffee machine of my grandmother?")
    findings = await search_best([polluted, alone], index)
    assert findings.question.question == alone
    assert findings.hits == (await search(alone, index)).hits


async def test_of_two_equal_interpretations_the_first_is_kept(index: SearchContext) -> None:
    again = replace(_FOLLOW_UP, top_k=4)
    findings = await search_best([_FOLLOW_UP, again], index)
    assert findings.question.question == _FOLLOW_UP


async def test_a_book_without_vectors_needs_no_embedder(index: SearchContext) -> None:
    pending = replace(index, embedder=_Failing(), vectors=VectorState.PENDING, marks=None)
    findings = await search_best([_FOLLOW_UP], pending)
    assert findings.hits[0].passage.place.heading == "Kettles"


async def test_a_failure_after_the_search_does_not_lose_its_hits(index: SearchContext) -> None:
    found = await search(_FOLLOW_UP, index)
    failing = replace(index, embedder=_Failing())  # the vector of the whole question is cached
    findings = await search_best([_FOLLOW_UP], failing)
    assert findings.hits == found.hits


class _Failing(FakeEmbedder):
    async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
        raise EmbedderFailed("away", hint="wait")


@pytest.mark.parametrize(("text", "code"), [("And in C++?", True), ("What is a node?", False)])
def test_a_question_without_a_type_has_the_type_of_its_context(
    index: SearchContext, text: str, code: bool
) -> None:
    question = Question(text, context="How do I write a publisher?")
    assert analyze(question, index.vocabulary).type.code is code
