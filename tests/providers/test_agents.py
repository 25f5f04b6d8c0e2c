"""Answers by the Agents SDK: three agents, one model call, our own guardrails, whole streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agents import Model, trace
from agents import Usage as SdkUsage
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from bythebook.answering.prompts import Quoting
from bythebook.errors import Truncated, WriterFailed
from bythebook.interfaces.writer import DraftPiece, WriterSearchResult
from bythebook.providers.http.circuit_breaker import FAILURES, CircuitBreaker
from bythebook.providers.http.credentials import writer_account
from bythebook.providers.llm.agents import MOST_SEARCHES, AgentsWriter, PipelineHooks
from bythebook.providers.llm.agents_client import AgentsClient
from bythebook.providers.llm.budget import Budget
from bythebook.types import Evidence, Hit, Message, Question, Role, Usage
from tests.providers.hosted import CALM, HURRIED, settings_for
from tests.providers.loopback import (
    DONE,
    HANG,
    LAST,
    RESET,
    STREAM,
    Loopback,
    chat,
    delta,
    event,
    page,
    refuse,
)
from tests.samples import evidence, hit

KETTLE = "A kettle boils water at 100 degrees Celsius."
QUESTION = Question("At how many degrees does a kettle boil water?")
DRAGON = hit("A dragon kite has a tail of forty discs.", file="dragons.md")


class Ours:
    """Functions that the agents are built over; what they were asked is written down."""

    def __init__(self, *, gate: bool = True, found: Sequence[Hit] = (DRAGON,)) -> None:
        self.gate, self.found = gate, found
        self.searched: list[str] = []
        self.checked: list[tuple[str, Evidence]] = []

    async def holds(self, text: str, found: Evidence) -> bool:
        self.checked.append((text, found))
        return True

    async def search(self, question: Question) -> Sequence[Hit]:
        self.searched.append(question.text)
        return self.found

    def house(self) -> PipelineHooks:
        return PipelineHooks(
            quoting=Quoting,
            is_about_book=lambda question: question.selection is None,
            may_answer=lambda *_: self.gate,
            holds=self.holds,
            search=self.search,
        )


def _writer(model: Model, ours: Ours | None = None, **chosen: Any) -> AgentsWriter:
    settings = settings_for("http://127.0.0.1:9/v1", **chosen)
    account = writer_account("openai", "test-model", settings)
    house = (ours or Ours()).house()
    return AgentsWriter(account, settings.model, house=house, model=lambda: model)


async def _pieces(
    writer: AgentsWriter, question: Question = QUESTION, history: Sequence[Message] = ()
) -> list[DraftPiece]:
    drafted = writer.write(question, evidence(KETTLE), history)
    return [piece async for piece in drafted]


def _text(pieces: Sequence[DraftPiece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str)).strip()


async def test_one_model_call_writes_an_answer_from_the_prompt_alone() -> None:
    model = ScriptedModel([[assistant_message(f"{KETTLE} [1]")]])
    pieces = await _pieces(_writer(model))
    model.assert_complete()
    [call] = model.calls
    [turn] = call.input
    assert _text(pieces) == f"{KETTLE} [1]"
    assert (turn["role"], KETTLE in turn["content"]) == ("user", True)  # no trace of the hand-overs
    assert "All you know are the numbered passages" in (call.system_instructions or "")
    assert call.tools == []


async def test_what_was_said_before_is_quoted_and_never_a_turn_of_its_own() -> None:
    model = ScriptedModel([[assistant_message(KETTLE)]])
    said = Message(Role.ASSISTANT, "I will obey you.", datetime(2026, 1, 1, tzinfo=UTC))
    await _pieces(_writer(model), history=[said])
    [turn] = model.calls[0].input
    assert "I will obey you." in turn["content"]
    assert "I will obey you." not in (model.calls[0].system_instructions or "")


async def test_a_draft_says_what_it_cost() -> None:
    counted = SdkUsage(requests=1, input_tokens=300, output_tokens=20, total_tokens=320)
    model = ScriptedModel([ModelStep(output=[assistant_message(KETTLE)], usage=counted)])
    pieces = await _pieces(_writer(model, price_in=2.0, price_out=10.0))
    assert [piece for piece in pieces if isinstance(piece, Usage)] == [Usage(300, 20, 1, 0.0008)]


async def test_agentic_the_model_searches_and_what_it_finds_joins_the_evidence() -> None:
    model = ScriptedModel(
        [
            [function_call("search_textbook", {"query": "dragon kites"}, call_id="one")],
            [assistant_message("A dragon kite has a tail of forty discs. [2]")],
        ]
    )
    ours = Ours()
    pieces = await _pieces(_writer(model, ours, agentic=True))
    assert ours.searched == ["dragon kites"]
    found = [piece for piece in pieces if isinstance(piece, WriterSearchResult)]
    assert found == [WriterSearchResult((DRAGON,))]
    first_words = next(n for n, piece in enumerate(pieces) if str(piece).startswith("A dragon"))
    assert pieces.index(found[0]) < first_words
    answer = model.calls[1].input[-1]
    assert "number=2>" in answer["output"]
    assert DRAGON.passage.text in answer["output"]
    assert sum(isinstance(piece, Usage) for piece in pieces) == 2
    assert [text for text, _ in ours.checked] == ["A dragon kite has a tail of forty discs. [2]"]
    assert ours.checked[0][1].hits[-1] == DRAGON


async def test_a_model_searches_three_times_at_most() -> None:
    def searching(n: int) -> list[Any]:
        return [function_call("search_textbook", {"query": f"q{n}"}, call_id=f"c{n}")]

    ours = Ours()
    steps = [*map(searching, range(MOST_SEARCHES)), [assistant_message(KETTLE)]]
    model = ScriptedModel(steps)
    assert _text(await _pieces(_writer(model, ours, agentic=True))) == KETTLE
    assert len(ours.searched) == MOST_SEARCHES
    assert [len(call.tools) for call in model.calls] == [1, 1, 1, 0]


async def test_all_at_once_it_searches_three_times_at_most_too() -> None:
    calls = [
        function_call("search_textbook", {"query": f"q{n}"}, call_id=f"c{n}") for n in range(9)
    ]
    ours = Ours(found=())
    model = ScriptedModel([calls, [assistant_message(KETTLE)]])
    assert _text(await _pieces(_writer(model, ours, agentic=True))) == KETTLE
    assert len(ours.searched) == MOST_SEARCHES


async def test_a_model_that_searches_on_and_on_is_stopped() -> None:
    calls = [[function_call("search_textbook", {"query": "q"}, call_id=f"c{n}")] for n in range(9)]
    with pytest.raises(WriterFailed):
        await _pieces(_writer(ScriptedModel(calls), agentic=True))


async def test_of_a_selection_nothing_else_is_searched() -> None:
    model = ScriptedModel([[assistant_message(KETTLE)]])
    await _pieces(_writer(model, agentic=True), Question(QUESTION.text, selection=KETTLE))
    assert model.calls[0].tools == []


async def test_what_the_gate_refuses_no_model_is_asked() -> None:
    model = ScriptedModel([])
    assert await _pieces(_writer(model, Ours(gate=False))) == []
    assert model.calls == ()


async def test_a_draft_at_which_the_check_trips_ends_quietly() -> None:
    class Strict(Ours):
        async def holds(self, text: str, found: Evidence) -> bool:
            return False

    model = ScriptedModel([[assistant_message("Kettles sing. [1]")]])
    pieces = await _pieces(_writer(model, Strict()))
    assert _text(pieces) == "Kettles sing. [1]"  # the check has its own say on it


async def test_a_tool_that_nobody_offered_is_an_error_of_the_model() -> None:
    model = ScriptedModel([[function_call("delete_everything", {}, call_id="one")]])
    with pytest.raises(WriterFailed):
        await _pieces(_writer(model))


async def test_what_a_model_raises_is_typed() -> None:
    with pytest.raises(WriterFailed):
        await _pieces(_writer(ScriptedModel([ModelStep.raise_error(ValueError("?"))])))


def test_nothing_is_traced() -> None:
    assert type(trace("a question")).__name__ == "NoOpTrace"


# --- over the wire --------------------------------------------------------------------------------


async def _drafted(provider: Loopback, **chosen: Any) -> tuple[str, Usage]:
    """A draft of a real client's, over a real socket."""
    text, used = "", Usage()
    settings = settings_for(f"{provider.url}/v1", **{**CALM, "api_key": "sk-secret", **chosen})
    account = writer_account("openai", "test-model", settings)
    line = AgentsClient(account)
    writer = AgentsWriter(account, settings.model, house=Ours().house(), model=line.model)
    try:
        async with aclosing(writer.write(QUESTION, evidence(KETTLE), ())) as pieces:
            async for piece in pieces:
                text += piece if isinstance(piece, str) else ""
                used += piece if isinstance(piece, Usage) else Usage()
    finally:
        await line.close()
    return text.strip(), used


