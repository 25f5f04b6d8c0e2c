"""Asking on fakes through the real pipeline, and grading against the catalog and gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.book import Book
from bythebook.errors import InvalidInput
from bythebook.evaluation.grade import Case, Places, grade, holds, overlap, words_of
from bythebook.evaluation.questions import Row, Section
from bythebook.evaluation.run import Without, ask_all, recheck
from bythebook.interfaces.store import Candidate
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import Answer, AnswerSpan, Question, Reply
from tests.support.samples import read

_KETTLE = Row(
    id="kettle",
    question="At how many degrees Celsius does a kettle boil water?",
    kind="answerable",
    answerable=True,
    answers=("100 degrees",),
    file="docs/intro.md",
    heading="Kettles",
)
_OFF_BOOK = Row("gpt", "Who invented quantum chromodynamics?", "off_book", False)


class Desk:
    """A small book on fakes, and its catalog."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.library = Book(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=self.catalog,
            threads=MemoryThreads(),
        )

    async def ask(self, *rows: Row, **limits: float) -> list[Case]:
        asked = [(row, Question(row.question, row.selection, **limits)) for row in rows]  # type: ignore[arg-type]
        return await ask_all(asked, self.library, self.catalog.passages())


@pytest.fixture
async def context(book_folder: Path) -> Desk:
    context = Desk()
    await context.library.ingest(read(book_folder))
    return context


Told = tuple[Places, Reply, Answer]


@pytest.fixture
async def told(context: Desk) -> Told:
    """The passages of the book, its reply to a question, and the answer in it."""
    reply = await context.library.reply(Question(_KETTLE.question))
    assert isinstance(reply.outcome, Answer)
    return Places(context.catalog.passages()), reply, reply.outcome


async def test_an_answer_is_graded_by_text_and_location(context: Desk) -> None:
    kettle, other = await context.ask(_KETTLE, _OFF_BOOK)
    assert kettle.answered
    assert (kettle.right, kettle.gold, kettle.page, kettle.section, kettle.rank) == (
        *(True, True, True, True),
        1,
    )
    assert all(kettle.quoted)
    assert all(kettle.linked)
    assert all(kettle.supported)
    assert kettle.timings.total_ms > 0
    assert not other.answered
    assert other.refusal == "low_relevance"
    assert other.right is not True


async def test_answers_below_the_minimum_score_are_graded_too(context: Desk) -> None:
    (case,) = await context.ask(_KETTLE, min_score=1.0)
    assert not case.answered
    assert case.right is True
    assert "100 degrees" in case.text
    assert (case.gold, case.quoted) == (None, ())  # nothing was shown


async def test_a_held_out_section_is_hidden_from_the_search(context: Desk) -> None:
    without = replace(
        _KETTLE, answerable=False, answers=(), held_out=Section("intro.md", ("Kettles",))
    )
    whole, held_out = await context.ask(_KETTLE, without)
    assert whole.answered
    assert "Kettles" not in (held_out.best or "")
    assert "100 degrees" not in held_out.text
    assert held_out.confidence < whole.confidence


async def test_an_unknown_held_out_section_is_an_error(context: Desk) -> None:
    stale = replace(_OFF_BOOK, held_out=Section("intro.md", ("Balloons",)))
    with pytest.raises(InvalidInput, match=r"gpt.*--make"):
        await context.ask(stale)


async def test_a_selection_is_graded_on_the_selection(context: Desk) -> None:
    selection = "A kite flies because the wind pushes it upwards."
    row = Row("s", "Why does a kite fly?", "selected", True, ("the wind",), selection=selection)
    (case,) = await context.ask(row, min_score=0.0, min_answerability=0.0)
    assert case.answered
    assert case.gold
    assert all(case.quoted)
    assert case.linked == ()
    assert (case.placed, case.page) == (False, None)


async def test_a_false_citation_is_detected(told: Told) -> None:
    book, reply, shown = told
    false = [
        replace(citation, quote="Kettles fly.", url=citation.url + "-x")
        for citation in shown.citations
    ]
    sentences = [replace(s, text="A kettle flies at 900 degrees.") for s in shown.sentences]
    outcome = replace(shown, citations=tuple(false), sentences=tuple(sentences))
    lying = replace(reply, outcome=outcome)
    supported = await recheck(outcome, _KETTLE, book)
    case = grade(_KETTLE, lying, book, supported=supported)
    assert not any(case.quoted)
    assert not any(case.linked)
    assert case.supported
    assert not any(case.supported)
    assert case.right is False


