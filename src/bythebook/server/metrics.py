"""Prometheus metrics at ``/metrics``, with one registry per application.

Each worker counts separately and a scrape reaches any of them, so each metric has a worker label.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from bythebook.refusals import Refusal
from bythebook.retrieval.embeddings import QuestionVectors
from bythebook.types import Reply

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


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
    def __init__(self, open_streams: Callable[[], int], vectors: QuestionVectors) -> None:
        self._registry = CollectorRegistry()
        self._worker = str(os.getpid())
        self._requests = self._counter(
            "bythebook_requests", "HTTP requests, by route and status.", "route", "status"
        )
        self._stages = Histogram(
            "bythebook_stage_seconds",
            "Duration of each stage of a question.",
            ["worker", "stage"],
            buckets=_BUCKETS_S,
            registry=self._registry,
        )
        self._refusals = self._counter(
            "bythebook_refusals", "Questions that the book does not answer, by reason.", "type"
        )
        self._confidence = self._counter(
            "bythebook_replies", "Replies, by level of confidence.", "confidence"
        )
        self._tokens = self._counter(
            "bythebook_model_tokens",
            "Tokens that language models read (in) and wrote (out), by writer.",
            *("writer", "direction"),
        )
        self._model_calls = self._counter(
            "bythebook_model_calls", "Calls to language models, by writer.", "writer"
        )
        self._cost = self._counter(
            "bythebook_model_cost_usd",
            "Cost of language model calls in US dollars, where prices are set.",
            "writer",
        )
        self._fallbacks = self._counter(
            "bythebook_fallbacks",
            "Replies that the offline writer wrote or completed in place of this one.",
            "writer",
        )
        self._withheld = self._counter(
            "bythebook_withheld_sentences",
            "Generated sentences that were withheld because the book does not support them.",
            "writer",
        )
        self._generation = Gauge(
            "bythebook_index_generation_info",
            "Index generation of the latest reply.",
            ["worker", "generation", "vectors"],
            registry=self._registry,
        )
        streams = Gauge(
            "bythebook_streams_open", "Open event streams.", ["worker"], registry=self._registry
        )
        streams.labels(self._worker).set_function(open_streams)
        self._registry.register(_QuestionCache(vectors, self._worker))

    def _counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(name, description, ["worker", *labels], registry=self._registry)

    def count_request(self, route: str, status: int) -> None:
        self._requests.labels(self._worker, route, str(status)).inc()

    def count_reply(self, reply: Reply, generation: str) -> None:
        timings = reply.timings
        for stage, spent_ms in (
            ("retrieval", timings.retrieval_ms),
            ("generation", timings.generation_ms),
            ("total", timings.total_ms),
        ):
            self._stages.labels(self._worker, stage).observe(spent_ms / 1000)
        if isinstance(reply.outcome, Refusal):
            self._refusals.labels(self._worker, reply.outcome.type.value).inc()
        self._confidence.labels(self._worker, reply.evidence.confidence.level.value).inc()
        if not reply.cached:
            self._count_writing(reply)
        self._generation.clear()
        self._generation.labels(self._worker, generation, reply.vectors.value).set(1)

    def _count_writing(self, reply: Reply) -> None:
        writer, usage = (self._worker, reply.writer), reply.usage
        self._tokens.labels(*writer, "in").inc(usage.prompt_tokens)
        self._tokens.labels(*writer, "out").inc(usage.completion_tokens)
        self._model_calls.labels(*writer).inc(usage.calls)
        self._cost.labels(*writer).inc(usage.cost_usd or 0)
        self._fallbacks.labels(*writer).inc(reply.fallback is not None)
        self._withheld.labels(*writer).inc(reply.withheld)

    def routes(self) -> APIRouter:
        router = APIRouter(tags=["operations"])

        @router.get("/metrics", response_class=Response)
        async def metrics() -> Response:
            return Response(generate_latest(self._registry), media_type=_CONTENT_TYPE)

        return router
