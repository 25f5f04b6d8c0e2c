"""A question's thread is loaded and stored; a failing database does not fail the answer."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any

import pytest

from bythebook.contracts import chat
from bythebook.conversations.session import now, open_conversation
from bythebook.errors import DatabaseFailed, NotFound
from bythebook.interfaces.conversations import Asker, Thread
from bythebook.interfaces.store import Generation
from bythebook.providers.testing import (
    MemoryCatalog,
    MemoryThreads,
)
from bythebook.testing import fake_book
from bythebook.types import Answer, Message, Question, Role

_TEXT = "At how many degrees does a kettle boil water?"


class FragileThreads(MemoryThreads):
    """Fails to read, to write, or not at all."""

    broken: frozenset[str] = frozenset()

    async def read(self, *args: Any, **kwargs: Any) -> Thread | None:
        self._check("read")
        return await super().read(*args, **kwargs)

    async def append(self, *args: Any, **kwargs: Any) -> Thread:
        self._check("append")
        return await super().append(*args, **kwargs)

    async def list(self, *args: Any, **kwargs: Any) -> Any:
        self._check("read")
        return await super().list(*args, **kwargs)

    def _check(self, what: str) -> None:
        if what in self.broken:
            raise DatabaseFailed("The database did not answer.")


class HangingCatalog(MemoryCatalog):
    """Answers when it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.released.set()

    def current(self) -> Generation | None:
        self.released.wait()
        return super().current()


@pytest.mark.parametrize("broken", [{"read"}, {"append"}, {"read", "append"}])
async def test_a_reply_reports_that_it_was_not_persisted(broken: set[str]) -> None:
    threads = FragileThreads()
    library = await fake_book(threads=threads)
    question = Question(_TEXT, thread=str(uuid.uuid4()))
    assert (await library.reply(question)).persisted
    threads.broken = frozenset(broken)
    reply = await library.reply(question)
    assert isinstance(reply.outcome, Answer)
    assert not reply.persisted
    assert (await library.reply(Question(_TEXT))).persisted  # there was nothing to keep
    said = "ok" if broken == {"append"} else "The database did not answer."
    assert (await library.health())["database"] == said
    threads.broken = frozenset()
    assert (await library.reply(question)).persisted


async def test_an_open_book_answers_while_the_catalog_hangs() -> None:
    catalog = HangingCatalog()
    library = await fake_book(catalog=catalog, deadline_s=2)
    await library.context()
    catalog.released.clear()
    replies = await asyncio.gather(*(library.reply(Question(_TEXT)) for _ in range(20)))
    assert all(isinstance(reply.outcome, Answer) for reply in replies)
    catalog.released.set()


async def test_opening_a_book_fails_while_the_catalog_hangs() -> None:
    catalog = HangingCatalog()
    library = await fake_book(catalog=catalog, deadline_s=0.001)
    catalog.released.clear()
    with pytest.raises(DatabaseFailed, match="in time"):
        await library.reply(Question(_TEXT))
    catalog.released.set()


async def test_another_owners_thread_is_not_found() -> None:
    threads = MemoryThreads()
    library = await fake_book(threads=threads)
    question = Question(_TEXT, thread=str(uuid.uuid4()))
    await library.reply(question, asker=Asker(owner="mine"))
    for stranger in (Asker(owner="yours"), Asker(), None):
        with pytest.raises(NotFound):
            await library.reply(question, asker=stranger)
    assert question.thread is not None
    thread = await threads.read(question.thread, owner="mine")
    assert thread is not None
    assert len(thread.messages) == 2


async def test_a_follow_up_is_resolved_but_stored_as_asked() -> None:
    threads = MemoryThreads()
    library = await fake_book(threads=threads)
    name = str(uuid.uuid4())
    await library.reply(Question("What is a kettle?", thread=name))
    reply = await library.reply(Question("How does it switch itself off?", thread=name))
    assert "bimetal" in reply.outcome.text
    thread = await threads.read(name, owner=None)
    assert thread is not None
    assert thread.messages[2].content == "How does it switch itself off?"


async def test_a_thread_gets_a_summary_with_the_fifth_exchange() -> None:
    threads = MemoryThreads()
    library = await fake_book(threads=threads)
    thread_id = str(uuid.uuid4())
    for count in range(1, 6):
        await library.reply(Question("What is a kettle?", thread=thread_id))
        thread = await threads.read(thread_id, owner=None)
        assert thread is not None
        assert (thread.topic_summary is not None) is (count == 5)


async def test_a_repeated_request_is_not_part_of_its_own_history() -> None:
    """Else what it follows on from would be its own first answer."""
    threads, name = MemoryThreads(), str(uuid.uuid4())
    for text, request in ((_TEXT, None), ("And then?", "one")):
        said = [
            Message(Role.USER, text, now(), request=request),
            Message(Role.ASSISTANT, f"About {text}", now()),
        ]
        thread = await threads.append(name, said, owner="mine")
    question = Question("And then?", thread=name)
    again = await open_conversation(threads, question, Asker("mine", request="one"))
    other = await open_conversation(threads, question, Asker("mine", request="two"))
    assert again.history == thread.messages[:2]
    assert other.history == thread.messages


async def test_messages_are_stored_with_their_times_and_the_disclaimer() -> None:
    threads = MemoryThreads()
    library = await fake_book(threads=threads)
    weak = Question(
        "Is a kettle a good present?",
        min_score=0.0,
        min_answerability=0.0,
        top_k=1,
        thread=str(uuid.uuid4()),
    )
    before = now()
    reply = await library.reply(weak)
    thread = await threads.read(weak.thread or "", owner=None)
    assert thread is not None
    question, answer = thread.messages
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.disclaimer
    assert answer.content == reply.outcome.full_text
    assert answer.content.endswith(reply.outcome.disclaimer)
    assert (question.timestamp, answer.timestamp) == (reply.asked_at, reply.answered_at)
    assert before <= question.timestamp < answer.timestamp <= now()
    assert chat.show(reply).timestamp == answer.timestamp == thread.updated_at
