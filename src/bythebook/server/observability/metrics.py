"""Prometheus metrics, with one registry per application.

Each worker counts separately and a scrape reaches any of them, so each metric has a worker label.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from bythebook.indexing.embeddings import QuestionVectors
from bythebook.types import Refusal, Reply

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class _Asked(Collector):
    """Collector of hits and misses of the cache of question vectors."""

    def __init__(self, asked: QuestionVectors, worker: str) -> None:
        self._asked = asked
        self._worker = worker

    def collect(self) -> Iterator[CounterMetricFamily]:
        counted = CounterMetricFamily(
            "bythebook_question_cache",
            "Questions whose vector was known already (hit) or was made (miss).",
            labels=["worker", "result"],
        )
        counted.add_metric([self._worker, "hit"], self._asked.hits)
        counted.add_metric([self._worker, "miss"], self._asked.misses)
        yield counted


class Metrics:
    def __init__(self, open_streams: Callable[[], int], asked: QuestionVectors) -> None:
        self._registry = CollectorRegistry()
        self._worker = str(os.getpid())
        self._requests = Counter(
            "bythebook_requests",
            "Requests, by route and status.",
            ["worker", "route", "status"],
            registry=self._registry,
        )
        self._stages = Histogram(
            "bythebook_stage_seconds",
            "What a question spent in each stage.",
            ["worker", "stage"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._refusals = Counter(
            "bythebook_refusals",
            "Questions that the book does not answer, by reason.",
            ["worker", "type"],
            registry=self._registry,
        )
        self._confidence = Counter(
            "bythebook_replies",
            "Replies, by the confidence behind them.",
            ["worker", "confidence"],
            registry=self._registry,
        )
        self._tokens = Counter(
            "bythebook_model_tokens",
            "Tokens that language models read (in) and wrote (out), by writer.",
            ["worker", "writer", "direction"],
            registry=self._registry,
        )
        self._model_calls = Counter(
            "bythebook_model_calls",
            "Calls to language models, by writer.",
            ["worker", "writer"],
            registry=self._registry,
        )
        self._cost = Counter(
            "bythebook_model_cost_usd",
            "What they cost, in dollars, where prices are set.",
            ["worker", "writer"],
            registry=self._registry,
        )
        self._fallbacks = Counter(
            "bythebook_fallbacks",
            "Replies that the offline writer wrote, or ended, in place of this one.",
            ["worker", "writer"],
            registry=self._registry,
        )
        self._withheld = Counter(
            "bythebook_withheld_sentences",
            "Sentences that were written and that the book does not say.",
            ["worker", "writer"],
            registry=self._registry,
        )
        self._generation = Gauge(
            "bythebook_index_generation_info",
            "The generation that the latest reply was made from.",
            ["worker", "generation", "vectors"],
            registry=self._registry,
        )
        streams = Gauge(
            "bythebook_streams_open",
            "Streams that are being read.",
            ["worker"],
            registry=self._registry,
        )
        streams.labels(self._worker).set_function(open_streams)
        self._registry.register(_Asked(asked, self._worker))

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
        of_writer, usage = (self._worker, reply.writer), reply.usage
        self._tokens.labels(*of_writer, "in").inc(usage.prompt_tokens)
        self._tokens.labels(*of_writer, "out").inc(usage.completion_tokens)
        self._model_calls.labels(*of_writer).inc(usage.calls)
        self._cost.labels(*of_writer).inc(usage.cost_usd or 0)
        self._fallbacks.labels(*of_writer).inc(reply.fallback is not None)
        self._withheld.labels(*of_writer).inc(reply.withheld)

    def text(self) -> bytes:
        return generate_latest(self._registry)
