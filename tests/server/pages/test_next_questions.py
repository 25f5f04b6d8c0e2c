"""Questions to ask after an answer: about other sections of the cited pages."""

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.errors import StoreFailed
from bythebook.server.pages.suggest import candidates, next_candidates, unique_headings
from bythebook.text.outline import OutlineEntry, OutlineSection
from bythebook.types import Place
from tests.server.asgi_client import events_of


def _page(name: str, *headings: str, language: str = "en") -> OutlineEntry:
    sections = tuple(OutlineSection((each,), f"/{name}#{each}") for each in headings)
    return OutlineEntry(f"/{name}", name, "Module", name, language, sections, 1, 100)


def _place(name: str, heading: str) -> Place:
    return Place(f"{name}.md", name, f"/{name}#{heading}", "Module", name, (heading,))


_PAGES = [
    _page("kites", "Wind", "String length", "Sails", "Exercises", "A–C"),
    _page("tea", "Why does water boil?", "Wind", "DDS and tea"),
    _page("ur", "ہوا", language="ur"),
]


def _next(*cited: tuple[str, str]) -> list[str]:
    places = [_place(*each) for each in cited]
    return list(next_candidates(_PAGES, places, unique_headings(_PAGES)))


def test_sections_after_the_cited_one_come_first_then_those_of_the_next_page() -> None:
    assert _next(("kites", "String length")) == [
        "What does the book say about sails?",
        "Why does water boil?",
        "What does the book say about DDS and tea?",
    ]


def test_cited_sections_and_pages_of_other_languages_are_left_out() -> None:
    assert _next(("tea", "DDS and tea"), ("kites", "Sails")) == [
        "Why does water boil?",
        "What does the book say about string length?",
    ]
    assert _next(("elsewhere", "Wind")) == []


def test_headings_of_exercises_and_ranges_of_letters_are_not_suggested() -> None:
    assert list(candidates(_PAGES, "en")) == [
        "Why does water boil?",
        "What does the book say about string length?",
        "What does the book say about sails?",
        "What does the book say about DDS and tea?",
    ]


def _done(client: TestClient, message: str) -> dict[str, object]:
    body = {"message": message, "whole_evidence": True}
    events = events_of(client.post("/chat/stream", json=body).text)
    return events[-1].body


def test_done_event_has_questions_that_are_answered(client: TestClient) -> None:
    told = _done(client, "At how many degrees does a kettle boil water?")
    questions = told["next_questions"]
    assert isinstance(questions, list)
    assert questions[0] == "What does the book say about kites?"
    assert len(questions) == 3
    for question in questions:
        again = _done(client, question)
        assert again["should_answer"]
        assert question not in str(again["next_questions"])


def test_refusal_has_no_next_questions(client: TestClient) -> None:
    assert _done(client, "Who is the president of France?")["next_questions"] == []


def test_answer_does_not_need_the_contents(
    client: TestClient, library: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise StoreFailed("The database is away.")

    monkeypatch.setattr(library, "contents", fail)
    told = _done(client, "At how many degrees does a kettle boil water?")
    assert (told["should_answer"], told["next_questions"]) == (True, [])
