"""Example replies and errors for the API docs; the contracts' responses are computed from them.

Used only in documentation, never served as an answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bythebook.answering.pipeline import Event, State
from bythebook.errors import (
    BookError,
    InvalidInput,
    KeyReused,
    NotAllowed,
    NotFound,
    RateLimited,
    StoreFailed,
    TooLarge,
)
from bythebook.interfaces.conversations import ThreadSummary
from bythebook.retrieval.search import Findings
from bythebook.server.contracts import chat, openai
from bythebook.server.contracts.wire_types import Call
from bythebook.server.sse import Told, Write, bare, named
from bythebook.types import (
    Answer,
    Citation,
    Confidence,
    Evidence,
    Hit,
    Level,
    Message,
    Passage,
    Place,
    Question,
    Refusal,
    RefusalType,
    Reply,
    Role,
    Sentence,
    Thread,
    Timings,
    Topic,
)

SESSION = "550e8400-e29b-41d4-a716-446655440000"
_ASKED_AT = datetime(2025, 12, 17, 14, 23, 45, 123000, UTC)

CALL = Call(request_id="7f3a1c52-9d0e-4b6b-8c1d-2e5f60718293", at=_ASKED_AT)

_PLACE = Place(
    file="ros2/nodes-and-topics.mdx",
    title="Nodes and topics",
    url="https://physical-ai.example/physical-ai-book/docs/ros2/nodes-and-topics#topics",
    module="Module 1",
    chapter="ROS 2 fundamentals",
    section=("Topics, publishers & subscribers",),
)
_SAYS = "ROS 2 nodes exchange messages over topics."
_PASSAGE = Passage(
    id="3c9909afec25354d551dae21590bb26e38d53f2173b8d3dc3eee4c047e7ab1c1",
    text=f"{_SAYS} A topic is a named channel with one type of message.",
    place=_PLACE,
    position=15,
    content_hash="b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
)
_HIT = Hit(passage=_PASSAGE, rank=1, cosine=0.62, score=0.98)

QUESTION = Question(text="How do ROS 2 nodes exchange messages?", thread=SESSION)
FINDINGS = Findings(hits=(_HIT,), query_ms=3.2, search_ms=1.9)
EVIDENCE = Evidence(
    hits=(_HIT,),
    tokens=19,
    confidence=Confidence(0.98, 0.98, 0.98, count=1, level=Level.MEDIUM),
    considered=(_HIT,),
)

ANSWERED = Reply(
    question=QUESTION,
    outcome=Answer(
        sentences=(Sentence(_SAYS, (1,)),),
        citations=(
            Citation(
                number=1,
                passage_id=_PASSAGE.id,
                place=_PLACE,
                quote=_SAYS,
                url=_PLACE.url,
                link=f"{_PLACE.url}:~:text=ROS%202%20nodes%20exchange",
                score=0.98,
                position=_PASSAGE.position,
            ),
        ),
        writer="extractive",
    ),
    evidence=EVIDENCE,
    timings=Timings(query_ms=3.2, search_ms=1.9, generation_ms=4.4, total_ms=9.7),
)
REFUSED = Reply(
    question=Question(text="How do I train GPT-4?", thread=SESSION),
    outcome=Refusal(RefusalType.LOW_RELEVANCE, (Topic(_PLACE.path, _PLACE.url),)),
    evidence=Evidence(considered=(_HIT,)),
    timings=Timings(query_ms=3.2, search_ms=1.9, total_ms=5.3),
)
THREAD = Thread(
    id=SESSION,
    messages=(
        Message(Role.USER, QUESTION.text, _ASKED_AT),
        Message(
            Role.ASSISTANT, f"{_SAYS} [1]", _ASKED_AT + timedelta(milliseconds=10), confidence=0.98
        ),
    ),
    created_at=_ASKED_AT,
    updated_at=_ASKED_AT + timedelta(milliseconds=10),
)

THREADS = [
    ThreadSummary(
        id=SESSION,
        created_at=THREAD.created_at,
        updated_at=THREAD.updated_at,
        messages=len(THREAD.messages),
    )
]

ERRORS: dict[int, BookError] = {
    400: InvalidInput("The body is not JSON.", hint="Send UTF-8 JSON."),
    401: NotAllowed("The key is missing or not known.", hint="Send a key of this server."),
    404: NotFound("There is no such thread.", hint="Check its id, or begin a new one."),
    413: TooLarge("The request is larger than 128 KiB.", hint="Send a shorter one."),
    422: KeyReused(
        "This Idempotency-Key came with another request before.",
        hint="Use a new key for a new request.",
    ),
    429: RateLimited("Too many questions.", retry_after=12, hint="Try again in 12 seconds."),
    503: StoreFailed("The index did not answer."),
    504: StoreFailed("The index did not answer in time.", timed_out=True),
}

# --- streams, produced by the contracts' own code -------------------------------------------------

_STREAM = "6f1f2a0c9d5e4b7f8a3c2d1e0f9b8a7c"


async def _journey(reply: Reply) -> AsyncGenerator[Event, None]:
    """Yield the events of a reply as the pipeline does."""
    yield State.RETRIEVING
    yield reply.evidence
    if isinstance(reply.outcome, Answer):
        for citation in reply.outcome.citations:
            yield citation
        for sentence in reply.outcome.sentences:
            yield sentence
    yield reply


def _all_of(telling: AsyncGenerator[Told, None]) -> Iterator[Told]:
    """Run an async generator that never awaits, without an event loop."""
    while True:
        try:
            telling.asend(None).send(None)
        except StopIteration as told:
            yield told.value
        except StopAsyncIteration:
            return
        else:
            raise RuntimeError("an example waits for something")


def _written(telling: AsyncGenerator[Told, None], write: Write = named) -> str:
    """Return the stream as it is sent to the client."""
    events = enumerate(_all_of(telling), start=1)
    sent = (write(f"{_STREAM}.{n}", name, body.model_dump_json()) for n, (name, body) in events)
    return b"".join(sent).decode()


def _told(reply: Reply) -> str:
    call = replace(CALL, query="3f2b8a52-6f0e-4f0a-9d3c-0c6f3a1b2c4d")
    return _written(chat.tell(QUESTION, _journey(reply), call))


STREAM, STREAM_REFUSED = _told(ANSWERED), _told(REFUSED)
_COMPLETION = openai.CompletionRequest.model_validate(
    {"messages": [{"role": "user", "content": QUESTION.text}], "stream": True}
)
CHUNKS = _written(openai.tell(_COMPLETION, _journey(ANSWERED), CALL), bare)
