"""Summaries of conversations."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bythebook.conversations.summary import summarise
from bythebook.types import Citation, Message, Place, Role

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _exchange(question: str, heading: str | None = None) -> list[Message]:
    place = Place("a.md", "Title", "/a", "m", "c", (heading or "",))
    cited = (Citation(1, "f" * 64, place, "quote", "/a", "/a", 0.9),) if heading else ()
    return [
        Message(Role.USER, question, _NOW),
        Message(Role.ASSISTANT, "So. [1]", _NOW, 0.9, cited),
    ]


def _talk(*exchanges: tuple[str, str | None]) -> list[Message]:
    return [message for exchange in exchanges for message in _exchange(*exchange)]


def test_cited_headings_come_before_terms_of_the_questions() -> None:
    talk = _talk(
        ("What is a kettle?", "Kettles"),
        ("How does a kite fly?", "Kites"),
        ("Does a kite need wind?", "Kites"),
        ("Who won the chess match?", None),
        ("And the chess cup?", None),
    )
    assert summarise(talk) == "Kites; Kettles; chess; fly; need; wind; won"


def test_a_short_conversation_has_no_summary() -> None:
    assert summarise(_talk(*[("What is a kite?", "Kites")] * 4)) is None
    assert summarise(_talk(*[("Why?", None)] * 5)) is None


@given(st.lists(st.tuples(st.text(max_size=300), st.none() | st.text(max_size=300)), max_size=9))
def test_a_summary_is_short_and_deterministic(exchanges: list[tuple[str, str | None]]) -> None:
    summary = summarise(_talk(*exchanges))
    assert summary is None or 0 < len(summary) <= 200
    assert summary == summarise(_talk(*exchanges))
