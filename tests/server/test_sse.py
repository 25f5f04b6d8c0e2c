"""Streams send every event once, in order, end with one last event and leave no task behind."""

from __future__ import annotations

import asyncio
import gc
import re
import tempfile
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bythebook.answering.generation import AnswerContext
from bythebook.answering.pipeline import State, respond
from bythebook.book import Book
from bythebook.config.settings import Settings
from bythebook.contracts.chat import ChatResponse, ConfidenceMetrics
from bythebook.contracts.errors import Call
from bythebook.errors import (
    BookError,
    EmbedderFailed,
    InvalidInput,
    NotFound,
    ServiceError,
    Stopping,
    WriterFailed,
)
from bythebook.ingestion.read_book import ParsedBook
from bythebook.interfaces.models import Writer
from bythebook.providers.testing import ScriptedWriter
from bythebook.refusals import BOOK_DOES_NOT_SAY, DISCLAIMER
from bythebook.server.app import create_app
from bythebook.server.contracts.chat.stream import (
    STATES,
    ChatDeltaEvent,
    stream_events,
)
from bythebook.server.sse import Events, NamedEvent, Streams
from bythebook.types import Evidence, Level, Message, Question
from tests.server.asgi_client import Event, events_of, fetch, open_exchange
from tests.server.conftest import fakes, small_library
from tests.support.samples import read, small_book

_QUESTION = "At how many degrees does a kettle boil water?"
_ANSWER = "A kettle boils water at 100 degrees Celsius."


class Slow:
    """Writes one sentence, waits until it may go on, and writes another."""

    name = "fake:slow"

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.cancelled = False

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        yield f"{_ANSWER} [1]\n\n"
        try:
            await self.may_go_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        yield "It switches itself off by means of a bimetal strip. [1]"


class Breaking:
    """Writes one sentence and breaks."""

    name = "fake:breaking"

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncIterator[str]:
        yield f"{_ANSWER} [1]\n\n"
        await asyncio.sleep(0)
        raise self._error


async def _app(folder: Path, writer: Writer | None = None, **server: float) -> FastAPI:
    parts = {} if writer is None else {"make_writer": lambda index: writer}
    library = await small_library(folder, **parts)
    return create_app(library, Settings.model_validate({"server": server}))


def _check_order(events: Sequence[Event]) -> None:
    names = " ".join(event.name for event in events)
    assert re.fullmatch(r"session retrieval( delta)*( citation)* (done|error)", names), names
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert len({event.id.partition(".")[0] for event in events}) == 1


async def test_events_have_the_order_of_the_contract(book_folder: Path) -> None:
    app = await _app(book_folder)
    for path, body in (("/chat/stream", {}), ("/chat/run", {"stream": True})):
        one = await fetch(app, path, {"message": _QUESTION, **body})
        assert one.status == 200
        assert one.finished
        _check_order(one.events)
        assert one.events[-1].name == "done"


@pytest.mark.parametrize(
    ("model", "states"),
    [
        ("query", "Received Embedding Searching Retrieved Responding Complete"),
        ("ask", "RECEIVED VALIDATING RETRIEVING GENERATING COMPLETE"),
    ],
)
async def test_a_stream_tells_states_by_the_names_of_a_data_model(
    book_folder: Path, model: str, states: str
) -> None:
    app = await _app(book_folder)
    body = {"message": _QUESTION, "states": model}
    events = (await fetch(app, "/chat/stream", body)).events
    assert [event.body["state"] for event in events if event.name == "state"] == states.split()
    others = " ".join(event.name for event in events if event.name != "state")
    assert re.fullmatch(r"session retrieval( delta)+( citation)+ done", others)


async def test_a_stream_that_fails_tells_the_state_before_the_error() -> None:
    async def journey() -> AsyncGenerator[Any, None]:
        yield State.RETRIEVING
        raise EmbedderFailed("Away.", hint="Wait.")

    told: list[Any] = []
    with pytest.raises(EmbedderFailed):
        events = stream_events(Question("a"), journey(), Call(), states_of=STATES["query"])
        async for _, event in events:
            told.append(event)
    assert [event.state for event in told[1:]] == ["Embedding", "Searching", "EmbeddingFailed"]


