"""Writer that is an agent of the OpenAI Agents SDK.

One agent answers from the numbered passages in its prompt. With ``agentic`` it may search the book
again with its ``search_textbook`` tool, at most three times. An input guardrail ends the run before
the first call if there is no evidence. An output guardrail checks the answer against the evidence:
the SDK runs it after the text has been streamed, so it can only report; the caller checks each
sentence before it is shown.

Conversation history is quoted in the prompt. No ``Session`` of the SDK is used: it would store what
the model wrote, whereas a thread stores what was shown.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import agents as sdk
import httpx
import openai
from agents.exceptions import AgentsException
from openai.types.responses import ResponseCompletedEvent, ResponseTextDeltaEvent

from bythebook.grounding.verifier import SentenceVerifier, Supported, check
from bythebook.interfaces.models import WriterSearchResult
from bythebook.providers.http.client import Deadline, raise_for_status, translate_http_errors
from bythebook.providers.http.errors import ErrorCode, ProviderError, stream_fault
from bythebook.providers.llm.budget import within_budget
from bythebook.types import Evidence, Hit, Question, Usage

if TYPE_CHECKING:
    from agents.items import TResponseInputItem, TResponseStreamEvent

    from bythebook.answering.prompts import Quoting
    from bythebook.interfaces.models import DraftPiece, Prompt
    from bythebook.providers.http.transport import Transport
    from bythebook.providers.llm.chat import LanguageModel
    from bythebook.providers.llm.draft import Draft
    from bythebook.types import Message

_log = logging.getLogger(__name__)

MOST_SEARCHES = 3
_LONGEST_QUERY = 500
_LAST_SEARCH = "That was the last search. Answer from the passages that you have."
_NOTHING_NEW = "The book has no other passages about this."
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"([a-z_]+)"')
_DONE = re.compile(rb"^data:\s*\[DONE\]", re.MULTILINE)
# The client would also send what it finds in the environment: OPENAI_CUSTOM_HEADERS and others.
_SENT = {"host", "content-type", "content-length", "accept", "accept-encoding", "user-agent"}
_LOOK_BACK = 64  # bytes of earlier chunks: a match may span two
# Everything that a run can raise, except bugs.
_SDK_ERRORS = (openai.OpenAIError, httpx.HTTPError, AgentsException, ValueError, ProviderError)

sdk.set_tracing_disabled(True)  # on by default, and would send traces to OpenAI


@dataclass(frozen=True, slots=True)
class AgentTools:
    """What the agent needs of the book: prompts, search, and a verifier of its answers."""

    prompts: Callable[[], Quoting]
    search: Callable[[Question], Awaitable[Sequence[Hit]]]
    verifier: SentenceVerifier


@dataclass(slots=True)
class _Run:
    """State of one draft, shared by the agent's tool and guardrails."""

    tools: AgentTools
    question: Question
    evidence: Evidence
    prompts: Quoting
    draft: Draft
    searches: int = 0
    results: list[WriterSearchResult] = field(default_factory=list)  # not yielded yet
    completed: Usage = field(default_factory=Usage)  # of complete responses

    async def search(self, query: str) -> str:
        if self.searches >= MOST_SEARCHES:
            return _LAST_SEARCH
        self.searches += 1
        question = replace(self.question, text=query[:_LONGEST_QUERY], selection=None)
        hits = await self.tools.search(question)
        known = {hit.passage.id for hit in self.evidence.hits}
        new = tuple(hit for hit in hits if hit.passage.id not in known)
        if not new:
            return _NOTHING_NEW
        first = len(self.evidence.hits) + 1
        self.evidence = replace(self.evidence, hits=(*self.evidence.hits, *new))
        self.results.append(WriterSearchResult(new))
        return self.prompts.passages(new, first=first)

    def complete(self, event: ResponseCompletedEvent) -> Usage:
        """Return the usage of a complete response, and add it up."""
        if usage := event.response.usage:
            self.draft.usage = {
                "prompt_tokens": usage.input_tokens or None,
                "completion_tokens": usage.output_tokens or None,
            }
        cost = self.draft.cost()
        self.completed, self.draft.accepted = self.completed + cost, False
        return cost

    def cost(self) -> Usage:
        return self.completed + self.draft.cost()


