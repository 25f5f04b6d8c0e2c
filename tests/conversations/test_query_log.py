"""The query log delays no answer and contains none."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from bythebook.conversations.query_log import LoggedRequest, LogQueue
from bythebook.errors import DatabaseFailed, EmbedderFailed
from bythebook.interfaces.conversations import Asker, LoggedQuery
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.query_log import SqlQueryLog
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryQueryLog,
)
from bythebook.testing import fake_book
from bythebook.types import Answer, Question

_QUESTION = Question("At how many degrees does a kettle boil water?")


class FragileLog(MemoryQueryLog):
    broken = True

    async def record(self, queries: Sequence[LoggedQuery]) -> None:
        if self.broken:
            raise DatabaseFailed("The database did not answer.")
        await super().record(queries)


def _put(queue: LogQueue, count: int = 1, **asker: str) -> None:
    for _ in range(count):
        LoggedRequest(_QUESTION, Asker(**asker), mode="standard_rag", log=queue).end(None)


async def test_rows_are_retried_until_the_database_answers_again() -> None:
    log = FragileLog()
    queue = LogQueue(log)
    _put(queue, 250)
    await queue.flush()
    assert (queue.waiting, queue.dropped, len(log.queries)) == (250, 0, 0)
    log.broken = False
    _put(queue)
    async with asyncio.timeout(30):
        while queue.waiting:  # noqa: ASYNC110 - the queue tells nobody
            await asyncio.sleep(0.001)
    assert (queue.waiting, queue.dropped, len(log.queries)) == (0, 0, 251)


async def test_rows_beyond_the_capacity_are_dropped_and_counted() -> None:
    log = FragileLog()
    queue = LogQueue(log, capacity=10)
    _put(queue, 15)
    assert (queue.waiting, queue.dropped) == (10, 5)
    await queue.close()
    assert (queue.waiting, queue.dropped, len(log.queries)) == (0, 15, 0)


async def test_close_writes_the_queued_rows() -> None:
    log = MemoryQueryLog()
    queue = LogQueue(log)
    _put(queue, 3)
    await queue.close()
    assert len(log.queries) == 3


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("203.0.113.77", "203.0.113.0"),
        ("::ffff:203.0.113.77", "203.0.113.0"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
        ("not an address", None),
    ],
)
async def test_only_the_network_of_an_ip_address_is_logged(address: str, kept: str | None) -> None:
    log = MemoryQueryLog()
    queue = LogQueue(log, with_text=False)
    _put(queue, address=address, session="not a uuid")
    await queue.close()
    (row,) = log.queries.values()
    assert (row.network, row.session, row.text) == (kept, None, "")


class MovingEmbedder(FakeEmbedder):
    broken = False

    async def embed(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
        if self.broken:
            raise EmbedderFailed("The embedder did not answer.")
        return await super().embed(*args, **kwargs)  # type: ignore[arg-type]


async def test_each_question_of_an_asker_is_logged_as_one_row() -> None:
    log, embedder = MemoryQueryLog(), MovingEmbedder()
    library = await fake_book(log=LogQueue(log), embedder=embedder)
    session = str(uuid.uuid4())
    asker = Asker(session=session, address="203.0.113.77")
    selected = Question("When does it switch off?", selection="It switches itself off at 90.")
    await library.reply(_QUESTION)  # nobody's: an evaluation, a script
    await library.reply(_QUESTION, asker=asker)
    await library.reply(Question("Who won the chess match in 1972?"), asker=asker)
    await library.reply(selected, asker=asker)
    embedder.broken = True
    with pytest.raises(EmbedderFailed):
        await library.reply(Question("What was never asked before?"), asker=asker)
    await library.close()
    rows = list(log.queries.values())
    assert [row.status for row in rows][:2] == ["success", "refused"]
    assert [row.status for row in rows][3:] == ["error"]
    assert [row.mode for row in rows] == [
        *("standard_rag", "standard_rag", "selected_text_only", "standard_rag"),
    ]
    assert [row.selection_length for row in rows] == [None, None, 29, None]
    assert rows[1].refusal in ("low_relevance", "empty_retrieval")
    assert {row.session for row in rows} == {session}
    assert rows[0].best_score is not None
    assert rows[2].best_score == 1.0


async def test_answers_passages_and_selections_are_never_logged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    engine = open_database(None, home)
    log = LogQueue(SqlQueryLog(engine, deadline_s=60))
    library = await fake_book(log=log, embedder=FakeEmbedder())
    asker = Asker(owner="owner-canary", session=str(uuid.uuid4()), address="198.51.100.234")
    reply = await library.reply(_QUESTION, asker=asker)
    selected = Question("Which bird?", selection="The selection-canary is a bird of passage.")
    await library.reply(selected, asker=asker)
    await library.close()
    assert isinstance(reply.outcome, Answer)
    stored = b"".join(path.read_bytes() for path in home.glob("bythebook.db*"))
    assert _QUESTION.text.encode() in stored
    for secret in (
        reply.outcome.sentences[0].text,
        reply.evidence.hits[0].passage.text[:40],
        *("selection-canary", "owner-canary", "198.51.100.234"),
    ):
        assert secret.encode() not in stored


async def test_citations_of_a_stored_answer_are_read_back_unchanged(tmp_path: Path) -> None:
    threads = SqlThreads(open_database(None, tmp_path / "home"), deadline_s=60)
    library = await fake_book(threads=threads)
    name = str(uuid.uuid4())
    question = Question(_QUESTION.text, thread=name)
    reply = await library.reply(question, asker=Asker(owner="key"))
    thread = await threads.read(name, owner="key")
    assert thread is not None
    assert reply.persisted
    assert isinstance(reply.outcome, Answer)
    assert reply.outcome.citations
    assert thread.messages[1].citations == reply.outcome.citations
    await library.close()


async def test_only_the_start_of_a_question_is_kept_as_valid_text() -> None:
    log = MemoryQueryLog()
    queue = LogQueue(log)
    question = Question("kite \ud800\0 " + "x" * 120_000)
    LoggedRequest(question, Asker(), mode="standard_rag", log=queue).end(None)
    await queue.flush()
    [row] = log.queries.values()
    assert len(row.text) == 2000
    assert row.text.startswith("kite \ufffd\ufffd x")


async def test_the_queue_knows_whether_the_last_write_failed() -> None:
    log = FragileLog()
    queue = LogQueue(log)
    _put(queue)
    await queue.flush()
    assert queue.failure is not None
    log.broken = False
    _put(queue)
    await queue.flush()
    assert queue.failure is None
