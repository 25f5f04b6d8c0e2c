"""Writer and embedder for OpenAI-compatible endpoints.

A draft is complete only if its stream has a finish reason or ``[DONE]``: one that just ends was cut
off. A draft that ends at the length limit or at a filter is reported as such.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from bythebook.errors import Truncated
from bythebook.interfaces.writer import Prompt
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.embeddings.hosted import HostedEmbedder, ModelSpec, known_model
from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.client import (
    Body,
    Endpoint,
    HttpClient,
    Read,
    Timeouts,
    fault_of,
    parsed,
)
from bythebook.providers.http.errors import ErrorCode, ProviderError, translate_errors
from bythebook.types import Role, Usage

if TYPE_CHECKING:
    from bythebook.config.settings import Embedding, Model
    from bythebook.interfaces.embedding import TextRole
    from bythebook.interfaces.writer import Compose, DraftPiece
    from bythebook.providers.http.credentials import Account
    from bythebook.providers.llm.budget import Budget
    from bythebook.types import Evidence, Message, Question

_TRIES = 3
_PER_TURN = 8  # overhead tokens per message, at most
_LONGEST_TOKEN = 12  # characters; above the average of any model
_PROBE_TOKENS = 16
_THINK, _THOUGHT = "<think>", "</think>"
_COUNTING_S = 1.0  # wait for the usage after the last text
_CUT_SHORT = {"length", "max_tokens", "model_length"}
_FILTERED = {"content_filter", "safety", "recitation", "prohibited_content"}


class Thoughts:
    """Filter that removes the ``<think>…</think>`` block that some models send first."""

    def __init__(self) -> None:
        self._held = ""  # text that is, or may be, in the block
        self._over = False

    def taken_out(self, text: str) -> str:
        """Return the text without the block; a possible start of it is held until the next call."""
        if self._over:
            return text
        self._held += text
        start = self._held.lstrip()
        if start.startswith(_THINK):
            _, end, answer = start.partition(_THOUGHT)
            self._over = bool(end)
            return answer.lstrip() if end else ""
        if _THINK.startswith(start):
            return ""
        self._over = True
        return self._held


@dataclass(slots=True)
class _Draft:
    """State of a draft in progress."""

    most: int  # characters allowed
    taken: bool = False  # the endpoint accepted the request: from here on it costs tokens
    characters: int = 0  # including those in the think block
    said: bool = False
    finish: str | None = None
    done: bool = False  # [DONE] was received
    usage: Mapping[str, Any] = field(default_factory=dict)

    thoughts: Thoughts = field(default_factory=Thoughts)

    def begin(self) -> None:
        self.taken = True
        self.finish, self.done, self.usage, self.thoughts = None, False, {}, Thoughts()

    def add(self, text: str) -> str:
        self.characters += len(text)
        if self.characters > self.most:
            raise ProviderError(ErrorCode.TOO_MUCH)
        text = self.thoughts.taken_out(text)
        self.said = self.said or bool(text)
        return text

    def end(self) -> None:
        """Raise if the draft is truncated, filtered, cut off or empty."""
        if self.finish in _CUT_SHORT:
            raise ProviderError(ErrorCode.TRUNCATED)
        if self.finish in _FILTERED:
            raise ProviderError(ErrorCode.FILTERED)
        if self.finish == "error" or not (self.finish or self.done):
            raise ProviderError(ErrorCode.CUT)
        if not self.said:
            raise ProviderError(ErrorCode.EMPTY)


class OpenAIWriter:
    """Writer that uses a language model at ``/chat/completions``."""

    def __init__(
        self,
        account: Account,
        settings: Model,
        *,
        compose: Compose,
        web: HttpClient,
        budget: Budget | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = account.named.name
        self._account = account
        self._settings = settings
        self._compose = compose
        self._web = web
        self._budget = budget
        self._breaker = breaker or CircuitBreaker()
        self._patience = Timeouts(
            settings.timeout_s, settings.first_token_timeout_s, settings.idle_timeout_s, _TRIES
        )
        self._refused: set[str] = set()  # parameters that the endpoint rejected

    async def write(
        self, question: Question, evidence: Evidence, history: Sequence[Message]
    ) -> AsyncGenerator[DraftPiece, None]:
        prompt = self._compose(question, evidence, history)
        async with aclosing(self._written(prompt, self._settings.max_output_tokens)) as pieces:
            async for piece in pieces:
                yield piece

    async def probe(self) -> None:
        """Check endpoint, key and model with a request of a few tokens."""
        prompt = Prompt("Answer with one word.", ((Role.USER, "Are you there?"),))
        try:
            async with aclosing(self._written(prompt, _PROBE_TOKENS)) as pieces:
                async for _ in pieces:
                    pass
        except Truncated:
            return

    async def _written(self, prompt: Prompt, most: int) -> AsyncGenerator[DraftPiece, None]:
        """Yield the text of the draft and then its usage, also if it fails midway."""
        draft = _Draft(most * _LONGEST_TOKEN)
        asked = _estimate(prompt)
        with translate_errors(self._account.named):
            day = await self._budget.reserve(asked + most) if self._budget else ""
            try:
                async with aclosing(self._drafted(prompt, most, draft)) as texts:
                    async for text in texts:
                        if text:
                            yield text
            except ProviderError:
                if draft.taken:
                    yield self._usage(draft, asked)
                raise
            else:
                yield self._usage(draft, asked)
            finally:
                if self._budget:
                    spent = self._usage(draft, asked)
                    tokens = spent.prompt_tokens + spent.completion_tokens if draft.taken else 0
                    await self._budget.settle(day, asked + most, tokens)

    async def _drafted(self, prompt: Prompt, most: int, draft: _Draft) -> AsyncGenerator[str, None]:
        """Stream the draft; retry without a parameter that the endpoint rejects."""
        endpoint = self._endpoint()
        read, now = _reader(draft), asyncio.get_running_loop().time
        began = now()
        while True:
            body, patience = self._body(prompt, most), self._patience.less(now() - began)
            call = endpoint.stream("/chat/completions", body, read, patience=patience)
            try:
                async with aclosing(call) as texts:
                    async for text in texts:
                        yield text
            except ProviderError as fault:
                if fault.parameter not in body:
                    raise
                self._refused.add(fault.parameter)
            else:
                return

    def _endpoint(self) -> Endpoint:
        key = self._account.usable_key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return Endpoint(self._web, self._account.address, headers=headers, breaker=self._breaker)

    def _body(self, prompt: Prompt, most: int) -> dict[str, Any]:
        turns = [{"role": str(role), "content": said} for role, said in prompt.turns]
        body: dict[str, Any] = {
            "model": self._account.model,
            "messages": [{"role": "system", "content": prompt.system}, *turns],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self._settings.temperature,
            "max_tokens": most,
        }
        if "max_tokens" in self._refused:
            body["max_completion_tokens"] = most
        return {name: value for name, value in body.items() if name not in self._refused}

    def _usage(self, draft: _Draft, asked: int) -> Usage:
        """Return the usage as reported by the endpoint, or else our own estimate."""
        read = _count(draft.usage.get("prompt_tokens"), asked)
        written = _count(draft.usage.get("completion_tokens"), -(-draft.characters // 4))
        cost = None
        if self._settings.price_in is not None and self._settings.price_out is not None:
            cost = (read * self._settings.price_in + written * self._settings.price_out) / 1e6
        return Usage(read, written, 1, cost)


def _estimate(prompt: Prompt) -> int:
    said = [prompt.system, *(text for _, text in prompt.turns)]
    return sum(estimate_tokens(text) + _PER_TURN for text in said)


def _count(given: object, otherwise: int) -> int:
    return given if isinstance(given, int) and given >= 0 else otherwise


# --- parsing of responses -------------------------------------------------------------------------


def _reader(draft: _Draft) -> Read[str]:
    """Return a parser of a response into texts; an empty one shows progress, as in reasoning."""

    async def read(answer: Body) -> AsyncGenerator[str, None]:
        draft.begin()
        if answer.is_stream:
            async with aclosing(_events(answer, draft)) as events:
                async for event in events:
                    for text in _texts(parsed(event), draft):
                        yield draft.add(text)
        else:  # some endpoints never stream, whatever the request says
            whole = await answer.json()
            draft.done = True
            for text in _texts(whole, draft):
                yield draft.add(text)
        draft.end()

    return read


async def _events(answer: Body, draft: _Draft) -> AsyncGenerator[str, None]:
    """Yield events until the end, or until the wait for the usage of a finished draft is over."""
    async with aclosing(answer.data()) as events:
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


def _texts(chunk: Any, draft: _Draft) -> list[str]:
    """Return the texts that a chunk of the stream adds to the draft."""
    if not isinstance(chunk, dict):
        raise ProviderError(ErrorCode.GARBLED)
    if chunk.get("error"):
        raise _mid_stream(chunk["error"])
    if isinstance(chunk.get("usage"), dict):
        draft.usage = chunk["usage"]
    choices = chunk.get("choices") or []
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise ProviderError(ErrorCode.GARBLED)
    texts = []
    for choice in choices[:1]:
        draft.finish = choice.get("finish_reason") or draft.finish
        said = choice.get("delta") or choice.get("message") or {}
        if not isinstance(said, dict) or not isinstance(said.get("content") or "", str):
            raise ProviderError(ErrorCode.GARBLED)
        if any(said.get(name) for name in ("content", "reasoning", "reasoning_content")):
            texts.append(said.get("content") or "")
    return texts


def _mid_stream(error: Any) -> ProviderError:
    """Translate an error sent within the stream; its code, if any, is read as an HTTP status."""
    code = error.get("code") if isinstance(error, dict) else None
    return fault_of(code if isinstance(code, int) and 400 <= code < 600 else 500, str(error))


# --- embeddings -----------------------------------------------------------------------------------

_SEARCH = "Represent this sentence for searching relevant passages: "

OPENAI_EMBEDDERS = {
    "text-embedding-3-small": ModelSpec(1536, 8191),
    "text-embedding-3-large": ModelSpec(3072, 8191),
}
# Ollama truncates long input silently: these are the limits of the models.
OLLAMA_EMBEDDERS = {
    "nomic-embed-text": ModelSpec(
        768, 2048, {"query": "search_query: ", "passage": "search_document: "}
    ),
    "mxbai-embed-large": ModelSpec(1024, 512, {"query": _SEARCH}),
    "snowflake-arctic-embed": ModelSpec(1024, 512, {"query": _SEARCH}),
    "all-minilm": ModelSpec(384, 256),
    "bge-m3": ModelSpec(1024, 8192),
    "embeddinggemma": ModelSpec(
        768, 2048, {"query": "task: search result | query: ", "passage": "title: none | text: "}
    ),
}
_UNKNOWN = ModelSpec(0, 512)


@dataclass(frozen=True, slots=True)
class OpenAIWire:
    model: str
    dimensions: int | None = None  # if vectors are to be shortened
    path: str = "/embeddings"
    most_texts: int = 128

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, texts: Sequence[str], role: TextRole) -> object:
        del role
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return body | ({"dimensions": self.dimensions} if self.dimensions else {})

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        rows = sorted(reply["data"], key=lambda row: int(row["index"]))
        return [row["embedding"] for row in rows]


def openai_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    """Return an embedder for ``openai:…`` or ``ollama:…``, at any compatible address."""
    table = OLLAMA_EMBEDDERS if account.provider == "ollama" else OPENAI_EMBEDDERS
    known = known_model(account.model, table, unknown=_UNKNOWN)
    model = account.model.partition("@")[0]
    shorter = model in OPENAI_EMBEDDERS and known.dimension != OPENAI_EMBEDDERS[model].dimension
    wire = OpenAIWire(model, known.dimension if shorter else None)
    return HostedEmbedder(account, settings, known=known, wire=wire, web=web)
