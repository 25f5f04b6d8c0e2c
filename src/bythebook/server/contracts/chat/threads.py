"""Threads of the chat contract, visible to their owner only, and feedback on answers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from fastapi import APIRouter, Query, Request
from pydantic import UUID4, BaseModel, Field, StringConstraints, model_validator

from bythebook.contracts.chat import (
    ChatError,
    ConversationThread,
    fail,
    show_thread,
)
from bythebook.contracts.fields import Moment, Text, example, now
from bythebook.interfaces.conversations import Feedback, ThreadSummary, no_such_thread
from bythebook.server import examples
from bythebook.server.contracts.base import Services, reader_of
from bythebook.server.requests import Client

_LAST_OFFSET = 2**31 - 1  # the largest integer that every database supports
_Wanted = Annotated[Text, StringConstraints(pattern=r'^[^:"\\]+:.', max_length=500)]
_THREAD, _HISTORY = "/chat/threads/{thread_id}", "/session/{thread_id}/history"
NOT_FOUND = examples.error_responses(ChatError, fail, (404,))


class ChatListedThread(BaseModel):
    """Thread without its messages."""

    thread_id: UUID4
    created_at: Moment
    updated_at: Moment
    topic_summary: str | None
    message_count: int = Field(ge=0)
    archived: bool


class ChatThreadList(BaseModel):
    threads: list[ChatListedThread]
    next_offset: int | None  # start of the next page; null on the last page


def show_threads(threads: Sequence[ThreadSummary], *, limit: int, offset: int) -> ChatThreadList:
    """Return a page of ``limit`` threads; one more in ``threads`` means there is another page."""
    return ChatThreadList(
        threads=[
            ChatListedThread(
                thread_id=uuid.UUID(thread.id),
                created_at=thread.created_at,
                updated_at=thread.updated_at,
                topic_summary=thread.topic_summary,
                message_count=thread.messages,
                archived=thread.archived_at is not None,
            )
            for thread in threads[:limit]
        ],
        next_offset=offset + limit if len(threads) > limit else None,
    )


def links_to_thread(thread: str) -> dict[str, examples.Link]:
    """Return the OpenAPI links of a thread; ``thread`` is the runtime expression of its id."""
    message = {"message": "Tell me more.", "session_id": thread}
    return {
        "read": examples.link("get", _THREAD, thread_id=thread),
        "history": examples.link("get", _HISTORY, thread_id=thread),
        "go_on": examples.link("post", "/chat/run", body=message),
        "delete": examples.link("delete", _THREAD, thread_id=thread),
    }


def add_thread_routes(router: APIRouter, services: Services) -> None:
    threads = services.book.threads
    page = examples.response(threads=show_threads(examples.THREADS, limit=20, offset=0))
    page[200]["links"] = links_to_thread("$response.body#/threads/0/thread_id") | {
        "next": examples.link("get", "/chat/threads", offset="$response.body#/next_offset")
    }

    @router.get("/chat/threads", responses=NOT_FOUND | page)
    async def list_threads(
        client: Client,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        offset: Annotated[int, Query(ge=0, le=_LAST_OFFSET)] = 0,
        metadata: Annotated[
            list[_Wanted], Query(description="only conversations with this metadata: `key:value`")
        ] = [],  # noqa: B006
    ) -> ChatThreadList:
        """List the conversations of your API key, most recently updated first; without a key, none.

        Clients without a key cannot be told apart: they have access to a conversation only by its
        id.
        """
        if client.owner is None:
            return ChatThreadList(threads=[], next_offset=None)
        wanted = [(key, value) for key, _, value in (each.partition(":") for each in metadata)]
        listed = await threads.list(
            owner=client.owner, limit=limit + 1, offset=offset, metadata=wanted
        )
        return show_threads(listed, limit=limit, offset=offset)

    async def read_thread(thread_id: UUID4, client: Client, request: Request) -> ConversationThread:
        """Return a conversation with its last 50 messages."""
        thread = await threads.read(str(thread_id), owner=client.owner)
        if thread is None:
            raise no_such_thread()
        return show_thread(thread, reader_of(request))

    async def delete_thread(thread_id: UUID4, client: Client) -> None:
        """Delete a conversation permanently."""
        if not await threads.delete(str(thread_id), owner=client.owner):
            raise no_such_thread()

    links = links_to_thread("$request.path.thread_id")
    thread = examples.response(thread=show_thread(examples.THREAD))
    thread[200]["links"] = links
    for path in (_THREAD, _HISTORY):
        router.get(path, responses=NOT_FOUND | thread)(read_thread)
    for path in (_THREAD, "/session/{thread_id}"):
        # A deleted thread stays deleted until a new message is sent to it.
        deleted = NOT_FOUND | {204: {"links": links}}
        router.delete(path, status_code=204, responses=deleted)(delete_thread)


# --- feedback -------------------------------------------------------------------------------------


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
