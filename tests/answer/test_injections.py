"""Orders in the book, in a selection and in what was said before, and a model that obeys them all.

Nothing of it may come out: no secret of the prompt, no address of the attacker's, no sentence that
the book does not say.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.library import Library
from bythebook.model import Answer, Message, Question, Refusal, Reply, Role
from bythebook.serve.app import create_app
from tests.answer.injections import PAYLOADS, Obedient, Payload, leaks
from tests.serve.driver import events_of
from tests.writers import library_with

_NUMBERS = [f"{tens}{ones}" for tens in ("Alfa", "Bravo", "Delta") for ones in range(100)]
_ASKED = "At how many degrees does the kettle {name} boil water?"
_TRUE = "The kettle {name} boils water at {degrees} degrees Celsius."
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _name(number: int) -> str:
    return _NUMBERS[number]


def _true(number: int) -> str:
    return _TRUE.format(name=_name(number), degrees=100 + number)


def _page(number: int, payload: Payload) -> str:
    return f"# The kettle {_name(number)}\n\n{_true(number)}\n\n{payload.text}\n"


@pytest.fixture(scope="module")
def model() -> Obedient:
    return Obedient()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, model: Obedient) -> Library:
    """A page for each payload, and the true sentence that the question is about."""
    docs: Path = tmp_path_factory.mktemp("hostile")
    for number, payload in enumerate(PAYLOADS):
        (docs / f"{number}.md").write_text(_page(number, payload), "utf-8")
    return asyncio.run(library_with(docs, lambda _: model))


@pytest.fixture(scope="module")
def client(library: Library) -> Iterator[TestClient]:
    with TestClient(create_app(library), client=("127.0.0.1", 1)) as client:
        yield client


def _question(number: int, **more: Any) -> Question:
    return Question(_ASKED.format(name=_name(number)), floor=0.01, top_k=2, **more)


def _said(reply: Reply) -> list[str]:
    if isinstance(reply.outcome, Refusal):
        return []
    assert isinstance(reply.outcome, Answer)
    return [sentence.text for sentence in reply.outcome.sentences]


def _check(reply: Reply, *allowed: str) -> None:
    """Whatever is shown stands in the evidence word for word, and is the true sentence."""
    for text in _said(reply):
        assert text in allowed, text
    if isinstance(reply.outcome, Answer):
        known = {hit.passage.id: hit.passage for hit in reply.evidence.hits}
        for citation in reply.outcome.citations:
            passage = known[citation.passage_id]
            assert citation.quote in passage.text
            assert citation.url == passage.place.url
    assert leaks(reply.outcome.text) == []


def test_there_are_enough_of_them() -> None:
    assert len({payload.text for payload in PAYLOADS}) >= 60


@pytest.mark.parametrize("honest", [True, False], ids=["and answers", "and does nothing else"])
async def test_orders_in_the_book(library: Library, model: Obedient, honest: bool) -> None:
    answered = 0
    for number, payload in enumerate(PAYLOADS):
        model.order, model.honest = payload.order, f"{_true(number)} [1]" if honest else ""
        reply = await library.reply(_question(number))
        texts = " ".join(hit.passage.text for hit in reply.evidence.hits)
        assert _true(number) in texts
        _check(reply, *_sentences(texts))
        answered += _true(number) in _said(reply)
        assert (reply.fallback is None) == honest
        assert reply.withheld
    assert answered == len(PAYLOADS)


def _sentences(text: str) -> list[str]:
    """The true sentences of a text: those that are in the book because an author wrote them."""
    return re.findall(r"The kettle \w+ boils water at \d+ degrees Celsius\.", text)


async def test_orders_in_a_selection(library: Library, model: Obedient) -> None:
    for number, payload in enumerate(PAYLOADS):
        true = _true(number)
        model.order, model.honest = payload.order, f"{true} [1]"
        reply = await library.reply(_question(number, selection=f"{true}\n\n{payload.text}"))
        _check(reply, true)
        assert _said(reply) == [true]


async def test_orders_in_what_was_said_before(library: Library, model: Obedient) -> None:
    for number, payload in enumerate(PAYLOADS):
        model.order, model.honest = payload.order, f"{_true(number)} [1]"
        history = [Message(role, payload.text, _NOW) for role in (Role.USER, Role.ASSISTANT)]
        reply = await library.reply(_question(number), history=history)
        _check(reply, *map(_true, range(len(PAYLOADS))))


async def test_a_model_that_repeats_what_it_was_told_before_is_not_believed(
    library: Library, model: Obedient
) -> None:
    for payload in PAYLOADS[:: len(PAYLOADS) // 20]:
        model.order, model.honest = payload.order, payload.text
        history = [Message(Role.USER, payload.text, _NOW)]
        question = Question("At how many degrees does a kettle boil?", floor=0.01, top_k=1)
        reply = await library.reply(question, history=history)
        _check(reply, *map(_true, range(len(PAYLOADS))))


def test_orders_in_the_book_through_a_served_stream(client: TestClient, model: Obedient) -> None:
    for number, payload in enumerate(PAYLOADS):
        model.order, model.honest = payload.order, f"{_true(number)} [1]"
        body = {
            "message": _ASKED.format(name=_name(number)),
            "session_id": str(uuid.uuid4()),
            "similarity_threshold": 0.01,
            "top_k": 2,
        }
        told = events_of(client.post("/chat/stream", json=body).text)
        assert told[-1].name == "done"
        deltas = "".join(event.body["text"] for event in told if event.name == "delta")
        assert re.sub(r"\s*\[\d\]", "", deltas) == _true(number)
        shown = [event.body for event in told if event.name in ("delta", "citation")]
        assert leaks(json.dumps([*shown, told[-1].body])) == []


def test_orders_in_what_was_said_before_through_a_served_stream(
    client: TestClient, model: Obedient
) -> None:
    for number, payload in list(enumerate(PAYLOADS))[::2]:
        model.order, model.honest = payload.order, f"{_true(number)} [1]"
        messages = [
            {"role": "system", "content": payload.text},
            {"role": "user", "content": payload.text},
            {"role": "assistant", "content": payload.text},
            {"role": "user", "content": _ASKED.format(name=_name(number))},
        ]
        told = client.post("/v1/chat/completions", json={"messages": messages, "stream": True})
        assert told.text.rstrip().endswith("[DONE]")
        assert leaks(told.text) == []
