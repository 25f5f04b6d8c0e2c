"""OpenAI's contract, for third-party clients: ``POST /v1/chat/completions``, ``GET /v1/models``.

The last user message is the question, and the earlier messages are its history; parameters of
language models (temperature, tools, system messages) are ignored. A refusal is reported in the
answer's text, with ``sources: []`` and a ``refusal_type``. Each marker of an answer has a
``url_citation`` annotation. A stream sends one sentence at a time, and the sources in its last
chunk; the answer span is bold only without streaming, because it is known only at the end. Token
counts are those of the language model, or estimates if none was called. Such clients send the
whole conversation each time: for long conversations, raise ``access.body_bytes``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bythebook.answering.gate import band
from bythebook.answering.pipeline import Event
from bythebook.documents.fields import Degradable, NearbyTopic, degraded, nearby_topics
from bythebook.documents.fit import citations_of
from bythebook.errors import BookError, InvalidInput, NotFound
from bythebook.language.tokens import estimate_tokens
from bythebook.server.contracts.wire_types import Call, is_ours, sentence_of, status_of
from bythebook.types import (
    Answer,
    Citation,
    Level,
    Message,
    Question,
    Refusal,
    Reply,
    Role,
    Sentence,
)

MODEL = "bythebook"
TOP_K = 5
LEAST_SCORE = 0.5  # as in other contracts without a field for it
_LONGEST_QUESTION = 5000
_BOLD = len("**") * 2

# --- requests -------------------------------------------------------------------------------------


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


def _text_alone(content: object) -> object:
    """Reject parts that are not text with a clear message; other errors are left to the schema."""
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError("Only text can be read: send parts of the type text")
    return content


Content = Annotated[str | list[TextPart] | None, BeforeValidator(_text_alone)]


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


class StreamOptions(BaseModel):
    include_usage: bool | None = False


class CompletionRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": MODEL,
                    "messages": [
                        {"role": "user", "content": "What is a topic in ROS 2?"},
                        {"role": "assistant", "content": "A topic is a named channel. [1]"},
                        {"role": "user", "content": "How do nodes exchange messages over it?"},
                    ],
                }
            ]
        }
    )

    model: str = MODEL
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(1, ge=1, le=1, description="one answer")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        asked = self.messages[self._last].text
        if not asked:
            raise ValueError("The last message of the user says nothing")
        if len(asked) > _LONGEST_QUESTION:
            raise ValueError(
                f"The question has {len(asked)} characters; at most {_LONGEST_QUESTION} are allowed"
            )
        if "\0" in asked:
            raise ValueError("The question holds a NUL character (U+0000)")
        return self

    @property
    def _last(self) -> int:
        """Return the index of the question in the messages."""
        asked = [n for n, message in enumerate(self.messages) if message.role == "user"]
        if not asked:
            raise ValueError("No message of the user asks anything")
        return asked[-1]

    @property
    def question(self) -> str:
        return self.messages[self._last].text

    @property
    def earlier(self) -> list[ChatMessage]:
        return self.messages[: self._last]

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(message.text) for message in self.messages)

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


def read(body: CompletionRequest) -> Question:
    check_model(body.model)
    return Question(text=body.question, top_k=TOP_K, floor=LEAST_SCORE)


def read_history(body: CompletionRequest, call: Call) -> tuple[Message, ...]:
    """Return the earlier user and assistant messages; only the client stores them."""
    roles = {"user": Role.USER, "assistant": Role.ASSISTANT}
    return tuple(
        Message(roles[message.role], message.text, call.at)
        for message in body.earlier
        if message.role in roles and message.text
    )


def check_model(name: str) -> None:
    """Raise NotFound for other models: a client that wants one must not get the book instead."""
    if name != MODEL:
        raise NotFound("There is no such model here.", hint=f"Ask the model {MODEL}.")


# --- responses ------------------------------------------------------------------------------------


class UrlCitation(BaseModel):
    start_index: int = Field(ge=0)  # position of the marker in the content
    end_index: int = Field(ge=0)
    url: str
    title: str


class Annotation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class Source(BaseModel):
    number: int = Field(ge=1)  # same number as the marker in the content
    quote: str
    url: str
    link: str  # the url, with a text fragment if a browser can find the quote by one
    chapter: str
    section: str
    confidence: Level


class Usage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    total_tokens: int = Field(ge=0)


class Found(Degradable):
    """Extensions to OpenAI's own fields."""

    sources: list[Source]
    refusal_type: str | None
    nearby: list[NearbyTopic]
    # Why the offline writer wrote the answer or the rest of it; otherwise absent.
    fallback: str | None = Field(None, exclude_if=lambda why: why is None)


class AssistantMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class Choice(BaseModel):
    index: Literal[0] = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class Completion(Found):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str = MODEL
    choices: list[Choice]
    usage: Usage


class Model(BaseModel):
    id: str = MODEL
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "bythebook"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    error: ErrorDetail


def show(reply: Reply, call: Call | None = None, *, prompt_tokens: int = 0) -> Completion:
    call, outcome = call or Call(), reply.outcome
    content = _content(outcome)
    found = found_in(reply)
    message = AssistantMessage(content=content, annotations=_annotations(outcome, bold=True))
    return Completion(
        id=_id(call),
        created=_created(call),
        choices=[Choice(message=message)],
        usage=_usage(reply, prompt_tokens, content),
        **dict(found),
    )


def show_model(call: Call) -> Model:
    return Model(created=_created(call))


