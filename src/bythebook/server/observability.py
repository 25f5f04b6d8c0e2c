"""Logs and metrics: one line of JSON per record, with secrets redacted, and ``/metrics``.

All loggers of the process use the handler from ``configuration``, so records of libraries are
redacted, too. Each worker counts for itself and a scrape reaches any of them, so each metric has a
worker label.
"""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.conversations.query_log import logged_text
from bythebook.refusals import Refusal
from bythebook.retrieval.embeddings import QuestionVectors
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.server.lifecycle import Lifecycle
from bythebook.types import Reply

# --- logs -----------------------------------------------------------------------------------------

FIELDS = "fields"  # attribute of a record: a mapping of additional fields

_HIDDEN = "[redacted]"
_SENSITIVE = (
    r"(?:proxy-)?authorization|(?:set-)?cookie|password"
    r"|[\w-]{0,80}(?:api[_-]?key|token|secret)"  # at most 80: a longer match is text, not a name
)
# Name of a secret, separator as in headers, URLs, JSON or Python, value.
_NAMED = re.compile(
    rf"""(?ix) (?P<name> \b(?:{_SENSITIVE})\b ) (?P<gap> ["']? \s* [:=,]\s* (?:b?["'])? )
    (?P<value> (?:(?:bearer|basic|digest)\s+)? [^\s"',;&)}}\]]+ (?: ;\s*[^\s"',&)}}\]]+ )* )"""
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_KEYS = re.compile(r"\b(?:(?:btk|btp|sk|pk)[-_]|AIza)[\w-]{8,}")
# A terminal colour code ends with a letter, so a key right after it has no word boundary.
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSWORD = re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)")


def redact(text: str) -> str:
    """Replace everything that looks like a key, a cookie or a password."""
    text = _COLOUR.sub("", text)
    text = _NAMED.sub(lambda found: f"{found['name']}{found['gap']}{_HIDDEN}", text)
    text = _BEARER.sub(lambda found: f"{found[1]} {_HIDDEN}", text)
    return _PASSWORD.sub(_HIDDEN, _KEYS.sub(_HIDDEN, text))


class JsonFormatter(logging.Formatter):
    """Format records as JSON, which escapes line ends and so prevents log injection."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        for name, value in getattr(record, FIELDS, {}).items():
            line[name] = redact(value) if isinstance(value, str) else value
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def configuration() -> dict[str, Any]:
    """Return the ``logging.config`` dict: all loggers to standard error, as JSON."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonFormatter}},
        "handlers": {
            "lines": {
                "class": "logging.StreamHandler",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["lines"], "level": "WARNING"},
        "loggers": {"bythebook": {"level": "INFO"}, "_granian": {"level": "WARNING"}},
    }


# --- metrics --------------------------------------------------------------------------------------

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COUNTERS = {  # name: description, and labels besides the worker
    "requests": ("HTTP requests, by route and status.", "route", "status"),
    "refusals": ("Questions that the book does not answer, by reason.", "type"),
    "replies": ("Replies, by level of confidence.", "confidence"),
    "model_tokens": (
        "Tokens that language models read (in) and wrote (out), by writer.",
        *("writer", "direction"),
    ),
    "model_calls": ("Calls to language models, by writer.", "writer"),
    "model_cost_usd": (
        "Cost of language model calls in US dollars, where prices are set.",
        "writer",
    ),
    "fallbacks": (
        "Replies that the offline writer wrote or completed in place of this one.",
        "writer",
    ),
    "withheld_sentences": (
        "Generated sentences that were withheld because the book does not support them.",
        "writer",
    ),
}


class _QuestionCache(Collector):
    """Collector of hits and misses of the cache of question vectors."""

    def __init__(self, vectors: QuestionVectors, worker: str) -> None:
        self._vectors = vectors
        self._worker = worker

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            "bythebook_question_cache",
            "Questions whose vector was cached (hit) or computed (miss).",
            labels=["worker", "result"],
        )
        family.add_metric([self._worker, "hit"], self._vectors.hits)
        family.add_metric([self._worker, "miss"], self._vectors.misses)
        yield family


