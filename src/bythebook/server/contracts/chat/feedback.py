"""Feedback of readers on answers."""

from __future__ import annotations

import uuid
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import UUID4, BaseModel, Field, StringConstraints, model_validator

from bythebook.documents.fields import Text, now
from bythebook.interfaces.conversations import Feedback
from bythebook.server.api_docs import examples
from bythebook.server.contracts.base import Services, example


class ChatFeedbackVerdict(StrEnum):
    UP = "up"
    DOWN = "down"


class ChatFeedbackReason(StrEnum):
    WRONG = "wrong"
    INCOMPLETE = "incomplete"
    UNRELATED = "unrelated"
    UNCLEAR = "unclear"
    SOURCE = "source"


class ChatFeedbackRequest(BaseModel):
    model_config = example(
        query_id="3f2b8a52-6f0e-4f0a-9d3c-0c6f3a1b2c4d",
        verdict="down",
        reason="incomplete",
        agreed=False,
    )

    verdict: ChatFeedbackVerdict
    query_id: UUID4 | None = Field(None, description="from the `done` event of the stream")
    reason: ChatFeedbackReason | None = None
    text: Annotated[Text, StringConstraints(max_length=1000)] | None = None
    agreed: bool = Field(False, strict=True, description="the author may read the text")

    @model_validator(mode="after")
    def _has_no_text_without_consent(self) -> Self:
        if self.text is not None and not self.agreed:
            raise ValueError("text is kept only where agreed is true")
        return self


class ChatFeedbackResponse(BaseModel):
    kept: bool


def read_feedback(body: ChatFeedbackRequest, *, at: datetime) -> Feedback:
    """Convert the request; a second verdict on the same question replaces the first."""
    query = str(body.query_id) if body.query_id else None
    return Feedback(
        id=query or str(uuid.uuid4()),
        query=query,
        verdict=body.verdict.value,
        reason=body.reason.value if body.reason else None,
        text=body.text,
        given_at=at,
    )


def add_feedback_route(router: APIRouter, services: Services) -> None:
    @router.post("/feedback", responses=examples.response(kept=ChatFeedbackResponse(kept=True)))
    async def give_feedback(body: ChatFeedbackRequest) -> ChatFeedbackResponse:
        """Rate an answer; your text is stored only with your consent."""
        feedback = services.book.feedback
        if feedback is not None:
            await feedback.add(read_feedback(body, at=now()))
        return ChatFeedbackResponse(kept=feedback is not None)
