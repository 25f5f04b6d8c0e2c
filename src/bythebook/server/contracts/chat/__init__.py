"""The chat contract: ``POST /chat/run``, ``POST /chat/stream``, ``/chat/threads``, ``/feedback``.

A refusal has ``should_answer: false`` and the level "insufficient". A stream sends, in this order:
``session``, ``retrieval``, ``delta``s, ``citation``s, and last either ``done``, with the whole
response, or ``error``.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bythebook.contracts.chat import ChatError, ChatRequest, ChatResponse, fail, read, show
from bythebook.server import examples
from bythebook.server.contracts.base import Contract, Services
from bythebook.server.contracts.chat.stream import EVENTS, STATES, stream_events, stream_failure
from bythebook.server.contracts.chat.threads import (
    NOT_FOUND,
    add_feedback_route,
    add_thread_routes,
    links_to_thread,
)
from bythebook.server.pages.suggest import NextQuestions
from bythebook.server.requests import Client, call_of


def add_routes(router: APIRouter, services: Services) -> None:
    next_questions = NextQuestions(services.book)
    events = examples.stream_content(
        lambda events: stream_events(
            examples.QUESTION, events, examples.CALL, examples.suggest_next
        ),
        answer=examples.ANSWERED,
        refusal=examples.REFUSED,
    )
    responses = examples.reply_responses(partial(show, call=examples.CALL))
    responses[200]["content"] |= events
    responses[200]["links"] = links_to_thread("$response.body#/session_id")

    @router.post("/chat/run", response_model=ChatResponse, responses=NOT_FOUND | responses)
    async def run(body: ChatRequest, client: Client, request: Request) -> Response | ChatResponse:
        """Ask in a conversation; `should_answer` is false if the book does not contain an answer.

        With `stream: true` the reply is a stream of events, as from `/chat/stream`.
        """
        if body.stream:
            return await stream(body, client, request)
        question = read(body, request=client.request)
        return show(await services.reply(question, client, request), call_of(request))

    links = links_to_thread("$request.body#/session_id")
    streamed: examples.Responses = {200: {"content": events, "links": links}}

    @router.post("/chat/stream", response_class=StreamingResponse, responses=NOT_FOUND | streamed)
    async def stream(body: ChatRequest, client: Client, request: Request) -> Response:
        """Ask in a conversation; the answer is streamed as server-sent events.

        The events come in this order: `session`, `retrieval`, any number of `delta`, any number of
        `citation`, and last `done` or `error`; `state` events, if `states` asks for them, come as
        the states are reached. The data of each is JSON in one line. The
        concatenated `text` of the deltas is the `response` of `done`, and `retrieval` agrees with
        `done`. A stream that ends without `done` or `error` was interrupted: send the same request
        again with `Last-Event-ID` to get the events after that id. Ids are `<stream>.<number>`,
        counted from 1 without a gap. While idle, a comment (`: ping`) keeps the connection open.
        """
        last_event = request.headers.get("last-event-id")
        if last_event is not None:
            return services.streams.resume(last_event, owner=client.owner)
        question = read(body, request=client.request)
        asker = replace(client, query=str(uuid.uuid4()))
        call = replace(call_of(request), query=asker.query)
        return services.streams.begin(
            stream_events(
                question,
                services.ask(question, asker, request),
                call,
                next_questions.after,
                STATES[body.states] if body.states else None,
            ),
            fail=partial(stream_failure, call=call),
            owner=client.owner,
        )

    add_thread_routes(router, services)
    add_feedback_route(router, services)


CONTRACT = Contract(
    "chat",
    "Conversations: an answer at once or as a stream of events, threads and feedback.",
    error=ChatError,
    fail=fail,
    add_routes=add_routes,
    error_code="error_code",
    events=EVENTS,
)
