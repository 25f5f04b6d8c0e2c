"""Writer on the OpenAI Agents SDK.

Three agents, as in the envelope contract. The *Planner* hands a question about the book to the
*Retriever*, and one about a selection directly to the *Answer Generator*; the Retriever hands it
the passages. The first two decide by local functions at no cost; only the third calls a language
model, once. With ``agentic`` it may search the book again with ``search_textbook``, at most three
times.

The three layers of the chat contract are the instructions; the guardrails, which are the gate
before and the check after; and the confidence, which the gate weighs. The SDK runs an output
guardrail after the whole stream, too late to hold anything back: the sentences of a draft are
checked as they are yielded here.

Conversation history comes from our own threads, quoted in the prompt. No ``Session`` of the SDK is
used: it would store what the model wrote, whereas a thread stores what was shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from agents import (
    Agent,
    AgentBase,
    GuardrailFunctionOutput,
    Handoff,
    HandoffInputData,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    Model,
    ModelResponse,
    ModelSettings,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunContextWrapper,
    RunResultStreaming,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents import Usage as SdkUsage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseTextDeltaEvent,
    ResponseUsage,
)

from bythebook.interfaces.writer import WriterSearchResult
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.errors import ErrorCode, ProviderError, translate_errors
from bythebook.providers.llm.agents_client import RAISED, Ending, fault_behind, run_watched
from bythebook.types import Evidence, Hit, Question, Usage

if TYPE_CHECKING:
    from agents.items import TResponseStreamEvent

    from bythebook.config.settings import Model as Settings
    from bythebook.interfaces.writer import DraftPiece, Prompt
    from bythebook.providers.http.credentials import Account
    from bythebook.providers.llm.budget import Budget
    from bythebook.types import Message

_log = logging.getLogger(__name__)

MOST_SEARCHES = 3
_HAND_OVERS = 2  # Planner to Retriever to Answer Generator
_LONGEST_QUERY = 500
_CHARACTERS = 4  # per token, if the endpoint reports no usage
_LONGEST_TOKEN = 12  # characters; above the average of any model
_ENOUGH = "That was the last search. Answer from the passages that you have."
_NOTHING = "The book has no other passages about this."

set_tracing_disabled(True)  # on by default, and would send traces to OpenAI


class Quoting(Protocol):
    """Builder of the prompts of one draft, all with the same delimiter code."""

    def prompt(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> Prompt: ...

    def passages(self, hits: Sequence[Hit], *, first: int = 1) -> str: ...


@dataclass(frozen=True, slots=True)
class PipelineHooks:
    """Pipeline functions that the agents call."""

    quoting: Callable[[], Quoting]
    is_about_book: Callable[[Question], bool]  # by the plan; otherwise about a selection only
    may_answer: Callable[[Question, Evidence], bool]  # by the gate
    holds: Callable[[str, Evidence], Awaitable[bool]]  # by the check: is any sentence supported
    search: Callable[[Question], Awaitable[Sequence[Hit]]]


@dataclass(slots=True)
class _Run:
    """State of one draft, shared by its agents, guardrails and tool."""

    house: PipelineHooks
    question: Question
    evidence: Evidence
    quoting: Quoting
    prompt: Prompt
    searches: int = 0
    found: list[WriterSearchResult] = field(default_factory=list)  # not yielded yet
    usage: Usage = field(default_factory=Usage)  # of completed calls
    written: int = 0  # characters of the call in progress

    async def search(self, query: str) -> str:
        if self.searches >= MOST_SEARCHES:
            return _ENOUGH
        self.searches += 1
        asked = replace(self.question, text=query[:_LONGEST_QUERY], selection=None)
        hits = await self.house.search(asked)
        known = {hit.passage.id for hit in self.evidence.hits}
        new = tuple(hit for hit in hits if hit.passage.id not in known)
        if not new:
            return _NOTHING
        first = len(self.evidence.hits) + 1
        self.evidence = replace(self.evidence, hits=(*self.evidence.hits, *new))
        self.found.append(WriterSearchResult(new))
        return self.quoting.passages(new, first=first)

    @property
    def asked_tokens(self) -> int:
        said = [self.prompt.system, *(text for _, text in self.prompt.turns)]
        return sum(map(estimate_tokens, said))

    def brief(self, handed: HandoffInputData) -> HandoffInputData:
        """Return the Answer Generator's input: the prompt only, without the handoffs before it."""
        turns = tuple({"role": str(role), "content": said} for role, said in self.prompt.turns)
        return handed.clone(input_history=turns, pre_handoff_items=(), new_items=())