def _may_search(context: sdk.RunContextWrapper[_Run], _: sdk.AgentBase[Any]) -> bool:
    return context.context.searches < MOST_SEARCHES


@sdk.function_tool(failure_error_function=None, is_enabled=_may_search)
async def search_textbook(context: sdk.RunContextWrapper[_Run], query: str) -> str:
    """Search the textbook for passages that were not given yet.

    Call this only if the given passages do not contain the answer. It returns further passages,
    numbered after the given ones and cited in the same way, or a note that there are none.

    Args:
        query: What to look for, in words that the textbook would use. Change the words if an
            earlier search found nothing new.
    """
    return await context.context.search(query)


@sdk.input_guardrail(name="has evidence", run_in_parallel=False)
async def _has_evidence(
    context: sdk.RunContextWrapper[_Run], _: sdk.Agent[Any], __: str | list[TResponseInputItem]
) -> sdk.GuardrailFunctionOutput:
    return sdk.GuardrailFunctionOutput(None, tripwire_triggered=not context.context.evidence.hits)


@sdk.output_guardrail(name="is supported")
async def _is_supported(
    context: sdk.RunContextWrapper[_Run], _: sdk.Agent[Any], answer: object
) -> sdk.GuardrailFunctionOutput:
    async def draft() -> AsyncGenerator[str, None]:
        yield str(answer)

    run = context.context
    verdicts = [verdict async for verdict in check(draft(), run.evidence, run.tools.verifier)]
    supported = any(isinstance(verdict, Supported) and verdict.is_own for verdict in verdicts)
    return sdk.GuardrailFunctionOutput(None, tripwire_triggered=not supported)


class AgentsWriter:
    def __init__(self, model: LanguageModel, *, tools: AgentTools) -> None:
        self.name = model.name
        self._model = model
        self._tools = tools

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[DraftPiece, None]:
        prompts, model = self._tools.prompts(), self._model
        prompt = prompts.prompt(question, evidence, history)
        run = _Run(self._tools, question, evidence, prompts, model.draft(prompt))
        calls = 1 + MOST_SEARCHES if model.settings.agentic else 1
        most = calls * run.draft.most_tokens
        with model.calling():
            async with within_budget(model.budget, most, run.cost):
                with model.breaker.watch():
                    async with aclosing(self._generate(run, prompt)) as pieces:
                        async for piece in pieces:
                            yield piece

    async def _generate(self, run: _Run, prompt: Prompt) -> AsyncGenerator[DraftPiece, None]:
        """Run the agent; yield text, search results and the usage of each call."""
        result = sdk.Runner.run_streamed(
            self._agent(run, prompt.system),
            [{"role": "user", "content": text} for _, text in prompt.turns],
            context=run,
            max_turns=1 + MOST_SEARCHES,
            run_config=sdk.RunConfig(tracing_disabled=True, trace_include_sensitive_data=False),
        )
        try:
            events = Deadline(self._model.timeouts).limit(_model_events(result))
            async with aclosing(events):
                async for event in events:
                    while run.results:
                        yield run.results.pop(0)
                    if isinstance(event, ResponseTextDeltaEvent):
                        if text := run.draft.add(event.delta):
                            yield text
                    elif isinstance(event, ResponseCompletedEvent):
                        yield run.complete(event)
                        yield "\n\n"  # text after a search starts a new paragraph
            run.draft.check_end()
        except sdk.InputGuardrailTripwireTriggered:
            _log.info("no answer was generated: there is no evidence")
        except ProviderError:
            if run.draft.accepted:
                yield run.draft.cost()
            raise

    def _agent(self, run: _Run, instructions: str) -> sdk.Agent[_Run]:
        account, chosen = self._model.account, self._model.settings
        # The client accepts those of httpx, which its type does not say.
        http_client: Any = self._model.web.client_through(
            partial(_CheckedTransport, draft=run.draft, key=account.usable_key())
        )
        client = openai.AsyncOpenAI(
            api_key="none",  # the transport sends it
            base_url=account.address,
            max_retries=0,
            timeout=None,
            http_client=http_client,
        )
        limit: dict[str, Any] = {"max_tokens": chosen.max_output_tokens}
        if account.own:  # newer models of OpenAI accept only the newer name
            limit = {"extra_args": {"max_completion_tokens": chosen.max_output_tokens}}
            limit["store"] = False  # the SDK's default is to store the answer at OpenAI
        selection_only = run.question.selection is not None and run.question.selection_only
        return sdk.Agent[_Run](
            name="Textbook assistant",
            instructions=instructions,
            model=sdk.OpenAIChatCompletionsModel(account.model, client),
            model_settings=sdk.ModelSettings(
                temperature=chosen.temperature, include_usage=True, **limit
            ),
            tools=[search_textbook] if chosen.agentic and not selection_only else [],
            input_guardrails=[_has_evidence],
            output_guardrails=[_is_supported],
        )


