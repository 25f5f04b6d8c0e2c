"""Every fault of a model provider becomes one typed error, in time, told by every contract."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from typing import NamedTuple

import pytest
from tests.providers.hosted import drafted, embedder_at, writer_at
from tests.providers.loopback import (
    DONE,
    HANG,
    LAST,
    RESET,
    STREAM,
    Loopback,
    Request,
    Step,
    bag,
    chat,
    chunk,
    delta,
    event,
    head,
    page,
    refuse,
    reply,
)

from bythebook.errors import EmbedderFailed, ServiceError, Truncated, WriterFailed
from bythebook.interfaces.models import TextRole
from bythebook.providers.http.client import EVERY_S, FAILURES, CircuitBreaker, HttpClient
from reliability.event_log import CONTRACTS, KINDS, Teller
from reliability.rows import Row

_IN_COMPANY = {"timeout_s": 5.0, "first_token_timeout_s": 2.5, "idle_timeout_s": 1.0}
_ROLES: tuple[TextRole, ...] = ("query", "passage")
_SECRETS = ("sk-secret", "127.0.0.1", "VENDOR", "Traceback")


class InAnHour:
    """A refusal until an hour from now."""

    def __iter__(self) -> Iterator[Step]:
        until = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        return iter(refuse(429, retry_after=until))


class Case(NamedTuple):
    steps: Iterable[Step]
    said: str
    retryable: bool
    retry_after: float | None = None  # None: none is told
    timed_out: bool = False


_LONG_AGO = "Wed, 21 Oct 2015 07:28:00 GMT"
_OUT, _BUSY, _CUT = "is not available", "accepts no more requests", "closed the connection"
_BAD, _LATE, _PAGE = "cannot be read", "did not start to answer", "answered with a web page"
_GONE, _LONG = "There is no API", "too long for"


def _forever(step: bytes) -> list[Step]:
    return [STREAM, *(part for _ in range(1000) for part in (step, 0.01))]


# 1 GB of zeros; who unpacks it misses the deadlines of all other calls.
_BOMB = gzip.compress(gzip.compress(bytes(1 << 20)) * 1024)

FAULTS: dict[str, Case] = {
    # --- refusals by number
    "400": Case(refuse(400, "VENDOR"), "rejected the request", False),
    "400 context": Case(
        refuse(400, "This model's maximum context length is 4096 tokens."), _LONG, False
    ),
    "400 context, llama.cpp": Case(
        refuse(400, "the request exceeds the available context size", "exceed_context_size_error"),
        _LONG,
        False,
    ),
    "400 key, gemini": Case(
        refuse(400, "API key not valid. Please pass a valid one."), "did not accept", False
    ),
    "400 model, openrouter": Case(refuse(400, "x/y is not a valid model ID"), "no model", False),
    "401": Case(refuse(401, "Incorrect API key: sk-secret VENDOR"), "did not accept", False),
    "402": Case(refuse(402, "Insufficient credits"), "no credit", False),
    "403": Case(refuse(403, "VENDOR"), "did not accept", False),
    "404 model": Case(
        refuse(404, "The model `x` does not exist", "model_not_found"), "no model", False
    ),
    "404 model, ollama": Case(refuse(404, 'model "x" not found'), "no model", False),
    "404 page": Case(page(404), _GONE, False),
    "405": Case(page(405), _GONE, False),
    "408": Case(refuse(408), _OUT, True),
    "409": Case(refuse(409), _OUT, True),
    "410": Case(refuse(410), "no model", False),
    "413": Case(refuse(413), _LONG, False),
    "418 page": Case(page(418), _PAGE, False),
    "422": Case(refuse(422, "VENDOR"), "rejected the request", False),
    "429": Case(refuse(429), _BUSY, True),
    "429 quota": Case(refuse(429, "You exceeded it", "insufficient_quota"), "no credit", False),
    "429 after 120": Case(refuse(429, retry_after="120"), _BUSY, True, 120),
    "429 after a date": Case(InAnHour(), _BUSY, True, 3600),
    "429 after a past date": Case(refuse(429, retry_after=_LONG_AGO), _BUSY, True, 0),
    "429 after 10^9": Case(refuse(429, retry_after="1000000000"), _BUSY, True, 86_400),
    "429 after junk": Case(refuse(429, retry_after="soon, VENDOR"), _BUSY, True),
    "429 after -5": Case(refuse(429, retry_after="-5"), _BUSY, True),
    "429 after inf": Case(refuse(429, retry_after="inf"), _BUSY, True),
    "429 after milliseconds": Case(refuse(429, retry_after_ms="45000"), _BUSY, True, 45),
    "429 in google's body": Case(
        reply({"error": {"code": 429, "details": [{"retryDelay": "34s"}]}}, 429), _BUSY, True, 34
    ),
    "500": Case(refuse(500, "Traceback VENDOR"), _OUT, True),
    "502 page": Case(page(502), _OUT, True),
    "503 after 30": Case(refuse(503, retry_after="30"), _OUT, True, 30),
    "504": Case(refuse(504), _OUT, True),
    "529": Case(refuse(529), _OUT, True),
    "301": Case(refuse(301, location="http://127.0.0.1:1/"), "redirects to another", False),
    "204": Case([head(204)], _PAGE, False),
    # --- connections
    "reset before the head": Case([RESET], _CUT, True),
    "closed before the head": Case([], _CUT, True),
    "hangs before the head": Case([HANG], _LATE, True, timed_out=True),
    "hangs after the head": Case([STREAM, HANG], _LATE, True, timed_out=True),
    "no HTTP": Case([b"SSH-2.0-VENDOR\r\n"], _CUT, True),
    "half a head": Case([b"HTTP/1.1 200 OK\r\nContent-", HANG], _LATE, True, timed_out=True),
    "a head without end": Case([b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 40_000], _CUT, True),
    "an error without end": Case([head(500), *repeat(b"VENDOR" * 20_000, 50)], _OUT, True),
    "an error that hangs": Case([head(500), HANG], _LATE, True, timed_out=True),
    "bad chunks": Case([STREAM, b"zz\r\nhello\r\n"], _CUT, True),
    "bad gzip": Case(
        [head(kind="text/event-stream", content_encoding="gzip") + b"VENDOR"], _BAD, True
    ),
    "gzip in gzip": Case([head(content_encoding="gzip, gzip") + _BOMB], _BAD, True),
    "gzip in a stream": Case(
        [head(kind="text/event-stream", content_encoding="gzip") + _BOMB], _BAD, True
    ),
    "500 with gzip in gzip": Case([head(500, content_encoding="gzip, gzip") + _BOMB], _OUT, True),
    # --- bodies
    "a web page": Case(page(), _PAGE, False),
    "nothing": Case([head()], _BAD, True),
    "JSON cut in half": Case([head() + b'{"choices": [{"mess'], _BAD, True),
    "JSON too deep": Case([head() + b"[" * 200_000], _BAD, True),
    "an error with 200": Case(
        reply({"error": {"code": 401, "message": "VENDOR"}}), "did not accept", False
    ),
    "choices that are none": Case(reply({"choices": {"a": 1}}), _BAD, True),
    "content that is none": Case(reply({"choices": [{"message": {"content": 7}}]}), _BAD, True),
    "no choices": Case(reply({"choices": []}), "empty answer", True),
    # --- streams, before the first token
    "an empty stream": Case([STREAM, LAST], _CUT, True),
    "[DONE] at once": Case([STREAM, DONE, LAST], "empty answer", True),
    "a finish at once": Case([STREAM, delta(None, "stop"), DONE, LAST], "empty answer", True),
    "an error first": Case([STREAM, event({"error": {"message": "VENDOR"}}), LAST], _OUT, True),
    "an event that is no JSON": Case([STREAM, event("{VENDOR"), LAST], _BAD, True),
    "an event that is a list": Case([STREAM, event([1]), LAST], _BAD, True),
    "a line of 10 MB": Case(
        [STREAM, *repeat(chunk(b"data: " + b"x" * 10**6), 10)], "allowed", False
    ),
    "comments for ever": Case(_forever(chunk(b": PROCESSING\n\n")), _LATE, True, timed_out=True),
    # --- streams, after it
    "stalls": Case([STREAM, delta("A kite "), HANG], "stopped in the middle", True, timed_out=True),
    "ends without a word": Case([STREAM, delta("A kite "), LAST], _CUT, True),
    "is cut": Case([STREAM, delta("A kite ")], _CUT, True),
    "is reset": Case([STREAM, delta("A kite "), 0.05, RESET], _CUT, True),
    "an error in between": Case(
        [STREAM, delta("A kite "), event({"error": {"code": 503, "message": "VENDOR"}}), LAST],
        _OUT,
        True,
    ),
    "junk in between": Case([STREAM, delta("A kite "), event("VENDOR"), LAST], _BAD, True),
    "finished by an error": Case([STREAM, delta("A "), delta(None, "error"), LAST], _CUT, True),
    "stopped by a filter": Case(
        [STREAM, delta("A "), delta(None, "content_filter"), DONE, LAST], "filter", False
    ),
    "reaches its length": Case(chat("A kite ", finish="length"), "maximum length", False),
    "slow for ever": Case(_forever(delta("a")), "took too long", True, timed_out=True),
    "never stops": Case([STREAM, *repeat(delta("word " * 100), 30)], "allowed length", False),
}


Outcomes = dict[str, tuple[ServiceError | None, float]]


_AT_A_TIME = 12  # calls


def _all_outcomes(
    cases: Mapping[str, Case], call: Callable[[str, HttpClient], Awaitable[object]]
) -> Outcomes:
    """Return how each case ended and after how long; each has its own address."""
    names = list(cases)

    def script(request: Request) -> Iterable[Step]:
        return cases[names[int(request.path.split("/")[1])]].steps

    places = asyncio.Semaphore(_AT_A_TIME)

    async def outcome(url: str, web: HttpClient) -> tuple[ServiceError | None, float]:
        async with places:
            began = time.monotonic()
            try:
                await call(url, web)
            except ServiceError as error:
                return error, time.monotonic() - began
            return None, time.monotonic() - began

    async def run(url: str) -> list[tuple[ServiceError | None, float]]:
        web = HttpClient()
        web.client()
        try:
            calls = [outcome(f"{url}/{number}", web) for number in range(len(names))]
            return await asyncio.gather(*calls)
        finally:
            await web.close()

    with Loopback(script) as provider:
        return dict(zip(names, asyncio.run(run(provider.url)), strict=True))


def _is_told(error: ServiceError, case: Case) -> None:
    assert case.said in error.message
    assert error.hint
    assert (error.retryable, error.timed_out) == (case.retryable, case.timed_out)
    if case.retry_after is None:
        assert error.retry_after is None
    else:
        assert error.retry_after == pytest.approx(case.retry_after, abs=5)
    assert not any(secret in str(error) for secret in _SECRETS)


def _numbers(vectors: object) -> list[Step]:
    rows = [{"index": n, "embedding": row} for n, row in enumerate(vectors)]  # type: ignore[arg-type]
    return [head() + json.dumps({"data": rows}).encode()]


def _indexed(index: object, vector: object) -> list[Step]:
    return reply({"data": [{"index": index, "embedding": vector}]})


_RIGHT = bag(["a"], 1536)[0]
_NONE = "cannot be used"
EMBEDDING_FAULTS: dict[str, Case] = {
    **{
        name: FAULTS[name]
        for name in (
            *("400", "401", "404 model", "404 page", "408", "409", "429", "429 after 120"),
            *("429 after junk", "500", "502 page", "301", "reset before the head", "a web page"),
            *("nothing", "JSON cut in half", "bad chunks", "gzip in gzip"),
        )
    },
    "hangs": Case([HANG], "took too long", True, timed_out=True),
    "trickles": Case([head(), *([b" ", 0.05] * 200)], "took too long", True, timed_out=True),
    "wrong dimension": Case(_numbers([_RIGHT[:768]]), "another dimension than 1536", False),
    "NaN": Case(_numbers([[float("nan"), *_RIGHT[1:]]]), _NONE, False),
    "infinite": Case(_numbers([[1e300, *_RIGHT[1:]]]), _NONE, False),
    "no length": Case(_numbers([[0.0] * 1536]), _NONE, False),
    "too few": Case(_numbers([]), _BAD, True),
    "too many": Case(_numbers([_RIGHT, _RIGHT]), _BAD, True),
    "ragged": Case(_numbers([_RIGHT, _RIGHT[:9]]), _BAD, True),
    "words": Case(_numbers([["a"] * 1536]), _BAD, True),
    "null": Case(_numbers([None]), _BAD, True),
    "index as text": Case(_indexed("0", _RIGHT), _BAD, True),
    "index true": Case(_indexed(False, _RIGHT), _BAD, True),
    "index negative": Case(_indexed(-1, _RIGHT), _BAD, True),
    "index beyond the texts": Case(_indexed(1, _RIGHT), _BAD, True),
    "numbers as text": Case(_numbers([["0.5"] * 1536]), _BAD, True),
    "booleans": Case(_numbers([[True] * 1536]), _BAD, True),
    "another shape": Case(reply({"embeddings": [_RIGHT]}), _BAD, True),
    "a list": Case(reply([_RIGHT]), _BAD, True),
}


def _drafts() -> Outcomes:
    async def call(url: str, web: HttpClient) -> None:
        async with writer_at(url, web=web, **_IN_COMPANY) as writer:
            await drafted(writer)

    return _all_outcomes(FAULTS, call)


def _embeddings(role: TextRole) -> Outcomes:
    async def call(url: str, web: HttpClient) -> None:
        name, most = "openai:text-embedding-3-small", _IN_COMPANY["first_token_timeout_s"]
        async with embedder_at(
            url, name, web=web, timeout_s=most, query_timeout_s=most
        ) as embedder:
            await embedder.embed(["a kite"], role=role)

    return _all_outcomes(EMBEDDING_FAULTS, call)


def _untold(outcomes: Outcomes, cases: Mapping[str, Case], kind: type[ServiceError]) -> list[str]:
    """Return the faults that did not become their typed error."""
    untold = []
    for name, (error, _) in outcomes.items():
        try:
            assert isinstance(error, kind)
            _is_told(error, cases[name])
            assert isinstance(error, Truncated) == (name == "reaches its length")
        except AssertionError as reason:
            untold.append(f"{name}: {error!r}: {reason}")
    return untold


@pytest.mark.loopback
@pytest.mark.alone
@pytest.mark.row(
    "R10",
    "Make a model provider fail in every way it can",
    "100 % typed errors that say whether and when to retry, within the deadline + 1 s; no "
    "provider text, key or stack trace reaches a reader",
)
def test_every_fault_is_one_error_in_time_and_told_by_every_contract(row: Row) -> None:
    drafts = _drafts()
    untold = _untold(drafts, FAULTS, WriterFailed)
    beyond = [seconds - _IN_COMPANY["timeout_s"] for _, seconds in drafts.values()]
    errors = [error for error, _ in drafts.values() if error]
    for role in _ROLES:
        vectors = _embeddings(role)
        untold += _untold(vectors, EMBEDDING_FAULTS, EmbedderFailed)
        beyond += [
            seconds - _IN_COMPANY["first_token_timeout_s"] for _, seconds in vectors.values()
        ]
        errors += [error for error, _ in vectors.values() if error]
    with Teller() as teller:
        untold += [wrong for error in [*errors, *KINDS] for wrong in teller.wrong(error)]
    row.record(
        f"{len(FAULTS)} faults of a model and {len(EMBEDDING_FAULTS)} of an embedder, for "
        f"questions and for passages, over sockets; each error told by {len(CONTRACTS)} contracts",
        f"{len(untold)} untold or told wrongly, the latest {max(beyond):+.1f} s of its deadline"
        + "".join(f"; {wrong}" for wrong in untold[:5]),
        passed=not untold and max(beyond) < 1,
    )


_AT_ONCE = 20  # readers who ask in the same second
_CALM = {"timeout_s": 30.0, "first_token_timeout_s": 30.0, "idle_timeout_s": 30.0}
_DOWN: list[Step] = refuse(500, retry_after="60")  # so long a wait that no call is repeated


async def _outage(seconds: int) -> tuple[int, int, int]:
    """Return calls beyond the first failures, refusals without a wait, and calls after recovery."""
    now = [1000.0]
    calls: list[float] = []

    def down(_: object) -> list[Step]:
        calls.append(now[0])
        return _DOWN

    with Loopback(down) as provider:
        breaker = CircuitBreaker(clock=lambda: now[0])
        async with writer_at(provider.url, breaker=breaker, **_CALM) as writer:

            async def ask() -> WriterFailed | None:
                try:
                    await drafted(writer)
                except WriterFailed as error:
                    return error
                return None

            for _ in range(FAILURES):
                await ask()
            silent = 0
            for second in range(seconds):
                now[0] = 1000.0 + second
                refused = await asyncio.gather(*(ask() for _ in range(_AT_ONCE)))
                silent += sum(error is None or error.retry_after is None for error in refused)
            probes = calls[FAILURES:]
            gaps = [later - sooner for sooner, later in itertools.pairwise(probes)]
            crowded = sum(gap < EVERY_S for gap in gaps)
            provider.script = lambda _: chat("A kite.")
            now[0] += EVERY_S
            answered = [await ask() is None for _ in range(_AT_ONCE)]
    assert calls[:FAILURES] == [1000.0] * FAILURES
    return crowded + max(0, len(probes) - seconds // int(EVERY_S)), silent, sum(answered)


@pytest.mark.loopback
@pytest.mark.row(
    "R11",
    "Keep a provider down",
    "five failures, then at most one call in 10 s; the first success closes the circuit",
)
async def test_who_is_down_is_asked_once_in_ten_seconds_until_it_is_back(row: Row) -> None:
    """A provider that is down gets at most one call in ten seconds, and its return is noticed.

    The test's own clock lets minutes pass at once.
    """
    seconds = row.count(60, 600)
    crowded, silent, answered = await _outage(seconds)
    row.record(
        f"{seconds} s of outage with {_AT_ONCE} questions a second, by a clock of our own",
        f"{crowded} calls too many, {silent} refusals that do not say when; {answered} of "
        f"{_AT_ONCE} answered once it was back",
        passed=crowded == silent == 0 and answered == _AT_ONCE,
    )
