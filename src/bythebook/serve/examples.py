"""One question of each fate, for the documentation: what the contracts say of them is computed.

Nothing here is ever served to a reader.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bythebook.errors import (
    BookError,
    InvalidInput,
    NotAllowed,
    NotFound,
    RateLimited,
    StoreFailed,
    TooLarge,
)
from bythebook.model import (
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
from bythebook.ports import ThreadSummary
from bythebook.retrieve.search import Findings
from bythebook.serve.contracts.wire import Call

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
    400: InvalidInput("The body is not JSON.", cure="Send UTF-8 JSON."),
    401: NotAllowed("The key is missing or not known.", cure="Send a key of this server."),
    404: NotFound("There is no such thread.", cure="Check its id, or begin a new one."),
    413: TooLarge("The request is larger than 128 KiB.", cure="Send a shorter one."),
    429: RateLimited("Too many questions.", retry_after=12, cure="Try again in 12 seconds."),
    503: StoreFailed("The index did not answer."),
    504: StoreFailed("The index did not answer in time.", timed_out=True),
}

# The same of OpenAI's: a first chunk, the last one, and the end.
_CHUNK = f'"id":"chatcmpl-{CALL.request_id.replace("-", "")}","object":"chat.completion.chunk"'
CHUNKS = f"""data: {{{_CHUNK},"choices":[{{"index":0,"delta":{{"content":"{_SAYS} [1]"}}}}]}}

data: {{{_CHUNK},"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"sources":[]}}

data: [DONE]

"""

# The beginning and the end of a stream; an event's data is JSON in one line.
STREAM = f"""id: 6f1f2a0c9d5e4b7f8a3c2d1e0f9b8a7c.1
event: session
data: {{"session_id":"{SESSION}","request_id":"{CALL.request_id}"}}

id: 6f1f2a0c9d5e4b7f8a3c2d1e0f9b8a7c.2
event: retrieval
data: {{"num_chunks":2,"average_similarity":0.83,"confidence_level":"medium","should_answer":true}}

id: 6f1f2a0c9d5e4b7f8a3c2d1e0f9b8a7c.3
event: delta
data: {{"text":"A node is a process. [1]","paragraph":0,"html":"<p>A node is a process. …</p>"}}

id: 6f1f2a0c9d5e4b7f8a3c2d1e0f9b8a7c.5
event: done
data: {{"response":"A node is a process. [1]"}}

"""