async def _model_events(
    result: sdk.RunResultStreaming,
) -> AsyncGenerator[TResponseStreamEvent, None]:
    """Yield the events of the language model; cancel the run on exit."""
    try:
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                yield event.data
    except sdk.InputGuardrailTripwireTriggered:
        raise
    except sdk.OutputGuardrailTripwireTriggered:
        _log.info("the evidence supports no sentence of the generated answer")
    except _SDK_ERRORS as error:
        raise _fault(error) from None
    finally:
        result.cancel()


def _fault(error: Exception) -> ProviderError:
    """Translate an error of the SDK; its cause may be one of our own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ProviderError):
            return cause
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, openai.APIError):  # within the stream
        return stream_fault(error.body)
    if isinstance(error, sdk.ModelRefusalError):
        return ProviderError(ErrorCode.FILTERED)
    too_many = isinstance(error, sdk.MaxTurnsExceeded)
    return ProviderError(ErrorCode.TOO_MUCH if too_many else ErrorCode.MALFORMED)


# --- HTTP under the SDK ---------------------------------------------------------------------------


class _CheckedTransport(httpx.AsyncBaseTransport):
    """Transport that raises a ``ProviderError`` for error responses and incomplete streams.

    The SDK takes a truncated stream for a complete answer, unless it comes from api.openai.com. A
    response is complete if it has a finish reason or ``[DONE]``.
    """

    def __init__(self, transport: Transport, *, draft: Draft, key: str | None) -> None:
        self._transport = transport
        self._draft = draft
        self._key = key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        for name in set(request.headers) - _SENT:
            del request.headers[name]
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        with translate_http_errors():
            response = await self._transport.handle_async_request(request)
            try:
                await raise_for_status(response)
                if "html" in response.headers.get("content-type", ""):
                    raise ProviderError(ErrorCode.WEB_PAGE)
            except ProviderError:
                await response.aclose()
                raise
        self._draft.begin()
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _CheckedStream(response.stream, self._draft)
        return response


class _CheckedStream(httpx.AsyncByteStream):
    def __init__(self, body: httpx.AsyncByteStream, draft: Draft) -> None:
        self._body = body
        self._draft = draft

    async def __aiter__(self) -> AsyncIterator[bytes]:
        recent, draft = b"", self._draft
        with translate_http_errors():
            async for chunk in self._body:
                recent = recent[-_LOOK_BACK:] + chunk
                for match in _FINISH.finditer(recent):
                    draft.finish = match[1].decode()
                draft.done = draft.done or _DONE.search(recent) is not None
                yield chunk
        if not (draft.finish or draft.done):
            raise ProviderError(ErrorCode.CONNECTION_LOST)

    async def aclose(self) -> None:
        await self._body.aclose()