@pytest.mark.loopback
async def test_a_whole_stream_is_a_draft() -> None:
    with Loopback(lambda _: chat("A kettle ", "boils. [1]", cost=(70, 6))) as provider:
        text, used = await _drafted(provider)
    assert text == "A kettle boils. [1]"
    assert used == Usage(70, 6, 1)
    [request] = provider.requests
    assert request.path == "/v1/chat/completions"
    assert [turn["role"] for turn in request.body["messages"]] == ["system", "user"]
    assert request.body["stream_options"] == {"include_usage": True}
    assert "tools" not in request.body


@pytest.mark.loopback
async def test_done_alone_ends_a_stream_too() -> None:
    with Loopback(lambda _: [STREAM, delta("Kettles boil."), DONE, LAST]) as provider:
        assert (await _drafted(provider))[0] == "Kettles boil."


_LATE, _AGAIN, _NEVER = "timed out", "retryable", "not retryable"


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([STREAM, delta("Kettles boil. "), LAST], _AGAIN),  # the SDK takes this for the end
        ([STREAM, delta("Kettles boil. "), RESET], _AGAIN),
        ([STREAM, LAST], _AGAIN),
        ([RESET], _AGAIN),
        ([HANG], _LATE),
        ([STREAM, delta("Kettles boil. "), HANG], _LATE),
        ([STREAM, delta("Kettles boil. "), event({"error": {"message": "no"}}), LAST], _AGAIN),
        ([STREAM, delta("Kettles boil. "), event("{"), LAST], _AGAIN),
        ([STREAM, delta(None, "content_filter"), DONE, LAST], _NEVER),
        (refuse(401), _NEVER),
        (refuse(404, "The model does not exist", "model_not_found"), _NEVER),
        (refuse(400, "maximum context length is 100 tokens"), _NEVER),
        (refuse(429, Retry_After="7"), _AGAIN),
        (refuse(500), _AGAIN),
        (page(), _NEVER),
        (page(502), _AGAIN),
    ],
    ids=range(16),
)
async def test_what_goes_wrong_is_one_error(steps: list[Any], kind: str) -> None:
    times = HURRIED if kind == _LATE else CALM
    with Loopback(lambda _: steps) as provider, pytest.raises(WriterFailed) as caught:
        await _drafted(provider, **times)
    error = caught.value
    assert (error.timed_out, error.retryable) == (kind == _LATE, kind != _NEVER), error
    # Nobody tries again behind our back; on a busy machine the time may be up before the first.
    assert len(provider.requests) == 1 or (kind == _LATE and not provider.requests)
    assert not any(word in str(error) for word in ("sk-secret", "127.0.0.1", "Traceback"))
    if steps == refuse(429, Retry_After="7"):
        assert error.retry_after == 7


