"""Agent of the OpenAI Agents SDK, against a loopback server that speaks the OpenAI API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agents import trace

from bythebook.answering.prompts import Quoting
from bythebook.errors import Truncated, WriterFailed
from bythebook.grounding.verifier import SentenceVerifier
from bythebook.interfaces.models import DraftPiece, WriterSearchResult
from bythebook.providers.http.client import FAILURES
from bythebook.providers.llm.agents import MOST_SEARCHES, AgentsWriter, AgentTools
from bythebook.providers.llm.budget import Budget
from bythebook.providers.testing import FakeEmbedder
from bythebook.types import Evidence, Hit, Message, Question, Role, Usage
from tests.providers.hosted import CALM, HURRIED, model_at
from tests.providers.loopback import (
    DONE,
    HANG,
    LAST,
    RESET,
    STREAM,
    Loopback,
    Request,
    Step,
    chat,
    delta,
    event,
    page,
    refuse,
    reply,
)
from tests.support.samples import evidence, hit

pytestmark = pytest.mark.loopback

KETTLE = "A kettle boils water at 100 degrees Celsius."
QUESTION = Question("At how many degrees does a kettle boil water?")
DRAGON = hit("A dragon kite has a tail of forty discs.", file="dragons.md")


class BookSearch:
    """Search that returns the given hits and records the queries."""

    def __init__(self, *hits: Hit) -> None:
        self.hits = hits
        self.queries: list[str] = []

    async def __call__(self, question: Question) -> Sequence[Hit]:
        self.queries.append(question.text)
        await asyncio.sleep(0)  # parallel searches overlap
        return self.hits


@asynccontextmanager
async def writer_at(
    provider: Loopback, *, search: BookSearch | None = None, **parts: Any
) -> AsyncIterator[AgentsWriter]:
    tools = AgentTools(Quoting, search or BookSearch(DRAGON), SentenceVerifier(FakeEmbedder()))
    async with model_at(f"{provider.url}/v1", **parts) as model:
        yield AgentsWriter(model, tools=tools)


@dataclass
class Draft:
    """What the writer yielded, and what it requested."""

    pieces: list[DraftPiece] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece for piece in self.pieces if isinstance(piece, str)).strip()

    @property
    def usage(self) -> Usage:
        return sum((piece for piece in self.pieces if isinstance(piece, Usage)), Usage())

    @property
    def results(self) -> list[DraftPiece]:
        return [piece for piece in self.pieces if isinstance(piece, WriterSearchResult)]


async def drafted(
    *scripts: Iterable[Step],
    question: Question = QUESTION,
    passages: Evidence | None = None,
    history: Sequence[Message] = (),
    into: Draft | None = None,
    **parts: Any,
) -> Draft:
    """Write a draft; each request is answered with the next script, or all with a single one."""
    draft, rest = into or Draft(), iter(scripts)
    given = evidence(KETTLE) if passages is None else passages
    with Loopback(lambda _: scripts[0] if len(scripts) == 1 else next(rest)) as provider:
        draft.requests = provider.requests
        async with (
            writer_at(provider, **parts) as writer,
            aclosing(writer.write(question, given, history)) as pieces,
        ):
            async for piece in pieces:
                draft.pieces.append(piece)
    return draft


def tool_calls(*queries: str, name: str = "search_textbook") -> list[Step]:
    calls = [
        {
            "index": number,
            "id": f"call-{number}-{query}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"query": query})},
        }
        for number, query in enumerate(queries)
    ]
    return [STREAM, delta(None, tool_calls=calls), delta(None, "tool_calls"), DONE, LAST]


# --- a complete answer ----------------------------------------------------------------------------


async def test_an_answer_is_one_request_with_the_passages_in_the_prompt() -> None:
    answer = chat("A kettle ", "boils. [1]", cost=(70, 6))
    draft = await drafted(answer, price_in=2.0, price_out=10.0)
    assert draft.text == "A kettle boils. [1]"
    assert draft.usage == Usage(70, 6, 1, 0.0002)
    [request] = draft.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-secret"
    system, user = request.body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "Use only the numbered passages" in system["content"]
    assert KETTLE in user["content"]
    assert request.body["stream_options"] == {"include_usage": True}
    assert not request.body.keys() & {"tools", "store"}


async def test_done_without_a_finish_reason_is_complete() -> None:
    assert (await drafted([STREAM, delta("Kettles boil."), DONE, LAST])).text == "Kettles boil."


async def test_the_history_is_quoted_in_the_user_message() -> None:
    earlier = Message(Role.ASSISTANT, "I will obey you.", datetime(2026, 1, 1, tzinfo=UTC))
    draft = await drafted(chat(KETTLE), history=[earlier])
    system, user = draft.requests[0].body["messages"]
    assert "I will obey you." in user["content"]
    assert "I will obey you." not in system["content"]


def test_tracing_is_disabled() -> None:
    assert type(trace("a question")).__name__ == "NoOpTrace"


# --- the search tool ------------------------------------------------------------------------------


async def test_the_agent_searches_the_book_and_the_hits_join_the_evidence() -> None:
    search, answer = BookSearch(DRAGON), chat("A dragon kite has a tail of forty discs. [2]")
    draft = await drafted(tool_calls("dragon kites"), answer, search=search, agentic=True)
    assert search.queries == ["dragon kites"]
    assert draft.text == "A dragon kite has a tail of forty discs. [2]"
    assert draft.pieces.index(WriterSearchResult((DRAGON,))) < draft.pieces.index(draft.text)
    assert draft.usage.calls == 2
    first, second = draft.requests
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["search_textbook"]
    result = second.body["messages"][-1]
    assert result["role"] == "tool"
    assert "number=2>" in result["content"]
    assert DRAGON.passage.text in result["content"]


async def test_passages_that_are_evidence_already_are_not_added_again() -> None:
    given = evidence(KETTLE)
    search = BookSearch(*given.hits)
    draft = await drafted(
        tool_calls("kettles"), chat(KETTLE), passages=given, search=search, agentic=True
    )
    assert draft.results == []
    assert "no other passages" in draft.requests[1].body["messages"][-1]["content"]


async def test_after_the_last_search_the_tool_is_no_longer_offered() -> None:
    search, calls = BookSearch(DRAGON), [tool_calls(f"q{n}") for n in range(MOST_SEARCHES)]
    draft = await drafted(*calls, chat(KETTLE), search=search, agentic=True)
    assert draft.text == KETTLE
    assert len(search.queries) == MOST_SEARCHES
    assert ["tools" in request.body for request in draft.requests] == [True, True, True, False]


async def test_parallel_searches_are_limited_too_and_add_a_passage_once() -> None:
    search, calls = BookSearch(DRAGON), tool_calls(*(f"q{n}" for n in range(9)))
    draft = await drafted(calls, chat(KETTLE), search=search, agentic=True)
    assert draft.text == KETTLE
    assert len(search.queries) == MOST_SEARCHES
    assert draft.results == [WriterSearchResult((DRAGON,))]


@pytest.mark.parametrize("name", ["search_textbook", "delete_everything"])
async def test_an_agent_that_keeps_calling_tools_or_an_unknown_one_is_stopped(name: str) -> None:
    draft = Draft()
    with pytest.raises(WriterFailed):
        await drafted(tool_calls("q", name=name), into=draft, agentic=True)
    assert len(draft.requests) <= 1 + MOST_SEARCHES


@pytest.mark.parametrize("only", [True, False])
async def test_an_answer_from_a_selection_only_has_no_search_tool(only: bool) -> None:
    question = replace(QUESTION, selection=KETTLE, selection_only=only)
    draft = await drafted(chat(KETTLE), question=question, agentic=True)
    assert ("tools" in draft.requests[0].body) == (not only)


# --- the guardrails -------------------------------------------------------------------------------


async def test_without_evidence_the_input_guardrail_ends_the_run_before_a_request() -> None:
    assert await drafted(chat(KETTLE), passages=Evidence()) == Draft()


@pytest.mark.parametrize("answer", [KETTLE, "Dragons breathe fire over the sea. [1]"])
async def test_the_output_guardrail_reports_an_unsupported_answer(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="bythebook")
    assert (await drafted(chat(answer))).text == answer  # the caller checks each sentence
    assert ("supports no sentence" in caplog.text) == (answer != KETTLE)


# --- errors, deadlines, budget and circuit breaker ------------------------------------------------

_LATE, _RETRYABLE, _FINAL = "timed out", "retryable", "not retryable"


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([STREAM, delta("Kettles boil. "), LAST], _RETRYABLE),  # the SDK takes this for the end
        ([STREAM, delta("Kettles boil. "), RESET], _RETRYABLE),
        ([STREAM, LAST], _RETRYABLE),
        ([STREAM, DONE, LAST], _RETRYABLE),
        (reply({"choices": [{"message": {"content": "Not a stream."}}]}), _RETRYABLE),
        ([RESET], _RETRYABLE),
        ([HANG], _LATE),
        ([STREAM, delta("Kettles boil. "), HANG], _LATE),
        ([STREAM, delta("Kettles boil. "), event({"error": {"message": "no"}}), LAST], _RETRYABLE),
        ([STREAM, delta("Kettles boil. "), event("{"), LAST], _RETRYABLE),
        ([STREAM, delta(None, "content_filter"), DONE, LAST], _FINAL),
        (refuse(401), _FINAL),
        (refuse(404, "The model does not exist", "model_not_found"), _FINAL),
        (refuse(400, "maximum context length is 100 tokens"), _FINAL),
        (refuse(429, Retry_After="7"), _RETRYABLE),
        (refuse(500), _RETRYABLE),
        (page(), _FINAL),
        (page(502), _RETRYABLE),
    ],
    ids=range(18),
)
async def test_a_failed_call_is_one_error_without_a_retry(steps: list[Any], kind: str) -> None:
    draft = Draft()
    with pytest.raises(WriterFailed) as caught:
        await drafted(steps, into=draft, **(HURRIED if kind == _LATE else CALM))
    error = caught.value
    assert (error.timed_out, error.retryable) == (kind == _LATE, kind != _FINAL), error
    # On a busy machine the time may be up before the first request.
    assert len(draft.requests) == 1 or (kind == _LATE and not draft.requests)
    assert not any(word in str(error) for word in ("sk-secret", "127.0.0.1", "Traceback"))
    if steps == refuse(429, Retry_After="7"):
        assert error.retry_after == 7


@pytest.mark.parametrize(
    ("steps", "error", "tokens"),
    [
        ([STREAM, delta("Kettles boil. "), RESET], WriterFailed, 4),  # estimated
        (chat("Kettles boil. ", finish="length", cost=(30, 5)), Truncated, 5),
    ],
)
async def test_a_draft_that_is_cut_keeps_its_text_and_its_cost(
    steps: list[Step], error: type[WriterFailed], tokens: int
) -> None:
    draft = Draft()
    with pytest.raises(error):
        await drafted(steps, into=draft)
    assert draft.text == "Kettles boil."
    assert (draft.usage.calls, draft.usage.completion_tokens) == (1, tokens)


async def test_a_tool_call_that_is_cut_off_is_not_run() -> None:
    search = BookSearch(DRAGON)
    with pytest.raises(WriterFailed):
        await drafted([*tool_calls("dragons")[:2], LAST], search=search, agentic=True)
    assert search.queries == []


async def test_a_response_without_end_is_stopped() -> None:
    endless = [STREAM, *[delta("Kettles boil and boil. ")] * 200, HANG]
    with pytest.raises(WriterFailed, match="more than the allowed length"):
        await drafted(endless, max_output_tokens=50)


async def test_a_draft_that_is_closed_settles_its_budget_and_its_connection(
    tmp_path: Path,
) -> None:
    budget, steps = Budget(tmp_path / "tokens.db", 3000), [STREAM, delta(KETTLE), HANG]
    with Loopback(lambda _: steps) as provider:
        async with writer_at(provider, budget=budget, max_output_tokens=1000) as writer:
            drafting: Any = writer.write(QUESTION, evidence(KETTLE), ())
            assert await anext(drafting) == KETTLE  # before the response ends
            assert await budget.spent() > 1000  # reserved
            await drafting.aclose()
            assert 300 < await budget.spent() < 1000
            async with asyncio.timeout(30):  # the call itself would last for a minute
                while not provider.left:  # noqa: ASYNC110 - set in the server's thread
                    await asyncio.sleep(0.01)


async def test_a_used_up_budget_and_a_server_that_is_down_are_told(tmp_path: Path) -> None:
    budget = Budget(tmp_path / "tokens.db", 3000)
    with Loopback(lambda _: chat(KETTLE)) as provider:
        pass
    async with writer_at(provider, budget=budget, max_output_tokens=1000) as writer:
        with pytest.raises(WriterFailed, match="cannot be reached") as caught:
            await anext(writer.write(QUESTION, evidence(KETTLE), ()))
        assert caught.value.retryable
        await budget.reserve(2500)
        with pytest.raises(WriterFailed, match="Today's token budget"):
            await anext(writer.write(QUESTION, evidence(KETTLE), ()))


async def test_the_circuit_breaker_stops_calls_to_a_failing_service() -> None:
    with Loopback(lambda _: refuse(500)) as provider:
        async with writer_at(provider) as writer:
            for _ in range(FAILURES + 3):
                with pytest.raises(WriterFailed):
                    await anext(writer.write(QUESTION, evidence(KETTLE), ()))
    assert len(provider.requests) == FAILURES
