"""The sources of every contract are distinct, at most ``top_k``, and at or above the floor."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answering.citations import Citations
from bythebook.contracts import ask as reply_documents
from bythebook.contracts import chat, plain
from bythebook.contracts import query as query_documents
from bythebook.conversations.session import exchange_of
from bythebook.grounding.verifier import Supported
from bythebook.server import examples
from bythebook.types import Answer, Confidence, Evidence, Hit, Level, Question, Reply

_FLOOR, _TOP_K = 0.5, 3
_BASE = examples.EVIDENCE.hits[0]


def _hit(number: int, score: float, *, neighbours: tuple[int, ...] = ()) -> Hit:
    place = replace(_BASE.passage.place, section=(f"Section {number // 2}",))
    passage = replace(
        _BASE.passage,
        id=f"{number:064x}",
        text=f"Sentence one of {number}. Sentence two of {number}.",
        place=place,
        position=number,
        neighbours=tuple(f"{n:064x}" for n in neighbours),
    )
    return replace(_BASE, passage=passage, score=score)


# Three hits at or above the floor; two neighbours of theirs below it.
_HITS = (
    _hit(0, 0.9, neighbours=(1,)),
    _hit(2, 0.8, neighbours=(3,)),
    _hit(4, 0.5),
    _hit(1, 0.2),
    _hit(3, 0.1),
)
_EVIDENCE = Evidence(
    hits=_HITS,
    confidence=Confidence(0.73, 0.5, 0.9, count=3, level=Level.MEDIUM),
    considered=_HITS,
)


def _reply(cited: list[tuple[int, int]]) -> Reply:
    """Cite sentence ``s`` of hit ``h`` for each ``(h, s)``."""
    citations, sentences = Citations(_EVIDENCE), []
    for hit, sentence in cited:
        quote = f"Sentence {('one', 'two')[sentence]} of {_HITS[hit].passage.position}."
        sentences.append(citations.cite(Supported(quote, _HITS[hit], quote))[0])
    answer = Answer(tuple(sentences), citations.numbered, "extractive")
    question = Question("What?", thread=examples.SESSION, top_k=_TOP_K, min_score=_FLOOR)
    return Reply(question, answer, _EVIDENCE, examples.ANSWERED.timings)


@given(
    st.lists(st.tuples(st.integers(0, len(_HITS) - 1), st.integers(0, 1)), min_size=1, max_size=12)
)
def test_sources_are_distinct_within_top_k_and_at_or_above_the_floor(
    cited: list[tuple[int, int]],
) -> None:
    reply = _reply(cited)
    chunks = chat.show(reply).sources
    assert 1 <= len(chunks) <= _TOP_K
    assert len({source.chunk_index for source in chunks}) == len(chunks)
    assert all(source.similarity_score >= _FLOOR for source in chunks)
    for sources in (reply_documents.show(reply).sources, plain.show(reply).sources):
        assert 1 <= len(sources) <= _TOP_K
        assert len({source.section for source in sources}) == len(sources)
    assert all(source.relevance_score >= _FLOOR for source in reply_documents.show(reply).sources)
    assert all(source.score >= _FLOOR for source in plain.show(reply).sources)
    assert 1 <= len({s.section for s in query_documents.show(reply).sources}) <= _TOP_K


def test_every_marker_of_a_chat_answer_has_a_citation() -> None:
    shown = chat.show(_reply([(0, 0), (0, 1), (3, 0), (1, 0)]))
    assert [citation.number for citation in shown.citations] == [1, 2, 3, 4]
    assert [source.chunk_index for source in shown.sources] == [0, 2]
    assert shown.sources[0].chunk_text == "Sentence one of 0."


@given(
    st.lists(st.tuples(st.integers(0, len(_HITS) - 1), st.integers(0, 1)), min_size=1, max_size=12)
)
def test_a_marker_is_the_number_of_its_source(cited: list[tuple[int, int]]) -> None:
    reply = _reply(cited)
    asked, chatted = reply_documents.show(reply), chat.show(reply)
    for text, shown in ((asked.answer, asked), (chatted.response, chatted)):
        markers = [int(number) for number in re.findall(r"\[(\d+)\]", text)]
        assert set(markers) == set(range(1, len(shown.sources) + 1))
        for citation in shown.citations:
            assert shown.sources[citation.source - 1].section == citation.section
        assert [citation.number for citation in shown.citations] == list(
            range(1, len(shown.citations) + 1)
        )
    exchange = exchange_of(reply, now=datetime.now(UTC))
    assert exchange[1].content == chatted.response
