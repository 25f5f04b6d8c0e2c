"""Requests of the openai contract: the last user message is the question, the others its history.

Parameters of language models (temperature, tools, system messages) are ignored.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from bythebook.contracts.errors import Call
from bythebook.contracts.fields import AnyText, example
from bythebook.errors import NotFound
from bythebook.language.tokens import estimate_tokens
from bythebook.types import Message, Question, Role

MODEL = "bythebook"
TOP_K = 5
LEAST_SCORE = 0.5  # as in other contracts without a field for it
_LONGEST_QUESTION = 5000


class OpenAITextPart(BaseModel):
    type: Literal["text"]
    text: AnyText


def _text_only(content: object) -> object:
    """Reject parts that are not text with a clear message; other errors are left to the schema."""
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError("Only text can be read: send parts of the type text")
    return content


Content = Annotated[AnyText | list[OpenAITextPart] | None, BeforeValidator(_text_only)]


class OpenAIChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


class OpenAIStreamOptions(BaseModel):
    include_usage: bool | None = False


class OpenAICompletionRequest(BaseModel):
    model_config = example(
        model=MODEL,
        messages=[
            {"role": "user", "content": "What is a topic in ROS 2?"},
            {"role": "assistant", "content": "A topic is a named channel. [1]"},
            {"role": "user", "content": "How do nodes exchange messages over it?"},
        ],
    )

    model: AnyText = MODEL
    messages: list[OpenAIChatMessage] = Field(min_length=1)
    stream: bool | None = False
    stream_options: OpenAIStreamOptions | None = None
    n: int | None = Field(1, ge=1, le=1, description="only one answer")

    @model_validator(mode="after")
    def _has_a_question(self) -> Self:
        question = self.question
        if not question:
            raise ValueError("The last message of the user says nothing")
        if len(question) > _LONGEST_QUESTION:
            raise ValueError(
                f"The question has {len(question)} characters; "
                f"at most {_LONGEST_QUESTION} are allowed"
            )
        return self

    @property
    def _question_index(self) -> int:
        indices = [n for n, message in enumerate(self.messages) if message.role == "user"]
        if not indices:
            raise ValueError("No message of the user asks anything")
        return indices[-1]

    @property
    def question(self) -> str:
        return self.messages[self._question_index].text

    @property
    def earlier(self) -> list[OpenAIChatMessage]:
        return self.messages[: self._question_index]

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(message.text) for message in self.messages)

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


def read(body: OpenAICompletionRequest) -> Question:
    check_model(body.model)
    return Question(text=body.question, top_k=TOP_K, min_score=LEAST_SCORE)


def read_history(body: OpenAICompletionRequest, call: Call) -> tuple[Message, ...]:
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
