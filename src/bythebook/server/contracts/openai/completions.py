"""Completions and errors of the openai contract, and its streams.

Each marker of an answer has a ``url_citation`` annotation. A stream sends one sentence at a time,
and the sources in its last chunk; the answer span is bold only without streaming, because it is
known only at the end. Token counts are those of the language model, or estimates if none was
called.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field

from bythebook.answering.gate import band
from bythebook.answering.pipeline import Event
from bythebook.contracts.errors import Call, is_ours, sentence_of, status_of
from bythebook.contracts.fields import (
    Degradable,
    NearbyTopic,
    citation_fields,
    degraded,
    nearby_topics,
    omitted,
)
from bythebook.errors import BookError, InvalidInput
from bythebook.language.tokens import estimate_tokens
from bythebook.refusals import Refusal
from bythebook.server.contracts.openai.requests import MODEL, OpenAICompletionRequest
from bythebook.server.sse import Events, NamedEvent
from bythebook.types import Answer, Level, Reply, Sentence

_BOLD = len("**") * 2


class OpenAIUrlCitation(BaseModel):
    start_index: int = Field(ge=0)  # position of the marker in the content
    end_index: int = Field(ge=0)
    url: str
    title: str


class OpenAIAnnotation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: OpenAIUrlCitation


class OpenAISource(BaseModel):
    number: int = Field(ge=1)  # same number as the marker in the content
    quote: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    chapter: str
    section: str
    confidence: Level


class OpenAIUsage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    total_tokens: int = Field(ge=0)


class ReplyDetails(Degradable):
    """Sources and refusal of a reply: extensions to OpenAI's fields, also used by MCP tools."""

    sources: list[OpenAISource]
    refusal_type: str | None
    nearby: list[NearbyTopic]
    # Why the offline writer wrote the answer or the rest of it; otherwise absent.
    fallback: str | None = omitted(None)


class OpenAIAssistantMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[OpenAIAnnotation]


class OpenAIChoice(BaseModel):
    index: Literal[0] = 0
    message: OpenAIAssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class OpenAICompletion(ReplyDetails):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str = MODEL
    choices: list[OpenAIChoice]
    usage: OpenAIUsage


class OpenAIErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    error: OpenAIErrorDetail


def show(reply: Reply, call: Call | None = None, *, prompt_tokens: int = 0) -> OpenAICompletion:
    call, outcome = call or Call(), reply.outcome
    text = outcome.markdown if isinstance(outcome, Answer) else ""
    content = text + _after_sentences(outcome)
    annotations = _annotations(outcome, is_bold=True)
    message = OpenAIAssistantMessage(content=content, annotations=annotations)
    return OpenAICompletion(
        **_head(call),
        choices=[OpenAIChoice(message=message)],
        usage=_usage(reply, prompt_tokens, content),
        **dict(details_of(reply)),
    )


