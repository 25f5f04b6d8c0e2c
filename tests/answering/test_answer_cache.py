"""The answer cache: hits, keys and expiry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.answering.answer_cache import AnswerCache
from bythebook.answering.pipeline import Event
from bythebook.book import Book
from bythebook.errors import WriterFailed
from bythebook.ingestion.read_book import read_book
from bythebook.interfaces.models import DraftPiece
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.types import Evidence, Level, Message, Question, Reply, Usage
from bythebook.wiring import extractive
from tests.support.samples import read

FLY = Question("What makes a kite fly?", min_score=0.0, min_answerability=0.0)
SAID = "A kite flies because the wind pushes it upwards. [1]"


class CountingWriter:
    """Writer with constant text and cost, or a configured failure."""

    name = "fake:counting"

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[DraftPiece]:
        del question, evidence, history
        self.calls += 1
        if self.fails:
            raise WriterFailed("The model did not answer.")
        yield SAID
        yield Usage(10, 5, 1, 0.001)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Shop:
    """A book with an answer cache, and the parts that tests control."""

    def __init__(self) -> None:
        self.writer, self.clock = CountingWriter(), Clock()
        self.library = Book(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=MemoryCatalog(),
            threads=MemoryThreads(),
            make_writer=lambda index: self.writer,
            make_fallback=extractive,
            answer_cache=AnswerCache(most=2, clock=self.clock),
        )

    async def ask(self, question: Question) -> list[Event]:
        return [event async for event in self.library.ask(question)]


@pytest.fixture
async def shop(book_folder: Path) -> Shop:
    shop = Shop()
    await shop.library.ingest(read(book_folder))
    return shop


async def test_repeated_question_replays_the_events_without_the_writer(shop: Shop) -> None:
    *first, reply = await shop.ask(FLY)
    *second, again = await shop.ask(FLY)
    assert isinstance(reply, Reply)
    assert isinstance(again, Reply)
    assert first == second
    assert shop.writer.calls == 1
    assert (reply.cached, reply.usage.calls) == (False, 1)
    assert (again.cached, again.usage) == (True, Usage())
    assert again.outcome == reply.outcome
    assert again.asked_at
    assert reply.answered_at
    assert again.asked_at >= reply.answered_at  # each has its own times
    own = {"cached": False, "timings": reply.timings, "usage": reply.usage}
    times = {"asked_at": reply.asked_at, "answered_at": reply.answered_at}
    assert replace(again, **own, **times) == reply


@pytest.mark.parametrize(
    "other",
    [
        replace(FLY, text="What makes a kite fly"),
        replace(FLY, selection="A kite flies because the wind pushes it upwards."),
        replace(FLY, top_k=3),
        replace(FLY, min_score=0.01),
        replace(FLY, min_confidence=Level.LOW),
        replace(FLY, filters={"language": "en"}),
    ],
)
async def test_different_question_is_not_cached(shop: Shop, other: Question) -> None:
    await shop.ask(FLY)
    *_, reply = await shop.ask(other)
    assert isinstance(reply, Reply)
    assert not reply.cached


async def test_question_with_history_is_not_cached(shop: Shop) -> None:
    in_thread = replace(FLY, thread="e7a4a1f2-6a53-4b39-9f0b-1b8a2f1d7f10")
    await shop.ask(FLY)
    await shop.ask(in_thread)  # its first question: from memory, and written down
    assert shop.writer.calls == 1
    thread = await shop.library.threads.read(in_thread.thread or "", owner=None)
    assert thread is not None
    assert len(thread.messages) == 2
    for _ in range(2):
        *_, reply = await shop.ask(in_thread)
        assert isinstance(reply, Reply)
        assert not reply.cached
    assert shop.writer.calls == 3


async def test_new_generation_invalidates_the_cache(shop: Shop, book_folder: Path) -> None:
    await shop.ask(FLY)
    (book_folder / "more.md").write_text("# Swings\n\nA swing goes to and fro.\n")
    await shop.library.ingest(read_book(book_folder))
    await shop.ask(FLY)
    assert shop.writer.calls == 2


async def test_entries_expire_by_age_and_count(shop: Shop) -> None:
    await shop.ask(FLY)
    shop.clock.now = 3599
    await shop.ask(FLY)
    assert shop.writer.calls == 1
    shop.clock.now = 3600
    await shop.ask(FLY)
    assert shop.writer.calls == 2
    for top_k in (1, 2):
        await shop.ask(replace(FLY, top_k=top_k))
    await shop.ask(FLY)
    assert shop.writer.calls == 5


async def test_fallback_answers_are_not_cached(shop: Shop) -> None:
    shop.writer.fails = True
    *_, reply = await shop.ask(FLY)
    assert isinstance(reply, Reply)
    assert reply.fallback
    shop.writer.fails = False
    *_, later = await shop.ask(FLY)
    assert isinstance(later, Reply)
    assert (later.cached, later.fallback) == (False, None)
