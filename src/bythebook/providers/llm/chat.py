"""Language models at ``/chat/completions``, streamed, and the writer that uses one.

A draft is complete only if its stream has a finish reason or ``[DONE]``: one that just ends was cut
off. A draft that ends at the length limit or at a filter is reported as such.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from bythebook.errors import ServiceError, Truncated
from bythebook.interfaces.models import Prompt
from bythebook.providers.http.client import (
    CircuitBreaker,
    Endpoint,
    HttpClient,
    ResponseReader,
    Timeouts,
    parse_json,
)
from bythebook.providers.http.errors import (
    ErrorCode,
    ProviderError,
    stream_fault,
    translate_errors,
)
from bythebook.providers.llm.budget import within_budget
from bythebook.providers.llm.draft import Draft, prompt_tokens
from bythebook.types import Role

if TYPE_CHECKING:
    from bythebook.config.sections import Model
    from bythebook.interfaces.models import Compose, DraftPiece
    from bythebook.providers.http.credentials import Account
    from bythebook.providers.llm.budget import Budget
    from bythebook.types import Evidence, Message, Question, Usage

_PROBE_TOKENS = 16
_COUNTING_S = 1.0  # wait for the usage after the last text
_UNNAMED = "response_format"  # some endpoints reject it without naming it


class LanguageModel:
    """Language model of a hosted service, called within its deadlines and budget.

    Writers and verifiers of a book share one, with what its earlier calls told.
    """

    def __init__(
        self,
        account: Account,
        settings: Model,
        web: HttpClient,
        budget: Budget | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = account.service.name
        self.account = account
        self.settings = settings
        self.web = web
        self.budget = budget
        self.breaker = breaker or CircuitBreaker()
        self.failure: ServiceError | None = None  # the last call's, if it failed
        self._rejected: set[str] = set()  # parameters that the endpoint rejected

    @property
    def timeouts(self) -> Timeouts:
        chosen = self.settings
        return Timeouts(chosen.timeout_s, chosen.first_token_timeout_s, chosen.idle_timeout_s)

    def draft(self, prompt: Prompt, *, max_tokens: int | None = None) -> Draft:
        most = max_tokens or self.settings.max_output_tokens
        return Draft(self.settings, prompt_tokens(prompt), most)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Translate the errors of a call, and keep how it ended."""
        try:
            with translate_errors(self.account.service):
                yield
        except ServiceError as error:
            self.failure = None if isinstance(error, Truncated) else error
            raise
        self.failure = None

    async def generate(
        self,
        prompt: Prompt,
        draft: Draft,
        *,
        timeouts: Timeouts | None = None,
        **parameters: object,
    ) -> AsyncGenerator[str | Usage, None]:
        """Yield the text of the draft and then its usage, also if it fails midway."""
        with self.calling():
            async with within_budget(self.budget, draft.most_tokens, draft.cost):
                body = {**self._body(prompt, draft.max_tokens), **parameters}
                stream = self._stream(body, draft, timeouts or self.timeouts)
                try:
                    async with aclosing(stream) as texts:
                        async for text in texts:
                            if text:
                                yield text
                except ProviderError:
                    if draft.accepted:
                        yield draft.cost()
                    raise
                yield draft.cost()

    async def _stream(
        self, body: dict[str, Any], draft: Draft, timeouts: Timeouts
    ) -> AsyncGenerator[str, None]:
        """Stream the draft; retry without a parameter that the endpoint rejects."""
        account, now = self.account, asyncio.get_running_loop().time
        key, began = account.usable_key(), now()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        endpoint = Endpoint(self.web, account.address, headers=headers, breaker=self.breaker)
        rejected = set(self._rejected)
        while True:
            sent = _without(body, rejected)
            parse, left = partial(_parse, draft), timeouts.less(now() - began)
            call = endpoint.stream("/chat/completions", sent, parse, timeouts=left)
            try:
                async with aclosing(call) as texts:
                    async for text in texts:
                        yield text
            except ProviderError as fault:
                parameter = fault.parameter
                if fault.code is ErrorCode.REJECTED and parameter not in sent:
                    parameter = _UNNAMED
                if parameter not in sent:
                    raise
                rejected.add(parameter)
            else:
                return
            finally:
                if draft.accepted:
                    self._rejected |= rejected

    def _body(self, prompt: Prompt, most: int) -> dict[str, Any]:
        turns = [{"role": str(role), "content": text} for role, text in prompt.turns]
        return {
            "model": self.account.model,
            "messages": [{"role": "system", "content": prompt.system}, *turns],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self.settings.temperature,
            "max_tokens": most,
        }