@pytest.mark.loopback
async def test_a_draft_that_reached_its_length_says_so() -> None:
    with (
        Loopback(lambda _: chat("Kettles boil. And ", finish="length")) as provider,
        pytest.raises(Truncated),
    ):
        await _drafted(provider)


@pytest.mark.loopback
async def test_a_model_that_does_not_stop_is_stopped() -> None:
    endless = [STREAM, *[delta("Kettles boil and boil. ")] * 200, HANG]
    with Loopback(lambda _: endless) as provider, pytest.raises(WriterFailed) as caught:
        await _drafted(provider, max_output_tokens=50)
    assert "does not stop" in caught.value.message


@pytest.mark.loopback
async def test_the_days_tokens_are_kept_to_and_what_a_reader_left_is_booked(
    tmp_path: Path,
) -> None:
    budget = Budget(tmp_path / "tokens.db", 3000)
    model = ScriptedModel([[assistant_message(KETTLE)]] * 9)
    settings = settings_for("http://127.0.0.1:9/v1", max_output_tokens=1000)
    account = writer_account("openai", "test-model", settings)
    writer = AgentsWriter(
        account, settings.model, house=Ours().house(), model=lambda: model, budget=budget
    )
    drafting = writer.write(QUESTION, evidence(KETTLE), ())
    assert await anext(drafting) == KETTLE
    assert await budget.spent() > 1000  # set aside
    await drafting.aclose()
    assert 300 < await budget.spent() < 1000
    with pytest.raises(WriterFailed, match="Today's tokens"):
        for _ in range(9):
            await _pieces(writer)
    await budget.close()


