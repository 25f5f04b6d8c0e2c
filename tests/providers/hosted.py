"""Writers and embedders for tests, on a loopback server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from bythebook.config.settings import Settings, load_settings
from bythebook.interfaces.writer import Prompt
from bythebook.providers.embeddings.hosted import HostedEmbedder
from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.client import HttpClient
from bythebook.providers.http.credentials import embedder_account, writer_account
from bythebook.providers.llm.budget import Budget
from bythebook.providers.llm.openai import OpenAIWriter
from bythebook.providers.llm.service import ModelService
from bythebook.providers.registry import choose_provider
from bythebook.types import Evidence, Message, Question, Role, Usage

QUESTION, EVIDENCE = Question("What lifts a kite?"), Evidence()
# Timeouts that no busy machine reaches; and short ones, for tests of timeouts.
CALM = {"timeout_s": 60.0, "first_token_timeout_s": 60.0, "idle_timeout_s": 60.0}
HURRIED = {"timeout_s": 1.0, "first_token_timeout_s": 0.4, "idle_timeout_s": 0.3}


def settings_for(
    url: str | None, environ: dict[str, str] | None = None, **model: object
) -> Settings:
    chosen = {"base_url": url, **model}
    return load_settings({"model": chosen, "embedding": {"base_url": url}}, environ=environ or {})


def compose(question: Question, evidence: Evidence, history: Sequence[Message]) -> Prompt:
    del evidence, history
    return Prompt("Be brief.", ((Role.USER, question.text),))


@asynccontextmanager
async def writer_at(
    url: str | None,
    name: str = "openai:test-model",
    *,
    environ: dict[str, str] | None = None,
    breaker: CircuitBreaker | None = None,
    budget: Budget | None = None,
    web: HttpClient | None = None,
    **model: Any,
) -> AsyncIterator[OpenAIWriter]:
    own = None if web else HttpClient()
    settings = settings_for(url, environ, **{**CALM, "api_key": "sk-secret", **model})
    provider, _, what = name.partition(":")
    account = writer_account(provider, what, settings)
    try:
        service = ModelService(
            account, settings.model, web or own, budget, breaker or CircuitBreaker()
        )
        yield OpenAIWriter(service, compose=compose)
    finally:
        if own is not None:
            await own.close()
        if budget is not None:
            await budget.close()


@asynccontextmanager
async def embedder_at(
    url: str | None,
    name: str,
    *,
    environ: dict[str, str] | None = None,
    web: HttpClient | None = None,
    **embedding: Any,
) -> AsyncIterator[HostedEmbedder]:
    own = None if web else HttpClient()
    chosen = {"base_url": url, "api_key": "sk-secret", "query_timeout_s": 60.0, "timeout_s": 60.0}
    settings = load_settings({"embedding": {**chosen, **embedding}}, environ=environ or {})
    make, provider, model = choose_provider("embedders", name)
    try:
        yield make(embedder_account(provider, model, settings), settings.embedding, web=web or own)
    finally:
        if own is not None:
            await own.close()


async def drafted(writer: OpenAIWriter) -> tuple[str, Usage]:
    text, used = "", Usage()
    async with aclosing(writer.write(QUESTION, EVIDENCE, ())) as pieces:
        async for piece in pieces:
            if isinstance(piece, str):
                text += piece
            elif isinstance(piece, Usage):
                used += piece
    return text, used
