"""A question and its evidence in, a draft by the OpenAI Agents SDK out.

Three agents, as S2 has them. The *Planner* sends a question about the book to the *Retriever*, and
one about a selection straight on; the Retriever hands the passages to the *Answer Generator*. The
first two decide by functions of ours and cost nothing; only the third asks a language model, once.
With ``agentic`` it may also search the book again, three times at most, by ``search_textbook``.

S4's three layers: the instructions; the guardrails, which are the gate before and the check behind;
and the confidence, which the gate weighs. The SDK asks an output guardrail when all has streamed,
too late to hold anything back: the sentences of a draft are checked as they are yielded here.

What was said before comes from our own threads, quoted in the prompt. No ``Session`` of the SDK is
given: it would keep what the model wrote, and a thread keeps what was shown.
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

from bythebook.book.tokens import estimate_tokens
from bythebook.model import Evidence, Hit, Question, Usage
from bythebook.ports import Found
from bythebook.providers.agents_wire import RAISED, Ending, fault_behind, run_watched
from bythebook.providers.breaker import Breaker
from bythebook.providers.faults import Fault, Kind, told

if TYPE_CHECKING:
    from agents.items import TResponseStreamEvent

    from bythebook.model import Message
    from bythebook.ports import Piece, Prompt
    from bythebook.providers.accounts import Account
    from bythebook.providers.budget import Budget
    from bythebook.settings import Model as Settings

_log = logging.getLogger(__name__)

MOST_SEARCHES = 3
_HAND_OVERS = 2  # Planner to Retriever, and on to the Answer Generator
_LONGEST_QUERY = 500
_CHARACTERS = 4  # of a token, where nobody counted
_LONGEST_TOKEN = 12  # characters; on average no model's are as long
_ENOUGH = "That was the last search. Answer from the passages that you have."
_NOTHING = "The book has no other passages about this."

set_tracing_disabled(True)  # on by default, and what it traces would leave the house


class Quoting(Protocol):
    """What one draft's prompts are made by: all under the same code."""

    def prompt(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> Prompt: ...

    def passages(self, hits: Sequence[Hit], *, first: int = 1) -> str: ...


@dataclass(frozen=True, slots=True)
class House:
    """Our own functions, which the agents are built over."""

    quoting: Callable[[], Quoting]
    is_about_book: Callable[[Question], bool]  # by the plan; otherwise a selection is all there is
    may_answer: Callable[[Question, Evidence], bool]  # by the gate
    holds: Callable[[str, Evidence], Awaitable[bool]]  # by the check: whether anything of it does
    search: Callable[[Question], Awaitable[Sequence[Hit]]]


@dataclass(slots=True)
class _Run:
    """One draft, as its agents, guardrails and its tool see it."""

    house: House
    question: Question
    evidence: Evidence
    quoting: Quoting
    prompt: Prompt
    searches: int = 0
    found: list[Found] = field(default_factory=list)  # not told yet
    usage: Usage = field(default_factory=Usage)  # of the calls that came to their end
    written: int = 0  # characters of the one that has not

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
        self.found.append(Found(new))
        return self.quoting.passages(new, first=first)

    @property
    def asked_tokens(self) -> int:
        said = [self.prompt.system, *(text for _, text in self.prompt.turns)]
        return sum(map(estimate_tokens, said))

    def brief(self, handed: HandoffInputData) -> HandoffInputData:
        """What the Answer Generator gets to see: the prompt, and nothing of what led to it."""
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
        house: House,
        model: Callable[[], Model],
        breaker: Breaker | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.name = account.named.name
        self._account = account
        self._settings = settings
        self._house = house
        self._breaker = breaker or Breaker()
        self._budget = budget
        self._model = model

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[Piece, None]:
        quoting = self._house.quoting()
        prompt = quoting.prompt(question, evidence, history)
        run = _Run(self._house, question, evidence, quoting, prompt)
        with told(self._account.named):
            self._admit()
            try:
                async with self._within_budget(run), aclosing(self._drafted(run)) as pieces:
                    async for piece in pieces:
                        yield piece
            except Fault as fault:
                self._note(fault)
                raise
            self._note(None)

    @asynccontextmanager
    async def _within_budget(self, run: _Run) -> AsyncIterator[None]:
        """What the draft may cost at most is set aside, and what it did cost is booked."""
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
            raise Fault(Kind.RESTING, retry_after=wait_s)

    def _note(self, fault: Fault | None) -> None:
        """A service that refuses a request for a reason is well."""
        if fault is not None and fault.retryable:
            self._breaker.failed()
        else:
            self._breaker.succeeded()

    async def _drafted(self, run: _Run) -> AsyncGenerator[Piece, None]:
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
                            raise Fault(Kind.TOO_MUCH)
                        yield event.delta
                    elif isinstance(event, ResponseCompletedEvent):
                        cost = self._usage(event.response.usage, run)
                        run.usage, run.written = run.usage + cost, 0
                        yield cost
                        yield "\n\n"  # what comes after a search begins anew
            ending.check()
        except Fault:
            if run.written:
                yield self._usage(None, run)
            raise

    def _planner(self, run: _Run) -> Agent[_Run]:
        """The first of the three; each knows whom it can hand over to."""
        about_book = self._house.is_about_book(run.question)
        chosen = self._settings
        limit: dict[str, Any] = {"max_tokens": chosen.max_output_tokens}
        if self._account.own:  # its newer models know only the newer name
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
        """As the endpoint counted it; our own estimate where it did not."""
        read = (counted.input_tokens if counted else 0) or run.asked_tokens
        wrote = (counted.output_tokens if counted else 0) or -(-run.written // _CHARACTERS)
        cost, chosen = None, self._settings
        if chosen.price_in is not None and chosen.price_out is not None:
            cost = (read * chosen.price_in + wrote * chosen.price_out) / 1e6
        return Usage(read, wrote, 1, cost)


async def _spoken(
    result: RunResultStreaming, chosen: Settings
) -> AsyncGenerator[TResponseStreamEvent, None]:
    """What the language model says, in time; nothing of it goes on when we leave."""
    now = asyncio.get_running_loop().time
    end = now() + chosen.timeout_s
    until, late = min(end, now() + chosen.first_token_s), Kind.LATE_TO_BEGIN
    events = aiter(result.stream_events())
    try:
        while True:
            async with asyncio.timeout_at(until):
                event = await anext(events, None)
            if event is None:
                return
            if event.type == "raw_response_event" and not _is_ours(event.data):
                yield event.data
                until, late = min(end, now() + chosen.gap_s), Kind.SILENT
    except TimeoutError:
        raise Fault(Kind.LATE if until >= end else late) from None
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


# --- agents that need no language model -----------------------------------------------------------

_OURS = "by-the-book"


class _Decided(Model):
    """The model of an agent that knows without asking whom to hand over to."""

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