async def test_deltas_and_citations_equal_the_response(book_folder: Path) -> None:
    app = await _app(book_folder)
    for message in (_QUESTION, "How do I build a kite?", "Who won the chess match in 1972?"):
        *events, last = (await fetch(app, "/chat/stream", {"message": message})).events
        deltas = [event.body["text"] for event in events if event.name == "delta"]
        assert "".join(deltas) == last.body["response"]
        citations = [event.body for event in events if event.name == "citation"]
        known = last.body.get("citations", [])
        assert [c["number"] for c in citations] == list(range(1, len(citations) + 1))
        assert [(c["number"], c["chunk_text"], c["link"]) for c in citations] == [
            (c["number"], c["quote"], c["link"]) for c in known
        ]
        chunks = {(c["url"], c["chunk_index"]) for c in citations}
        assert {(s["url"], s["chunk_index"]) for s in last.body["sources"]} == chunks
        assert events[0].body["session_id"] == last.body["session_id"]
    assert deltas == [BOOK_DOES_NOT_SAY]


_SENTENCES = [
    f"{_ANSWER} [1]",
    "It switches itself off by means of a bimetal strip. [1]",
    "A kettle boils wine at 300 degrees. [1]",
    "[7]",
    "- Cut two sticks of spruce.",
    "```\ncode\n```",
    "\u2028",
    "",
]


_WEAK = Question("Is a kettle a good present?", min_score=0.0, min_answerability=0.0, top_k=1)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(_SENTENCES), st.sampled_from([" ", "\n", "\n\n"]))),
    st.sampled_from([Question(_QUESTION), _WEAK]),
)
def test_deltas_join_to_the_response_and_retrieval_agrees_with_done(
    written: list[tuple[str, str]], asked: Question
) -> None:
    async def go() -> list[tuple[str, BaseModel]]:
        context = await _context()
        writer = ScriptedWriter([text + gap for text, gap in written])
        question = replace(asked, thread=str(uuid.uuid4()))
        journey = respond(question, replace(context, writer=writer))
        return [each async for each in stream_events(question, journey, Call())]

    *before, (last, response) = asyncio.run(go())
    assert last == "done"
    deltas = [
        body.text for name, body in before if name == "delta" and isinstance(body, ChatDeltaEvent)
    ]
    assert isinstance(response, ChatResponse)
    assert "".join(deltas) == response.response
    [metrics] = [body for _, body in before if isinstance(body, ConfidenceMetrics)]
    assert metrics.confidence_level is response.confidence_level
    assert metrics.should_answer is response.should_answer


def test_stream_of_a_low_confidence_answer_ends_with_the_disclaimer() -> None:
    """The property above is about such answers, too."""

    async def go() -> list[tuple[str, BaseModel]]:
        question = replace(_WEAK, thread=str(uuid.uuid4()))
        journey = respond(question, await _context())
        return [each async for each in stream_events(question, journey, Call())]

    told_events = asyncio.run(go())
    response = told_events[-1][1]
    assert isinstance(response, ChatResponse)
    assert response.confidence_level is Level.LOW
    assert response.response.endswith(DISCLAIMER)
    [*_, last_delta] = [body for _, body in told_events if isinstance(body, ChatDeltaEvent)]
    assert last_delta.text == f"\n\n{DISCLAIMER}"


async def _context() -> AnswerContext:
    library = Book(**fakes())
    await library.ingest(_small_book())
    return await library.context()


@cache
def _small_book() -> ParsedBook:
    with tempfile.TemporaryDirectory() as folder:
        return read(small_book(Path(folder) / "docs"))


async def test_headers_forbid_proxies_to_buffer_or_transform(book_folder: Path) -> None:
    app = await _app(book_folder)
    one = await fetch(
        app, "/chat/stream", {"message": _QUESTION}, {"accept-encoding": "gzip, br, zstd"}
    )
    assert one.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert one.headers["cache-control"] == "no-store, no-transform"
    assert one.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in one.headers
    assert one.headers["x-request-id"] == one.events[0].body["request_id"]


async def test_invalid_request_gets_an_error_status_and_no_stream(book_folder: Path) -> None:
    app = await _app(book_folder)
    one = await fetch(app, "/chat/stream", {"message": " "})
    assert one.status == 400
    assert one.headers["content-type"] == "application/json"
    assert '"error_code"' in one.text