class Metrics:
    """Prometheus metrics of an application, in a registry of its own."""

    def __init__(self, open_streams: Callable[[], int], vectors: QuestionVectors) -> None:
        self._registry = registry = CollectorRegistry()
        self._worker = str(os.getpid())
        self._counters = {
            name: Counter(f"bythebook_{name}", about, ["worker", *labels], registry=registry)
            for name, (about, *labels) in _COUNTERS.items()
        }
        self._stages = Histogram(
            "bythebook_stage_seconds",
            "Duration of each stage of a question.",
            ["worker", "stage"],
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._generation = Gauge(
            "bythebook_index_generation_info",
            "Index generation of the latest reply.",
            ["worker", "generation", "vectors"],
            registry=registry,
        )
        streams = Gauge(
            "bythebook_streams_open", "Open event streams.", ["worker"], registry=registry
        )
        streams.labels(self._worker).set_function(open_streams)
        registry.register(_QuestionCache(vectors, self._worker))

    def count_request(self, route: str, status: int) -> None:
        self._count("requests", route, str(status))

    def count_reply(self, reply: Reply, generation: str) -> None:
        timings = reply.timings
        for stage, spent_ms in (
            ("retrieval", timings.retrieval_ms),
            ("generation", timings.generation_ms),
            ("total", timings.total_ms),
        ):
            self._stages.labels(self._worker, stage).observe(spent_ms / 1000)
        if isinstance(reply.outcome, Refusal):
            self._count("refusals", reply.outcome.type.value)
        self._count("replies", reply.evidence.confidence.level.value)
        if not reply.cached:
            self._count_writing(reply)
        self._generation.clear()
        self._generation.labels(self._worker, generation, reply.vectors.value).set(1)

    def _count_writing(self, reply: Reply) -> None:
        writer, usage = reply.writer, reply.usage
        self._count("model_tokens", writer, "in", by=usage.prompt_tokens)
        self._count("model_tokens", writer, "out", by=usage.completion_tokens)
        self._count("model_calls", writer, by=usage.calls)
        self._count("model_cost_usd", writer, by=usage.cost_usd or 0)
        self._count("fallbacks", writer, by=reply.fallback is not None)
        self._count("withheld_sentences", writer, by=reply.withheld)

    def _count(self, name: str, *labels: str, by: float = 1) -> None:
        self._counters[name].labels(self._worker, *labels).inc(by)

    def routes(self) -> APIRouter:
        router = APIRouter(tags=["operations"])

        @router.get("/metrics", response_class=Response)
        async def metrics() -> Response:
            return Response(generate_latest(self._registry), media_type=_CONTENT_TYPE)

        return router


# --- the line of each question --------------------------------------------------------------------

_log = logging.getLogger("bythebook.server.request_log")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")

# The reply of the request in progress, and its generation.
_replies: ContextVar[list[tuple[Reply, str]] | None] = ContextVar("replies", default=None)


def attach_reply(reply: Reply, generation: str) -> None:
    """Record the reply of the current request; the book calls this for every reply."""
    replies = _replies.get()
    if replies is not None:
        replies[:] = [(reply, generation)]


class RequestLogMiddleware:
    """Give each request an id, count it, and log each question as one line.

    This middleware is the outermost one, so rejected and failed requests are included.
    """

    def __init__(
        self, app: ASGIApp, *, lifecycle: Lifecycle, metrics: Metrics, show_questions: bool = False
    ) -> None:
        self._app = app
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._show_questions = show_questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 0
        request_id = _request_id(Headers(scope=scope).get("x-request-id", ""))
        scope.setdefault("state", {})["request_id"] = request_id
        replies: list[tuple[Reply, str]] = []

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        token = _replies.set(replies)
        with self._lifecycle.in_flight():
            try:
                await self._app(scope, receive, send_with_id)
            except Exception:
                _log.exception("request failed", extra={FIELDS: {"request_id": request_id}})
                if status:
                    raise  # too late for another response: the server closes the connection
                body = {"detail": "Something went wrong.", "request_id": request_id}
                await JSONResponse(body, status_code=500)(scope, receive, send_with_id)
            finally:
                _replies.reset(token)
                spent_ms = round((perf_counter() - began) * 1000, 1)
                self._finish(scope, status, spent_ms, replies)

    def _finish(
        self, scope: Scope, status: int, spent_ms: float, replies: list[tuple[Reply, str]]
    ) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "unmatched")
        self._metrics.count_request(path, status)
        contract = next((tag for tag in getattr(route, "tags", ()) if tag in CONTRACTS), None)
        if contract is None or scope["method"] != "POST":
            return
        fields = {
            "request_id": scope["state"]["request_id"],
            "contract": contract,
            "route": path,
            "status": status,
            "outcome": _outcome(status, replies, scope["state"].get("stream_ending", "done")),
            "request_ms": spent_ms,
        }
        for reply, generation in replies:
            fields |= _reply_fields(reply) | {"generation": generation}
            if self._show_questions:
                fields["question"] = logged_text(reply.question.text)
        _log.info("question", extra={FIELDS: fields})


def _reply_fields(reply: Reply) -> dict[str, Any]:
    refusal = reply.outcome.type.value if isinstance(reply.outcome, Refusal) else None
    return {
        "refusal_type": refusal,
        "confidence": 0.0 if refusal else round(reply.evidence.answerability, 3),
        "confidence_level": reply.evidence.confidence.level.value,
        "retrieval_ms": round(reply.timings.retrieval_ms, 1),
        "generation_ms": round(reply.timings.generation_ms, 1),
        "total_ms": round(reply.timings.total_ms, 1),
    }


def _outcome(status: int, replies: list[tuple[Reply, str]], stream_ending: str | None) -> str:
    if stream_ending != "done":
        return "failed" if stream_ending else "left"
    for reply, _ in replies:
        return "refused" if isinstance(reply.outcome, Refusal) else "answered"
    if status >= 400:
        return "rejected" if status < 500 else "failed"
    return "told"


def _request_id(given: str) -> str:
    """Return the client's own id if it is a plain token, else a new UUID.

    A UUID is written with dashes, as in the bodies of the contracts.
    """
    if not _TOKEN.fullmatch(given):
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(given))
    except ValueError:
        return given
