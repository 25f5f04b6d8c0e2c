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

from functools import partial
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from bythebook.contracts.errors import Call
from bythebook.server import examples
from bythebook.server.contracts.base import Contract, Services
from bythebook.server.contracts.openai.completions import (
    OpenAICompletion,
    OpenAIError,
    created,
    fail,
    show,
    stream_events,
    stream_failure,
)
from bythebook.server.contracts.openai.requests import (
    MODEL,
    OpenAICompletionRequest,
    check_model,
    read,
    read_history,
)
from bythebook.server.requests import Client, call_of
from bythebook.server.sse import encode_data


class OpenAIModel(BaseModel):
    id: str = MODEL
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "bythebook"


class OpenAIModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]


def add_routes(router: APIRouter, services: Services) -> None:
    _add_completion_route(router, services)
    _add_model_routes(router)


def _add_completion_route(router: APIRouter, services: Services) -> None:
    request_body = OpenAICompletionRequest.model_validate(
        {"messages": [{"role": "user", "content": examples.QUESTION.text}], "stream": True}
    )
    responses = examples.reply_responses(partial(show, call=examples.CALL, prompt_tokens=9))
    responses[200]["content"] |= examples.stream_content(
        lambda events: stream_events(request_body, events, examples.CALL),
        encode=encode_data,
        answer=examples.ANSWERED,
    )
    responses[200]["links"] = _links_to_model("$response.body#/model")

    @router.post("/v1/chat/completions", response_model=OpenAICompletion, responses=responses)
    async def complete(
        body: OpenAICompletionRequest, client: Client, request: Request
    ) -> Response | OpenAICompletion:
        """Ask the book as if it were a language model; `sources` lists the cited passages."""
        call, question = call_of(request), read(body)
        history = read_history(body, call)
        if body.stream:
            events = services.ask(question, client, request, history)
            return services.streams.begin(
                stream_events(body, events, call),
                fail=stream_failure,
                owner=client.owner,
                encode=encode_data,
            )
        reply = await services.reply(question, client, request, history)
        return show(reply, call, prompt_tokens=body.tokens)


def _add_model_routes(router: APIRouter) -> None:
    served = OpenAIModel(created=created(Call()))
    model = OpenAIModel(created=created(examples.CALL))
    models = examples.response(models=OpenAIModelList(data=[model]))
    models[200]["links"] = _links_to_model("$response.body#/data/0/id")

    @router.get("/v1/models", responses=models)
    async def list_models() -> OpenAIModelList:
        """List the models: only the book."""
        return OpenAIModelList(data=[served])

    @router.get("/v1/models/{model}", responses=examples.response(model=model))
    async def read_model(model: str) -> OpenAIModel:
        """Return a model."""
        check_model(model)
        return served


def _links_to_model(name: str) -> dict[str, examples.Link]:
    return {"model": examples.link("get", "/v1/models/{model}", model=name)}


CONTRACT = Contract(
    "openai",
    "The book as a model for chat clients that support OpenAI's chat completions.",
    error=OpenAIError,
    fail=fail,
    add_routes=add_routes,
    error_code="error.type",
    statuses=(404,),
)