@pytest.mark.parametrize("error", [WriterFailed("The writer broke off."), RuntimeError("a bug")])
async def test_crash_is_reported_as_the_last_event_without_details(
    book_folder: Path, error: Exception
) -> None:
    one = await fetch(
        await _app(book_folder, Breaking(error)), "/chat/stream", {"message": _QUESTION}
    )
    _check_order(one.events)
    *before, last = one.events
    assert before[-1].body["text"].startswith(_ANSWER)
    assert last.name == "error"
    assert set(last.body) == {"error_code", "message", "suggested_action", "request_id"}
    assert last.body["request_id"] == one.headers["x-request-id"]
    assert "a bug" not in one.text
    assert one.finished


async def test_events_are_sent_as_they_are_produced(book_folder: Path) -> None:
    writer = Slow()
    async with open_exchange(
        await _app(book_folder, writer), "/chat/stream", {"message": _QUESTION}
    ) as one:
        await one.until("event: delta")
        assert [event.name for event in one.events] == ["session", "retrieval", "delta"]
        writer.may_go_on.set()
    assert [event.name for event in one.events].count("delta") == 2
    assert one.events[-1].name == "done"


async def test_idle_stream_sends_comments(book_folder: Path) -> None:
    writer = Slow()
    app = await _app(book_folder, writer, heartbeat_s=0.01)
    async with open_exchange(app, "/chat/stream", {"message": _QUESTION}) as one:
        await one.until(": ping\n\n", times=3)
        writer.may_go_on.set()
    _check_order(one.events)
    assert one.events[-1].name == "done"  # a comment is no event, and takes no number


async def test_disconnect_cancels_the_work_and_leaves_no_task(book_folder: Path) -> None:
    writer = Slow()
    app = await _app(book_folder, writer)
    before = asyncio.all_tasks()
    async with open_exchange(app, "/chat/stream", {"message": _QUESTION}) as one:
        await one.until("event: delta")
        one.leave()
    assert writer.cancelled
    assert not one.finished  # the connection is broken off, not ended as if all had been said
    assert asyncio.all_tasks() == before


async def test_resumed_stream_misses_nothing(book_folder: Path) -> None:
    app, body = await _app(book_folder), {"message": _QUESTION}
    whole = (await fetch(app, "/chat/stream", body)).events
    for seen in range(len(whole) + 1):
        header = {"last-event-id": f"{whole[0].id.partition('.')[0]}.{seen}"}
        assert (await fetch(app, "/chat/stream", body, header)).events == whole[seen:]


async def test_second_client_keeps_the_stream_running(book_folder: Path) -> None:
    writer = Slow()
    app, body = await _app(book_folder, writer), {"message": _QUESTION}
    async with open_exchange(app, "/chat/stream", body) as first:
        await first.until("event: delta")
        header = {"last-event-id": first.events[0].id}
        async with open_exchange(app, "/chat/stream", body, header) as second:
            await second.until("event: delta")
            first.leave()
            writer.may_go_on.set()
    assert not writer.cancelled
    assert second.events[-1].name == "done"
    assert second.events[0].number == 2


async def test_resuming_an_abandoned_stream_is_an_error(book_folder: Path) -> None:
    writer = Slow()
    app, body = await _app(book_folder, writer), {"message": _QUESTION}
    async with open_exchange(app, "/chat/stream", body) as one:
        await one.until("event: delta")
        one.leave()
    header = {"last-event-id": one.events[-1].id}
    [last] = (await fetch(app, "/chat/stream", body, header)).events
    assert (last.name, last.number) == ("error", len(one.events) + 1)
    assert last.body["suggested_action"] == "Try again in a moment."


async def test_shutdown_is_reported_in_every_stream(book_folder: Path) -> None:
    writer = Slow()
    app = await _app(book_folder, writer)
    async with open_exchange(app, "/chat/stream", {"message": _QUESTION}) as one:
        await one.until("event: delta")
        await asyncio.wait_for(app.state.lifecycle.drain(), 5)
    assert writer.cancelled
    assert one.finished
    assert (one.events[-1].name, one.events[-1].body["error_code"]) == ("error", "SHUTTING_DOWN")
    assert (await fetch(app, "/chat/stream", {"message": _QUESTION})).status == 503


# --- what is kept -----------------------------------------------------------------------------


class Body(BaseModel):
    text: str


def _fail(error: BookError) -> NamedEvent:
    return "error", Body(text=error.message)


async def _telling(count: int, text: str = "x") -> Events:
    for _ in range(count):
        yield "delta", Body(text=text)
    yield "done", Body(text="end")


