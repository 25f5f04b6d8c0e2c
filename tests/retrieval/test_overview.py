"""Questions about the book itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.interfaces.store import IndexedPassage
from bythebook.language.english.overview_questions import overview_topic
from bythebook.providers.flat_index import FlatStore
from bythebook.retrieval.overview import find_overview
from bythebook.text.outline import list_contents
from bythebook.types import Passage, Place


def _page(module: str, title: str, sections: dict[str, str], file: str) -> list[Passage]:
    from tests.support.samples import passage

    made = []
    for position, (heading, text) in enumerate(sections.items()):
        place = Place(file, title, f"/{file}", module, title, (heading,) if heading else ())
        one = replace(passage(text, file=file, section=heading or "top"), place=place)
        made.append(replace(one, position=position))
    return made


_BOOK = [
    *_page("Welcome", "Welcome", {"": "This book is about flying.", "Rules": "Be kind."}, "intro"),
    *_page(
        "Module 1: Kites",
        "Flying a kite",
        {"": "Kites need wind.", "Wind": "Wind blows.", "What you will learn": "To fly."},
        "kites",
    ),
    *_page("Module 2: Tea", "Boiling water", {"": "Kettles boil.", "Overview": "Tea."}, "tea"),
    *_page("Gliders", "Gliding", {"": "Gliders have no engine."}, "ch12-00-gliders"),
    *_page("Gliders", "Landing", {"": "Land into the wind."}, "ch12-01-landing"),
]


async def _texts(question: str) -> list[str]:
    contents = list_contents("one", _BOOK)
    empty = np.zeros((0, 0), dtype=np.float32)
    entries = (IndexedPassage(each, None, empty, {}) for each in _BOOK)
    store = FlatStore.of(entries, dimension=0)
    return [hit.passage.text for hit in await find_overview(question, contents, store)]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Summarize module 2", "Kettles boil."),
        ("what is module 1 about?", "Kites need wind."),
        ("What will I learn in this book?", "This book is about flying."),
        ("Give me a quick overview of the chapter on boiling water", "Kettles boil."),
        ("what does the kite chapter cover?", "Kites need wind."),
        ("what is chapter 12 about?", "Gliders have no engine."),  # by its file name
    ],
)
async def test_starts_with_the_introduction_of_the_part(question: str, first: str) -> None:
    assert (await _texts(question))[0] == first


async def test_learning_objectives_come_before_other_sections() -> None:
    assert await _texts("Summarise module 1.") == ["Kites need wind.", "To fly.", "Wind blows."]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What does the book say about wind?", ["Wind blows."]),
        ("what does this textbook explain about What you will learn", ["To fly."]),
        ("What does the book say about dragons?", []),
    ],
)
async def test_heading_asked_about_is_answered_by_its_section(
    question: str, texts: list[str]
) -> None:
    assert await _texts(question) == texts


@pytest.mark.parametrize(
    "question",
    [
        "Summarize module 9",
        "What is the chapter on dragons about?",
        "What is a kite?",
        "What is this all about?",
        "Summarize the plot of Hamlet",
    ],
)
async def test_finds_nothing_for_other_questions_and_unknown_parts(question: str) -> None:
    assert await _texts(question) == []


@given(st.text())
def test_any_text_is_a_question(text: str) -> None:
    topic = overview_topic(text)
    assert topic is None or topic in " ".join(text.split())