async def test_a_quote_of_another_sentence_is_detected(told: Told) -> None:
    book, reply, shown = told
    right = grade(_KETTLE, reply, book)
    assert right.self_cited
    assert all(right.self_cited)
    other = "It switches itself off by means of a bimetal strip."
    first = replace(shown.sentences[0], closes=True)
    citations = tuple(replace(citation, quote=other) for citation in shown.citations)
    outcome = replace(shown, sentences=(first,), citations=citations)
    wrong = replace(reply, outcome=outcome)
    case = grade(_KETTLE, wrong, book)
    assert all(case.quoted)  # it does stand in the book
    assert case.self_cited == (False,)
    by_model = replace(wrong, outcome=replace(outcome, writer="model"))
    assert grade(_KETTLE, by_model, book).self_cited == (False,)
    paraphrase = replace(first, text="Water boils in it.")
    own = replace(by_model, outcome=replace(outcome, writer="model", sentences=(paraphrase,)))
    assert grade(_KETTLE, own, book).self_cited == ()


async def test_rows_of_a_table_are_counted_one_by_one(told: Told) -> None:
    book, reply, shown = told
    table = "| cloth | weight |\n|---|---|\n| nylon | 40 grams |\n| paper | 60 grams |"
    citation = replace(shown.citations[0], quote="nylon | 40 grams")
    sentence = replace(shown.sentences[0], text=table, citations=(1,), closes=True)
    outcome = replace(shown, sentences=(sentence,), citations=(citation,))
    half = replace(reply, outcome=outcome)
    assert grade(_KETTLE, half, book).self_cited == (False, True)


async def test_a_text_fragment_does_not_make_a_link_wrong(told: Told) -> None:
    book, reply, shown = told
    deeper = [replace(c, url=f"{c.url}:~:text=A%20kettle") for c in shown.citations]
    fragment = replace(reply, outcome=replace(shown, citations=tuple(deeper)))
    assert all(grade(_KETTLE, fragment, book).linked)


async def test_the_answer_span_comes_from_the_reply(told: Told) -> None:
    book, reply, shown = told
    start = shown.sentences[0].text.index("100 degrees")
    mark = AnswerSpan(0, start, start + len("100 degrees"))
    marked = replace(reply, outcome=replace(shown, mark=mark))
    assert grade(_KETTLE, marked, book).marked == "100 degrees"
    bare = replace(reply, outcome=replace(shown, mark=None))
    assert grade(_KETTLE, bare, book).marked is None


async def test_a_file_may_have_more_parent_folders_but_not_fewer(context: Desk) -> None:
    book = Places(context.catalog.passages())
    assert book.whereabouts(_KETTLE) is not None
    assert book.whereabouts(replace(_KETTLE, file="site/docs/intro.md")) is not None
    assert book.whereabouts(replace(_KETTLE, file="docs/my-intro.md")) is None
    assert book.whereabouts(replace(_KETTLE, heading="Balloons")) is None


class _Listed:
    """A store that only knows an order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._found = [Candidate(name, name, 0.0, 0.0, {}) for name in names]

    async def find(self, *_: object, limit: int, **__: object) -> list[Candidate]:
        return self._found[:limit]

    async def count(self) -> int:
        return len(self._found)


async def test_hidden_passages_are_replaced_by_the_next_best() -> None:
    store = Without(_Listed(list("abcdef")), frozenset("ac"))  # type: ignore[arg-type]
    found = await store.find(None, {}, limit=3, filters={})
    assert [each.passage_id for each in found] == ["b", "d", "e"]
    assert await store.count() == 4


# --- words ---------------------------------------------------------------------------------------


def test_case_punctuation_and_articles_do_not_count() -> None:
    assert words_of("The wind, a friend of “the” Kite!") == ["wind", "friend", "of", "kite"]


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("It lasts until May 2029, then ends.", "May 2029", True),
        ("It runs at the several kilohertz.", "several kilohertz", True),
        ("A part of the whole.", "art", False),  # whole words only
        ("Twelve weeks", "twelve  WEEKS.", True),
        ("风筝在春天飞得最高。", "春天", True),
        ("written in C++ today", "++", True),  # nothing but punctuation: as it stands
        ("written in Rust", "++", False),
        ("anything", "", False),
    ],
)
def test_an_answer_is_found_verbatim(text: str, answer: str, expected: bool) -> None:
    assert holds(text, ["never there at all", answer]) is expected


def test_overlap_is_the_best_f1_over_the_answers() -> None:
    # {twelve, weeks} against {twelve, long, weeks}: precision 1, recall 2/3
    assert overlap("twelve weeks", ["twelve long weeks"]) == pytest.approx(0.8)
    assert overlap("twelve weeks", ["a year", "twelve weeks"]) == 1
    assert overlap("twelve weeks", ["a year"]) == 0
    assert overlap("twelve weeks", []) == 0


@given(st.text(), st.text())
def test_overlap_is_symmetric_and_a_share(one: str, other: str) -> None:
    assert overlap(one, [other]) == pytest.approx(overlap(other, [one]))
    assert 0 <= overlap(one, [other]) <= 1
    assert overlap(one, [one]) == 1


@given(st.text(), st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), st.text())
def test_whole_words_are_found(before: str, answer: str, after: str) -> None:
    assert holds(f"{before} {answer} {after}", [answer])
