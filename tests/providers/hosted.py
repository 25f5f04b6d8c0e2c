"""Writers, verifiers and embedders for tests, on a loopback server."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from bythebook.answering.prompts import compose_support
from bythebook.config.settings import Settings, load_settings
from bythebook.interfaces.models import Prompt
from bythebook.language.terms import terms_of
from bythebook.providers.embeddings.hosted import HostedEmbedder
from bythebook.providers.http.client import CircuitBreaker, HttpClient
from bythebook.providers.http.credentials import embedder_account, writer_account
from bythebook.providers.llm.budget import Budget
from bythebook.providers.llm.chat import LanguageModel, OpenAIWriter
from bythebook.providers.llm.support import ModelSupport
from bythebook.providers.registry import choose_provider
from bythebook.types import Evidence, Message, Question, Role, Usage
from tests.providers.loopback import Request, Step, chat

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
    url: str | None, name: str = "openai:test-model", **parts: Any
) -> AsyncIterator[OpenAIWriter]:
    async with model_at(url, name, **parts) as model:
        yield OpenAIWriter(model, compose=compose)


@asynccontextmanager
async def model_at(
    url: str | None,
    name: str = "openai:test-model",
    *,
    environ: dict[str, str] | None = None,
    breaker: CircuitBreaker | None = None,
    budget: Budget | None = None,
    web: HttpClient | None = None,
    **model: Any,
) -> AsyncIterator[LanguageModel]:
    own = None if web else HttpClient()
    settings = settings_for(url, environ, **{**CALM, "api_key": "sk-secret", **model})
    provider, _, what = name.partition(":")
    account = writer_account(provider, what, settings)
    try:
        yield LanguageModel(
            account, settings.model, web or own, budget, breaker or CircuitBreaker()
        )
    finally:
        if own is not None:
            await own.close()
        if budget is not None:
            await budget.close()


@asynccontextmanager
async def support_at(url: str, *, tokens: int = 6000, **parts: Any) -> AsyncIterator[ModelSupport]:
    async with model_at(url, **parts) as model:
        yield ModelSupport(model, compose=partial(compose_support, tokens=tokens))


def quoted(request: Request, what: str) -> list[str]:
    """Return the texts that a request quotes between tags of one kind."""
    tags = rf"<{what}-[0-9a-f]{{16}}[^>]*>\n(.*?)\n</{what}-[0-9a-f]{{16}}>"
    return re.findall(tags, request.body["messages"][1]["content"], re.DOTALL)


def judge_by_terms(request: Request) -> list[Step]:
    """Answer a request for verification: a sentence is supported if one passage has its terms."""
    passages = [set(terms_of(text)) for text in quoted(request, "passage")]
    entries = []
    for number, sentence in enumerate(quoted(request, "sentence"), 1):
        stating = [n for n, terms in enumerate(passages, 1) if terms.issuperset(terms_of(sentence))]
        supported = "yes" if stating else "no"
        passage = stating[0] if stating else None
        entries.append({"sentence": number, "supported": supported, "passage": passage})
    return chat(json.dumps({"sentences": entries}))


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