def _without(body: dict[str, Any], rejected: set[str]) -> dict[str, Any]:
    """Leave out rejected parameters; ``max_completion_tokens`` replaces ``max_tokens``."""
    if "max_tokens" in rejected:
        body = {**body, "max_completion_tokens": body["max_tokens"]}
    return {name: value for name, value in body.items() if name not in rejected}


class OpenAIWriter:
    """Writer that uses a language model at ``/chat/completions``."""

    def __init__(self, model: LanguageModel, *, compose: Compose) -> None:
        self.name = model.name
        self._model = model
        self._compose = compose

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[DraftPiece, None]:
        prompt = self._compose(question, evidence, history)
        async with aclosing(self._model.generate(prompt, self._model.draft(prompt))) as pieces:
            async for piece in pieces:
                yield piece

    async def probe(self) -> None:
        """Check endpoint, key and model with a request of a few tokens."""
        prompt = Prompt("Answer with one word.", ((Role.USER, "Are you there?"),))
        draft = self._model.draft(prompt, max_tokens=_PROBE_TOKENS)
        try:
            async with aclosing(self._model.generate(prompt, draft)) as pieces:
                async for _ in pieces:
                    pass
        except Truncated:
            return


# --- parsing of responses -------------------------------------------------------------------------


async def _parse(draft: Draft, response: ResponseReader) -> AsyncGenerator[str, None]:
    """Yield the texts of a response; an empty one shows progress, as in reasoning."""
    draft.begin()
    if response.is_stream:
        async with aclosing(_events(response, draft)) as events:
            async for event in events:
                for text in _texts(parse_json(event), draft):
                    yield draft.add(text)
    else:  # some endpoints never stream, whatever the request says
        whole = await response.json()
        draft.done = True
        for text in _texts(whole, draft):
            yield draft.add(text)
    draft.check_end()


async def _events(response: ResponseReader, draft: Draft) -> AsyncGenerator[str, None]:
    """Yield events until the end, or until the wait for the usage of a finished draft is over."""
    async with aclosing(response.data()) as events:
        while not draft.done:
            try:
                async with asyncio.timeout(_COUNTING_S if draft.finish else None):
                    event = await anext(events, None)
            except (TimeoutError, httpx.HTTPError):
                if draft.finish:
                    return
                raise
            if event is None:
                return
            draft.done = event.strip() == "[DONE]"
            if not draft.done:
                yield event


def _texts(chunk: Any, draft: Draft) -> list[str]:
    """Return the texts that a chunk of the stream adds to the draft."""
    if not isinstance(chunk, dict):
        raise ProviderError(ErrorCode.MALFORMED)
    if chunk.get("error"):
        raise stream_fault(chunk["error"])
    if isinstance(chunk.get("usage"), dict):
        draft.usage = chunk["usage"]
    choices = chunk.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ProviderError(ErrorCode.MALFORMED)
    texts = []
    for choice in choices[:1]:
        draft.finish = choice.get("finish_reason") or draft.finish
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, dict) or not isinstance(delta.get("content") or "", str):
            raise ProviderError(ErrorCode.MALFORMED)
        if any(delta.get(name) for name in ("content", "reasoning", "reasoning_content")):
            texts.append(delta.get("content") or "")
    return texts