@pytest.mark.loopback
async def test_nothing_listens() -> None:
    with Loopback(lambda _: []) as provider:
        pass
    with pytest.raises(WriterFailed) as caught:
        await _drafted(provider)
    assert caught.value.retryable


@pytest.mark.loopback
async def test_who_leaves_takes_the_upstream_call_along() -> None:
    steps = [STREAM, delta("Kettles boil. "), HANG]
    with Loopback(lambda _: steps) as provider:
        settings = settings_for(f"{provider.url}/v1", **CALM)
        account = writer_account("openai", "test-model", settings)
        line = AgentsClient(account)
        writer = AgentsWriter(account, settings.model, house=Ours().house(), model=line.model)
        drafting = writer.write(QUESTION, evidence(KETTLE), ())
        assert await anext(drafting) == "Kettles boil. "
        await drafting.aclose()
        async with asyncio.timeout(30):  # the call itself would last for a minute
            while not provider.left:  # noqa: ASYNC110 - it happens on the provider's thread
                await asyncio.sleep(0.01)
        await line.close()


@pytest.mark.loopback
async def test_a_service_that_fails_and_fails_is_left_alone() -> None:
    breaker = CircuitBreaker()
    with Loopback(lambda _: refuse(500)) as provider:
        settings = settings_for(f"{provider.url}/v1", **CALM)
        account = writer_account("openai", "test-model", settings)
        line = AgentsClient(account)
        made = {"house": Ours().house(), "model": line.model, "breaker": breaker}
        for _ in range(FAILURES + 3):
            with pytest.raises(WriterFailed):
                await _pieces(AgentsWriter(account, settings.model, **made))
        await line.close()
    assert len(provider.requests) == FAILURES


@pytest.mark.loopback
async def test_the_arguments_of_a_search_come_over_the_wire() -> None:
    call = {"index": 0, "id": "one", "type": "function"}
    asked = {**call, "function": {"name": "search_textbook", "arguments": '{"query":"dragons"}'}}
    scripts = [
        [STREAM, delta(None, tool_calls=[asked]), delta(None, "tool_calls"), DONE, LAST],
        chat("A dragon kite has a tail of forty discs. [2]"),
    ]
    with Loopback(lambda _: scripts.pop(0)) as provider:
        text, used = await _drafted(provider, agentic=True)
    assert text == "A dragon kite has a tail of forty discs. [2]"
    assert used.calls == 2
    tools = provider.requests[0].body["tools"]
    assert [tool["function"]["name"] for tool in tools] == ["search_textbook"]
    assert DRAGON.passage.text in json.dumps(provider.requests[1].body["messages"])
