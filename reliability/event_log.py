"""Check that every contract reports a provider's error to the reader as it should."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Self

from fastapi.testclient import TestClient

from bythebook.book import Book
from bythebook.errors import EmbedderFailed, ServiceError, WriterFailed
from bythebook.interfaces.conversations import Asker
from bythebook.providers.http.errors import ErrorCode, ProviderError, ServiceName
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from bythebook.types import Message, Question, Reply

CONTRACTS = {
    "/query": "text",
    "/ask": "text",
    "/api/v2/query": "query",
    "/api/v1/query": "query",
    "/chat/run": "message",
    "/v1/chat/completions": "messages",
}
_SECRETS = ("openai:", "OPENAI_API_KEY", "base_url", "model.", "limits.", "Traceback")


class _BrokenLibrary(Book):
    """Book on which every question raises the configured error."""

    def __init__(self) -> None:
        super().__init__(
            embedder=FakeEmbedder(),
            store=MemoryGenerationStore(),
            catalog=MemoryCatalog(),
            threads=MemoryThreads(),
        )
        self.error: Exception = AssertionError()

    async def reply(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> Reply:
        raise self.error


def _errors() -> Iterator[ServiceError]:
    for failed in (WriterFailed, EmbedderFailed):
        service = ServiceName("openai:some-model", "model", "OPENAI_API_KEY", failed)
        for code in ErrorCode:
            yield service.error(ProviderError(code))
        yield service.error(ProviderError(ErrorCode.RATE_LIMITED, retry_after=11.2))


KINDS = list(_errors())  # also those that no fault brings about


class Teller:
    """Every contract in front of a book that fails as configured."""

    def __enter__(self) -> Self:
        self._library = _BrokenLibrary()
        self._client = TestClient(
            create_app(self._library), "http://localhost", client=("127.0.0.1", 50_000)
        )
        self._client.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__()

    def wrong(self, error: ServiceError) -> Iterator[str]:
        """Return what is wrong with the reported error, contract by contract."""
        self._library.error = error
        for path in CONTRACTS:
            try:
                _is_told_by(path, error, self._client)
            except AssertionError as reason:
                yield f"{path}: {error!r}: {reason}"


def _is_told_by(path: str, error: ServiceError, client: TestClient) -> None:
    asked: object = "What is a kite?"
    body = {"messages": [{"role": "user", "content": asked}]} if "v1/chat" in path else {}
    response = client.post(path, json=body or {CONTRACTS[path]: asked})
    late = error.timed_out and "v2" in path
    assert response.status_code == (504 if late else 503)
    assert not any(secret in response.text for secret in _SECRETS)
    assert ("Try again in a moment." in response.text) == error.retryable
    assert ("temporarily" in response.text) == error.retryable
    assert (response.headers.get("x-should-retry") == "false") == (not error.retryable)
    wait = None if error.retry_after is None else str(math.ceil(error.retry_after))
    assert response.headers.get("retry-after") == wait
    _has_its_own_shape(path, response.json(), error)


def _has_its_own_shape(path: str, told: dict[str, object], error: ServiceError) -> None:
    writes = isinstance(error, WriterFailed)
    detail = told.get("error")
    if path == "/query":
        assert told["error_type"] == ("RespondingFailed" if writes else "EmbeddingFailed")
        assert told["recoverable"] is error.retryable
    elif path == "/ask":
        assert set(told) == {"error_type", "message", "details"}
    elif path == "/api/v2/query":
        assert isinstance(detail, dict)
        assert detail["code"] == ("OPENROUTER_TIMEOUT" if writes else "COHERE_FAILURE")
        wait = error.retry_after
        assert detail["retry_after"] == (None if wait is None else math.ceil(wait))
    elif path == "/api/v1/query":
        assert set(told) == {"detail"}
    elif path == "/chat/run":
        assert set(told) == {"error_code", "message", "suggested_action", "request_id"}
    else:
        assert isinstance(detail, dict)
        assert set(detail) == {"message", "type", "param", "code"}