_CODES = {
    401: "invalid_api_key",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_TYPES = {429: "rate_limit_error", 401: "authentication_error"}


def fail(error: BookError, _: Call | None = None) -> tuple[int, Error]:
    status = status_of(error)
    usual = "server_error" if is_ours(error) else "invalid_request_error"
    return status, Error(
        error=ErrorDetail(
            message=sentence_of(error),
            type=_TYPES.get(status, usual),
            param=(error.field or None) if isinstance(error, InvalidInput) else None,
            code=_CODES.get(status),
        )
    )


def _content(outcome: Answer | Refusal) -> str:
    """Append the low-confidence disclaimer to the answer, since OpenAI has no field for it."""
    if isinstance(outcome, Refusal):
        return outcome.text
    return outcome.markdown + _below(outcome)


def _below(answer: Answer) -> str:
    return f"\n\n{answer.disclaimer}" if answer.disclaimer else ""


def _annotations(outcome: Answer | Refusal, *, bold: bool) -> list[Annotation]:
    """Return an annotation for each marker; positions depend on whether the span is bold."""
    if isinstance(outcome, Refusal):
        return []
    citations = {citation.number: citation for citation in outcome.citations}
    return [
        Annotation(
            url_citation=UrlCitation(
                start_index=start,
                end_index=end,
                url=citations[number].link,
                title=citations[number].place.path,
            )
        )
        for number, start, end in _markers(outcome, bold=bold)
    ]


def _markers(answer: Answer, *, bold: bool) -> Iterator[tuple[int, int, int]]:
    marked = answer.mark.sentence if bold and answer.mark and answer.span else None
    for n, sentence in enumerate(answer.sentences):
        through = replace(answer, sentences=answer.sentences[: n + 1]).text
        end = len(through) - sum(len(f"[{number}]") for number in sentence.citations)
        if marked is not None and n >= marked:
            end += _BOLD
        for number in sentence.citations:
            start, end = end, end + len(f"[{number}]")
            yield number, start, end


def found_in(reply: Reply) -> Found:
    outcome = reply.outcome
    return Found(
        sources=[_source(citation) for citation in citations_of(reply)],
        refusal_type=outcome.type.value if isinstance(outcome, Refusal) else None,
        nearby=nearby_topics(outcome),
        fallback=reply.fallback,
        degraded=degraded(reply.vectors),
    )


def _source(citation: Citation) -> Source:
    return Source(
        number=citation.number,
        quote=citation.quote,
        url=citation.url,
        link=citation.link,
        chapter=citation.place.chapter,
        section=citation.place.heading,
        confidence=band(citation.score),
    )


def _usage(reply: Reply, asked: int, content: str) -> Usage:
    """Return the language model's token counts, or an estimate if none was called."""
    read, written = asked, estimate_tokens(content)
    if reply.usage.calls:
        read, written = reply.usage.prompt_tokens, reply.usage.completion_tokens
    return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)


def _id(call: Call) -> str:
    return f"chatcmpl-{call.request_id.replace('-', '')}"


def _created(call: Call) -> int:
    return int(call.at.timestamp())


# --- streaming ------------------------------------------------------------------------------------


class Delta(BaseModel):
    role: Literal["assistant"] | None = Field(None, exclude_if=lambda role: role is None)
    content: str | None = Field(None, exclude_if=lambda content: content is None)
    annotations: list[Annotation] | None = Field(None, exclude_if=lambda told: told is None)


class ChunkChoice(BaseModel):
    index: Literal[0] = 0
    delta: Delta
    logprobs: None = None
    finish_reason: Literal["stop"] | None = None


class Chunk(BaseModel):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str = MODEL
    choices: list[ChunkChoice]
    usage: Usage | None = None


class LastChunk(Chunk, Found):
    """The chunk with the finish_reason."""


Told = tuple[str, BaseModel]  # an event's name, used by the stream buffer, and its payload


async def tell(
    body: CompletionRequest, journey: AsyncGenerator[Event, None], call: Call
) -> AsyncGenerator[Told, None]:
    """Yield a question's events as chunks; the last event is named ``done``."""
    content, reply = "", None

    def chunk(delta: Delta) -> Told:
        nonlocal content
        content += delta.content or ""
        told = ChunkChoice(delta=delta)
        return "chunk", Chunk(id=_id(call), created=_created(call), choices=[told])

    yield chunk(Delta(role="assistant", content=""))
    async with aclosing(journey):
        async for event in journey:
            if isinstance(event, Sentence):
                yield chunk(Delta(content=(event.lead if content else "") + event.cited))
            elif isinstance(event, Reply):
                reply, rest = event, _rest(event.outcome)
                if rest:
                    yield chunk(Delta(content=rest))
                yield "chunk" if body.wants_usage else "done", _last_chunk(event, call)
    if body.wants_usage and reply is not None:
        usage = _usage(reply, body.tokens, content)
        yield "done", Chunk(id=_id(call), created=_created(call), choices=[], usage=usage)


def tell_failure(error: BookError) -> Told:
    return "error", fail(error)[1]


def _rest(outcome: Answer | Refusal) -> str:
    """Return the text after the sentences: the refusal, or the disclaimer if there is one."""
    return outcome.text if isinstance(outcome, Refusal) else _below(outcome)


def _last_chunk(reply: Reply, call: Call) -> LastChunk:
    found = found_in(reply)
    delta = Delta(annotations=_annotations(reply.outcome, bold=False))
    return LastChunk(
        id=_id(call),
        created=_created(call),
        choices=[ChunkChoice(delta=delta, finish_reason="stop")],
        **dict(found),
    )