async def _tell_all(response: object) -> list[Event]:
    return (await fetch(response, "/", {})).events  # type: ignore[arg-type]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_finished_stream_is_kept_two_minutes_for_its_owner_only() -> None:
    clock = Clock()
    streams = Streams(clock=clock)
    events = await _tell_all(streams.begin(_telling(3), fail=_fail, owner="anna"))
    clock.now = 119.9
    assert await _tell_all(streams.resume(events[0].id, owner="anna")) == events[1:]
    stream = events[0].id.partition(".")[0]
    for unknown, owner in (
        *((events[0].id, "bert"), (events[0].id, None)),
        *((f"{stream}.99", "anna"), (f"{'a' * 32}.1", "anna")),
    ):
        with pytest.raises(NotFound):
            streams.resume(unknown, owner=owner)
    clock.now = 120.1
    with pytest.raises(NotFound):
        streams.resume(events[0].id, owner="anna")


@pytest.mark.parametrize("seen", ["", "1", "x.1", "é", "a" * 32, f"{'a' * 32}.-1", "0" * 99])
async def test_malformed_event_id_is_rejected(seen: str) -> None:
    with pytest.raises(InvalidInput):
        Streams().resume(seen, owner=None)


async def test_finished_streams_are_limited_in_number_and_bytes() -> None:
    for bounds in ({"most": 3}, {"most_bytes": 3000}):
        streams = Streams(**bounds)
        told_ids = [
            (await _tell_all(streams.begin(_telling(1, "x" * 700), fail=_fail, owner=None)))[0].id
            for _ in range(10)
        ]
        assert await _tell_all(streams.resume(told_ids[-1], owner=None))
        with pytest.raises(NotFound):
            streams.resume(told_ids[0], owner=None)
        assert streams.open_count == 0


async def test_finished_stream_keeps_no_task() -> None:
    """A task remembers the request that it worked on, with all that was found for it."""

    def done() -> int:
        gc.collect()
        return sum(type(each) is asyncio.Task and each.done() for each in gc.get_objects())

    streams, before = Streams(), done()
    for _ in range(5):
        await _tell_all(streams.begin(_telling(1), fail=_fail, owner=None))
    assert done() - before < 5


async def test_too_many_open_streams_are_rejected() -> None:
    async def endless() -> Events:
        yield "session", Body(text="")
        await asyncio.Event().wait()

    streams = Streams(most=1)
    async with open_exchange(streams.begin(endless(), fail=_fail, owner=None), "/", {}) as one:
        await one.until("event: session")
        with pytest.raises(ServiceError, match="Too many"):
            streams.begin(endless(), fail=_fail, owner=None)
        one.leave()
    streams.begin(endless(), fail=_fail, owner=None)


async def test_client_that_reads_nothing_is_disconnected() -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    streams = Streams(send_timeout_s=0.01)
    response = streams.begin(_telling(1), fail=_fail, owner=None)
    await response({"type": "http", "http_version": "1.1"}, never, never)  # type: ignore[arg-type]
    assert streams.open_count == 0


async def test_stream_without_a_last_event_ends_with_an_error() -> None:
    async def silent() -> Events:
        yield "session", Body(text="")

    events = await _tell_all(Streams().begin(silent(), fail=_fail, owner=None))
    assert [event.name for event in events] == ["session", "error"]


async def test_stopping_server_starts_no_stream() -> None:
    streams = Streams()
    accepted = streams.begin(_telling(1), fail=_fail, owner=None)
    await streams.stop()
    with pytest.raises(Stopping):
        streams.begin(_telling(1), fail=_fail, owner=None)
    [last] = await _tell_all(accepted)
    assert last.name == "error"
    assert streams.open_count == 0


@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.booleans(), max_size=8))
def test_any_text_arrives_unchanged(texts: list[str], pauses: list[bool]) -> None:
    async def telling() -> Events:
        for number, text in enumerate(texts):
            if number < len(pauses) and pauses[number]:
                await asyncio.sleep(0)
            yield "delta", Body(text=text)
        yield "done", Body(text="\r\n\n")

    async def go() -> list[Event]:
        return await _tell_all(Streams().begin(telling(), fail=_fail, owner=None))

    events = asyncio.run(go())
    assert [event.body["text"] for event in events] == [*texts, "\r\n\n"]
    assert [event.number for event in events] == list(range(1, len(texts) + 2))
    assert events_of("") == []