_CODES = {
    401: "invalid_api_key",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_TYPES = {429: "rate_limit_error", 401: "authentication_error"}


def fail(error: BookError, _: Call | None = None) -> tuple[int, OpenAIError]:
    status = status_of(error)
    usual = "server_error" if is_ours(error) else "invalid_request_error"
    return status, OpenAIError(
        error=OpenAIErrorDetail(
            message=sentence_of(error),
            type=_TYPES.get(status, usual),
            param=(error.field or None) if isinstance(error, InvalidInput) else None,
            code=_CODES.get(status),
        )
    )


def details_of(reply: Reply) -> ReplyDetails:
    outcome = reply.outcome
    return ReplyDetails(
        sources=[
            OpenAISource(**citation_fields(citation), confidence=band(citation.score))
            for citation in reply.citations
        ],
        refusal_type=outcome.type.value if isinstance(outcome, Refusal) else None,
        nearby=nearby_topics(outcome),
        fallback=reply.fallback,
        degraded=degraded(reply.vectors),
    )


def _after_sentences(outcome: Answer | Refusal) -> str:
    """Return the refusal, or the disclaimer of an answer, since OpenAI has no field for it."""
    if isinstance(outcome, Refusal):
        return outcome.text
    return f"\n\n{outcome.disclaimer}" if outcome.disclaimer else ""


def _annotations(outcome: Answer | Refusal, *, is_bold: bool) -> list[OpenAIAnnotation]:
    """Return an annotation for each marker; positions depend on whether the span is bold."""
    if isinstance(outcome, Refusal):
        return []
    citations = {citation.number: citation for citation in outcome.citations}
    return [
        OpenAIAnnotation(
            url_citation=OpenAIUrlCitation(
                start_index=start,
                end_index=end,
                url=citations[number].link,
                title=citations[number].place.path,
            )
        )
        for number, start, end in _markers(outcome, is_bold=is_bold)
    ]


def _markers(answer: Answer, *, is_bold: bool) -> Iterator[tuple[int, int, int]]:
    bold_sentence = answer.mark.sentence if is_bold and answer.mark and answer.span else None
    for n, sentence in enumerate(answer.sentences):
        text = replace(answer, sentences=answer.sentences[: n + 1]).text
        end = len(text) - sum(len(f"[{number}]") for number in sentence.markers)
        if bold_sentence is not None and n >= bold_sentence:
            end += _BOLD
        for number in sentence.markers:
            start, end = end, end + len(f"[{number}]")
            yield number, start, end


def _usage(reply: Reply, prompt_tokens: int, content: str) -> OpenAIUsage:
    """Return the language model's token counts, or an estimate if none was called."""
    read, written = prompt_tokens, estimate_tokens(content)
    if reply.usage.calls:
        read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
    return OpenAIUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


def _head(call: Call) -> dict[str, Any]:
    return {"id": f"chatcmpl-{call.request_id.replace('-', '')}", "created": created(call)}


def created(call: Call) -> int:
    return int(call.at.timestamp())


# --- streaming ------------------------------------------------------------------------------------


class OpenAIDelta(BaseModel):
    role: Literal["assistant"] | None = omitted(None)
    content: str | None = omitted(None)
    annotations: list[OpenAIAnnotation] | None = omitted(None)


class OpenAIChunkChoice(BaseModel):
    index: Literal[0] = 0
    delta: OpenAIDelta
    logprobs: None = None
    finish_reason: Literal["stop"] | None = None


class OpenAIChunk(BaseModel):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str = MODEL
    choices: list[OpenAIChunkChoice]
    usage: OpenAIUsage | None = None


class OpenAILastChunk(OpenAIChunk, ReplyDetails):
    """The chunk with the finish_reason."""


async def stream_events(
    body: OpenAICompletionRequest, events: AsyncGenerator[Event, None], call: Call
) -> Events:
    """Yield a question's events as chunks; the last event is named ``done``."""
    content, reply = "", None

    def chunk(delta: OpenAIDelta) -> NamedEvent:
        nonlocal content
        content += delta.content or ""
        choices = [OpenAIChunkChoice(delta=delta)]
        return "chunk", OpenAIChunk(**_head(call), choices=choices)

    yield chunk(OpenAIDelta(role="assistant", content=""))
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Sentence):
                yield chunk(OpenAIDelta(content=(event.lead if content else "") + event.cited))
            elif isinstance(event, Reply):
                reply, rest = event, _after_sentences(event.outcome)
                if rest:
                    yield chunk(OpenAIDelta(content=rest))
                yield "chunk" if body.wants_usage else "done", _last_chunk(event, call)
    if body.wants_usage and reply is not None:
        usage = _usage(reply, body.tokens, content)
        yield "done", OpenAIChunk(**_head(call), choices=[], usage=usage)


def stream_failure(error: BookError) -> NamedEvent:
    return "error", fail(error)[1]


def _last_chunk(reply: Reply, call: Call) -> OpenAILastChunk:
    delta = OpenAIDelta(annotations=_annotations(reply.outcome, is_bold=False))
    return OpenAILastChunk(
        **_head(call),
        choices=[OpenAIChunkChoice(delta=delta, finish_reason="stop")],
        **dict(details_of(reply)),
    )