def _may_search(context: RunContextWrapper[_Run], _: AgentBase[Any]) -> bool:
    return context.context.searches < MOST_SEARCHES


@function_tool(failure_error_function=None, is_enabled=_may_search)
async def search_textbook(context: RunContextWrapper[_Run], query: str) -> str:
    """Search the book for more passages. Use it only if the passages at hand do not answer.

    Args:
        query: What to look for, in the book's own terms.
    """
    return await context.context.search(query)


class AgentsWriter:
    def __init__(
        self,
        account: Account,
        settings: Settings,
        *,
        house: PipelineHooks,
        model: Callable[[], Model],
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = account.named.name
        self._account = account
        self._settings = settings
        self._house = house
        self._breaker = breaker or CircuitBreaker()
        self._budget = budget
        self._model = model

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[DraftPiece, None]:
        quoting = self._house.quoting()
        prompt = quoting.prompt(question, evidence, history)
        run = _Run(self._house, question, evidence, quoting, prompt)
        with translate_errors(self._account.named):
            self._admit()
            try:
                async with self._within_budget(run), aclosing(self._drafted(run)) as pieces:
                    async for piece in pieces:
                        yield piece
            except ProviderError as fault:
                self._note(fault)
                raise
            self._note(None)

    @asynccontextmanager
    async def _within_budget(self, run: _Run) -> AsyncIterator[None]:
        """Reserve the maximum cost of the draft, and settle with its actual cost."""
        if self._budget is None:
            yield
            return
        calls = 1 + MOST_SEARCHES if self._settings.agentic else 1
        most = calls * (run.asked_tokens + self._settings.max_output_tokens)
        day = await self._budget.reserve(most)
        try:
            yield
        finally:
            spent = run.usage + self._usage(None, run) if run.written else run.usage
            await self._budget.settle(day, most, spent.prompt_tokens + spent.completion_tokens)

    def _admit(self) -> None:
        wait_s = self._breaker.wait_s()
        if wait_s:
            raise ProviderError(ErrorCode.RESTING, retry_after=wait_s)

    def _note(self, fault: ProviderError | None) -> None:
        """Update the circuit breaker; a non-retryable rejection shows that the service is up."""
        if fault is not None and fault.retryable:
            self._breaker.failed()
        else:
            self._breaker.succeeded()

    async def _drafted(self, run: _Run) -> AsyncGenerator[DraftPiece, None]:
        ending = Ending()
        result = run_watched(
            ending,
            self._planner(run),
            run.question.text,
            context=run,
            max_turns=_HAND_OVERS + 1 + MOST_SEARCHES,
            run_config=RunConfig(tracing_disabled=True, trace_include_sensitive_data=False),
        )
        try:
            async with aclosing(_spoken(result, self._settings)) as events:
                async for event in events:
                    while run.found:
                        yield run.found.pop(0)
                    if isinstance(event, ResponseTextDeltaEvent):
                        run.written += len(event.delta)
                        if run.written > self._settings.max_output_tokens * _LONGEST_TOKEN:
                            raise ProviderError(ErrorCode.TOO_MUCH)
                        yield event.delta
                    elif isinstance(event, ResponseCompletedEvent):
                        cost = self._usage(event.response.usage, run)
                        run.usage, run.written = run.usage + cost, 0
                        yield cost
                        yield "\n\n"  # text after a search starts a new paragraph
            ending.check()
        except ProviderError:
            if run.written:
                yield self._usage(None, run)
            raise

    def _planner(self, run: _Run) -> Agent[_Run]:
        """Build the three agents with their handoffs, and return the first."""
        about_book = self._house.is_about_book(run.question)
        chosen = self._settings
        limit: dict[str, Any] = {"max_tokens": chosen.max_output_tokens}
        if self._account.own:  # newer models of OpenAI accept only the newer name
            limit = {"extra_args": {"max_completion_tokens": chosen.max_output_tokens}}
        generator = Agent[_Run](
            name="Answer Generator",
            instructions=run.prompt.system,
            model=self._model(),
            model_settings=ModelSettings(
                temperature=chosen.temperature, include_usage=True, **limit
            ),
            tools=[search_textbook] if chosen.agentic and about_book else [],
            output_guardrails=[OutputGuardrail(_check, name="check")],
        )
        to_generator = handoff(generator, input_filter=run.brief)
        retriever = Agent[_Run](
            name="Retriever", model=_Decided(generator), handoffs=[to_generator]
        )
        return Agent[_Run](
            name="Planner",
            model=_Decided(retriever if about_book else generator),
            handoffs=[handoff(retriever), to_generator],
            input_guardrails=[InputGuardrail(_gate, name="gate", run_in_parallel=False)],
        )

    def _usage(self, counted: ResponseUsage | None, run: _Run) -> Usage:
        """Return the usage as reported by the endpoint, or else our own estimate."""
        read = (counted.input_tokens if counted else 0) or run.asked_tokens
        wrote = (counted.output_tokens if counted else 0) or -(-run.written // _CHARACTERS)
        cost, chosen = None, self._settings
        if chosen.price_in is not None and chosen.price_out is not None:
            cost = (read * chosen.price_in + wrote * chosen.price_out) / 1e6
        return Usage(read, wrote, 1, cost)


async def _spoken(
    result: RunResultStreaming, chosen: Settings
) -> AsyncGenerator[TResponseStreamEvent, None]:
    """Yield the language model's events within the timeouts; cancel the run on exit."""
    now = asyncio.get_running_loop().time
    end = now() + chosen.timeout_s
    until, late = min(end, now() + chosen.first_token_timeout_s), ErrorCode.LATE_TO_BEGIN
    events = aiter(result.stream_events())
    try:
        while True:
            async with asyncio.timeout_at(until):
                event = await anext(events, None)
            if event is None:
                return
            if event.type == "raw_response_event" and not _is_ours(event.data):
                yield event.data
                until, late = min(end, now() + chosen.idle_timeout_s), ErrorCode.SILENT
    except TimeoutError:
        raise ProviderError(ErrorCode.LATE if until >= end else late) from None
    except (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered) as tripped:
        _log.info("a draft ended at a guardrail: %s", type(tripped).__name__)
    except RAISED as error:
        raise fault_behind(error) from None
    finally:
        result.cancel()


async def _gate(
    context: RunContextWrapper[_Run], _: Agent[Any], __: object
) -> GuardrailFunctionOutput:
    run = context.context
    passes = run.house.may_answer(run.question, run.evidence)
    return GuardrailFunctionOutput(output_info="gate", tripwire_triggered=not passes)


async def _check(
    context: RunContextWrapper[_Run], _: Agent[Any], said: object
) -> GuardrailFunctionOutput:
    run = context.context
    holds = await run.house.holds(str(said), run.evidence)
    return GuardrailFunctionOutput(output_info="check", tripwire_triggered=not holds)


# --- agents without a language model --------------------------------------------------------------

_OURS = "by-the-book"


class _Decided(Model):
    """Stub model of an agent whose handoff is decided in advance."""

    def __init__(self, to: Agent[_Run]) -> None:
        self._to = to.name

    async def get_response(self, *given: Any, **more: Any) -> ModelResponse:
        handoffs = more.get("handoffs") or given[5]
        return ModelResponse(output=[self._call(handoffs)], usage=SdkUsage(), response_id=None)

    async def stream_response(
        self, *given: Any, **more: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        said = await self.get_response(*given, **more)
        response = Response(
            id=_OURS,
            created_at=0,
            model=_OURS,
            object="response",
            output=said.output,
            tool_choice="none",
            tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=response
        )

    def _call(self, handoffs: Sequence[Handoff[Any, Any]]) -> ResponseFunctionToolCall:
        name = next(each.tool_name for each in handoffs if each.agent_name == self._to)
        return ResponseFunctionToolCall(
            type="function_call", id=name, call_id=name, name=name, arguments="{}"
        )


def _is_ours(event: TResponseStreamEvent) -> bool:
    return isinstance(event, ResponseCompletedEvent) and event.response.model == _OURS
