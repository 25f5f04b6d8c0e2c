"""Single calls of the Python API, on the sample book."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

import bythebook
from bythebook.errors import InvalidInput, SourceError
from bythebook.refusals import BOOK_DOES_NOT_SAY
from bythebook.testing import FakeEmbedder, ScriptedWriter
from tests.support.samples import small_book

_QUESTION = "How do ROS 2 nodes exchange messages?"


def test_respond_follows_the_query_contract(sample_home: Path) -> None:
    response = bythebook.respond(bythebook.Query(text=_QUESTION), home=sample_home)
    assert response.answer.startswith("ROS 2 nodes exchange messages over topics.")
    assert response.sources[0].section == "Topics, publishers & subscribers"
    assert response.is_refusal is False
    refused = bythebook.respond("How do I train GPT-4?", home=sample_home)
    assert (refused.answer, refused.is_refusal) == (BOOK_DOES_NOT_SAY, True)
    assert refused.refusal_reason == "low_relevance"


def test_ask_and_semantic_search_follow_the_ask_contract(sample_home: Path) -> None:
    reply = bythebook.ask(_QUESTION, home=sample_home)
    assert reply.outcome.text.startswith("ROS 2 nodes exchange messages over topics.")
    found = bythebook.semantic_search(_QUESTION, top_k=2, home=sample_home)
    assert found.total_count == len(found.results) == 2
    assert found.results[0].score >= found.results[1].score


def test_the_threshold_of_ask_is_a_keyword(sample_home: Path) -> None:
    everything = bythebook.semantic_search(_QUESTION, relevance_threshold=0, home=sample_home)
    assert everything.total_count == 5
    for threshold in (0.5, 0.9, 1):
        found = bythebook.semantic_search(
            _QUESTION, relevance_threshold=threshold, home=sample_home
        )
        expected = [each.chunk_id for each in everything.results if each.score >= threshold]
        assert [each.chunk_id for each in found.results] == expected
    strict = bythebook.ask(_QUESTION, relevance_threshold=1, home=sample_home)
    assert strict.outcome.text == BOOK_DOES_NOT_SAY


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_threshold_out_of_range_is_rejected(threshold: float) -> None:
    for call in (bythebook.ask, bythebook.semantic_search):
        with pytest.raises(InvalidInput, match=r"relevance_threshold is .* from 0 to 1"):
            call(_QUESTION, relevance_threshold=threshold, home=Path("nowhere"))


def test_times_of_a_query_are_in_utc() -> None:
    naive = bythebook.Query(text="kite", timestamp=datetime(2025, 12, 15, 10))
    assert naive.timestamp == datetime(2025, 12, 15, 10, tzinfo=UTC)
    for timestamp in (None, datetime.now(UTC)):
        query = bythebook.Query.model_validate({"text": "kite", "timestamp": timestamp})
        assert query.timestamp.tzinfo is not None
    assert bythebook.Response.__module__ == "bythebook.contracts.query"


def test_a_reply_has_a_text_and_citations_also_if_it_is_a_refusal(sample_home: Path) -> None:
    reply = bythebook.ask(_QUESTION, home=sample_home)
    assert reply.answered
    assert str(reply) == reply.text == reply.outcome.text
    assert reply.citations[0].number == 1
    refused = bythebook.ask("How do I train GPT-4?", home=sample_home)
    assert (refused.answered, str(refused), refused.citations) == (False, BOOK_DOES_NOT_SAY, ())


def test_embedder_and_writer_may_be_objects(tmp_path: Path) -> None:
    docs, home, embedder = small_book(tmp_path / "docs"), tmp_path / "home", FakeEmbedder()
    with bythebook.open_book(home, new=True, embedder=embedder) as book:
        book.ingest(docs)
    said = "A kettle boils water at 100 degrees Celsius. [1]"
    writer = ScriptedWriter([said])
    with bythebook.open_book(home, embedder=embedder, writer=writer) as book:
        assert book.ask("At how many degrees does a kettle boil water?").text == said
    assert embedder.calls


async def test_calls_work_where_an_event_loop_runs(sample_home: Path) -> None:
    assert bythebook.respond(_QUESTION, home=sample_home).sources


@pytest.mark.parametrize("query", ["", "x" * 2001, 7])
def test_invalid_query_is_rejected_before_a_book_is_opened(query: object) -> None:
    with pytest.raises(InvalidInput):
        bythebook.respond(query, home=Path("nowhere"))  # type: ignore[arg-type]


def test_ingest_of_a_missing_folder_creates_no_home(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no folder or file 'missing'"):
        bythebook.ingest(tmp_path / "missing", home=tmp_path / "home")
    assert not (tmp_path / "home").exists()
