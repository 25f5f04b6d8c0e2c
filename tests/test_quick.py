"""The Python door: one call each, on the sample book."""

from pathlib import Path

import pytest

import bythebook
from bythebook.errors import InvalidInput
from bythebook.model import BOOK_DOES_NOT_SAY
from bythebook.serve.contracts.book import Query

_QUESTION = "How do ROS 2 nodes exchange messages?"


def test_respond_is_s0(sample_home: Path) -> None:
    response = bythebook.respond(Query(text=_QUESTION), home=sample_home)
    assert response.answer == "ROS 2 nodes exchange messages over topics. [1]"
    assert [source.section for source in response.sources] == ["Topics, publishers & subscribers"]
    assert response.is_refusal is False
    refused = bythebook.respond("How do I train GPT-4?", home=sample_home)
    assert (refused.answer, refused.is_refusal) == (BOOK_DOES_NOT_SAY, True)
    assert refused.refusal_reason == "low_relevance"


def test_ask_and_semantic_search_are_s1(sample_home: Path) -> None:
    reply = bythebook.ask(_QUESTION, home=sample_home)
    assert reply.outcome.text == "ROS 2 nodes exchange messages over topics. [1]"
    found = bythebook.semantic_search(_QUESTION, top_k=2, home=sample_home)
    assert found.total_count == len(found.results) == 2
    assert found.results[0].score >= found.results[1].score


async def test_they_work_where_a_loop_already_runs(sample_home: Path) -> None:
    assert bythebook.respond(_QUESTION, home=sample_home).sources


@pytest.mark.parametrize("query", ["", "x" * 2001, 7])
def test_what_s0_does_not_allow_is_said_before_a_book_is_opened(query: object) -> None:
    with pytest.raises(InvalidInput):
        bythebook.respond(query, home=Path("nowhere"))  # type: ignore[arg-type]
