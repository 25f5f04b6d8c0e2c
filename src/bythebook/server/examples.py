"""Example replies and errors for the API docs; the contracts' responses are computed from them.

The texts are in ``examples.json``. Used only in documentation, never served as an answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from bythebook import errors
from bythebook.answering.pipeline import Event, State
from bythebook.contracts.errors import Call, Fail
from bythebook.interfaces.conversations import Thread, ThreadSummary
from bythebook.language.terms import Vocabulary
from bythebook.refusals import Refusal, RefusalType, Topic
from bythebook.retrieval.question_analysis import analyze
from bythebook.retrieval.search import Findings
from bythebook.server.sse import MEDIA_TYPE, Encode, Events, NamedEvent, encode_named
from bythebook.types import (
    Answer,
    Confidence,
    Evidence,
    Hit,
    Level,
    Passage,
    Question,
    Reply,
    Timings,
)

Responses = dict[int | str, dict[str, Any]]  # format of FastAPI's ``responses``
Link = dict[str, Any]
T = TypeVar("T")

_DATA: dict[str, Any] = json.loads(files(__package__).joinpath("examples.json").read_text("utf-8"))

# --- the examples ---------------------------------------------------------------------------------


def _read(kind: type[T], name: str) -> T:
    return TypeAdapter(kind).validate_python(_DATA[name])


THREAD = _read(Thread, "thread")
SESSION = THREAD.id
_ANSWER = _read(Answer, "answer")
[_CITATION] = _ANSWER.citations
_PLACE = _CITATION.place
_HIT = Hit(Passage(**_DATA["passage"], place=_PLACE), rank=1, cosine=0.62, score=_CITATION.score)
CALL = Call(request_id=_DATA["request_id"], at=THREAD.created_at, query=_DATA["query_id"])

QUESTION = Question(text=THREAD.messages[0].content, thread=SESSION)
FINDINGS = Findings(analyze(QUESTION, Vocabulary()), hits=(_HIT,), query_ms=3.2, search_ms=1.9)
EVIDENCE = Evidence(
    hits=(_HIT,),
    tokens=19,
    confidence=Confidence(_HIT.score, _HIT.score, _HIT.score, count=1, level=Level.MEDIUM),
    considered=(_HIT,),
    answerability=_HIT.score,
)
ANSWERED = Reply(
    question=QUESTION,
    outcome=_ANSWER,
    evidence=EVIDENCE,
    timings=Timings(query_ms=3.2, search_ms=1.9, generation_ms=4.4, total_ms=9.7),
)
REFUSED = Reply(
    question=Question(text=_DATA["refused_question"], thread=SESSION),
    outcome=Refusal(RefusalType.LOW_RELEVANCE, (Topic(_PLACE.path, _PLACE.url),)),
    evidence=Evidence(considered=(_HIT,)),
    timings=Timings(query_ms=3.2, search_ms=1.9, total_ms=5.3),
)
THREADS = [
    ThreadSummary(SESSION, THREAD.created_at, THREAD.updated_at, messages=len(THREAD.messages))
]


async def suggest_next(reply: Reply) -> list[str]:
    return list(_DATA["next_questions"]) if isinstance(reply.outcome, Answer) else []


def _error(fields: Mapping[str, Any]) -> errors.BookError:
    arguments = {k: v for k, v in fields.items() if k not in ("class", "message", "description")}
    error: errors.BookError = getattr(errors, fields["class"])(fields["message"], **arguments)
    return error


ERRORS = {int(status): _error(fields) for status, fields in _DATA["errors"].items()}
USUAL_ERRORS = (400, 401, 413, 422, 429, 503)  # error statuses that any question may get

# --- OpenAPI responses with them ------------------------------------------------------------------


def reply_responses(show: Callable[[Reply], BaseModel]) -> Responses:
    """Return the 200 response of a contract, with an answer and a refusal as examples."""
    return response(answer=show(ANSWERED), refusal=show(REFUSED))


def response(status: int = 200, **bodies: BaseModel) -> Responses:
    values = {name: {"value": body.model_dump(mode="json")} for name, body in bodies.items()}
    return {status: {"content": {"application/json": {"examples": values}}}}


def error_responses(model: type[BaseModel], fail: Fail, statuses: Iterable[int]) -> Responses:
    """Return an example error response of a contract for each status."""
    responses: Responses = {}
    for status in statuses:
        responses |= response(status, error=fail(ERRORS[status], CALL)[1])
        description = _DATA["errors"][str(status)]["description"]
        responses[status] |= {"model": model, "description": description}
    return responses


def link(method: str, path: str, *, body: Mapping[str, str] | None = None, **values: str) -> Link:
    """Return an OpenAPI link to another operation; its values are runtime expressions."""
    pointer = path.replace("/", "~1")
    target: Link = {"operationRef": f"#/paths/{pointer}/{method}"}
    if values:
        target["parameters"] = values
    if body is not None:
        target["requestBody"] = dict(body)
    return target


# --- streams --------------------------------------------------------------------------------------

Tell = Callable[[AsyncGenerator[Event, None]], Events]


def stream_content(tell: Tell, encode: Encode = encode_named, **replies: Reply) -> dict[str, Any]:
    """Return the content of an event stream response: the contract's own streams of replies."""
    values = {
        name: {"value": _written(tell(_events(reply)), encode)} for name, reply in replies.items()
    }
    return {MEDIA_TYPE: {"schema": {"type": "string"}, "examples": values}}


async def _events(reply: Reply) -> AsyncGenerator[Event, None]:
    """Yield the events of a reply as the pipeline does."""
    yield State.RETRIEVING
    yield reply.evidence
    if isinstance(reply.outcome, Answer):
        for citation in reply.outcome.citations:
            yield citation
        for sentence in reply.outcome.sentences:
            yield sentence
    yield reply


def _written(telling: Events, encode: Encode) -> str:
    """Return the stream as it is sent to the client."""
    events = enumerate(_all_of(telling), start=1)
    stream = _DATA["stream_id"]
    sent = (encode(f"{stream}.{n}", name, body.model_dump_json()) for n, (name, body) in events)
    return b"".join(sent).decode()


def _all_of(telling: Events) -> Iterator[NamedEvent]:
    """Run an async generator that never awaits, without an event loop."""
    with suppress(StopAsyncIteration):
        while True:
            try:
                telling.asend(None).send(None)
            except StopIteration as stopped:
                yield stopped.value
