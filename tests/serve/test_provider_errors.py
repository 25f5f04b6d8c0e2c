"""Every fault of a provider, told by every contract in its own shape to somebody who reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
from fastapi.testclient import TestClient

from bythebook.errors import EmbedderFailed, ServiceError, WriterFailed
from bythebook.library import Library
from bythebook.model import Asker, Message, Question, Reply
from bythebook.providers.fake import FakeEmbedder, MemoryCatalog, MemoryShelf, MemoryThreads
from bythebook.providers.faults import Fault, Kind, Named
from bythebook.serve.app import create_app

_PATHS = {
    "/query": "text",
    "/ask": "text",
    "/api/v2/query": "query",
    "/api/v1/query": "query",
    "/chat/run": "message",
    "/v1/chat/completions": "messages",
}
_SECRETS = ("openai:", "OPENAI_API_KEY", "base_url", "model.", "limits.", "Traceback")


class _BrokenLibrary(Library):
    """Every question ends in the error of the day."""

    def __init__(self) -> None:
        super().__init__(
            embedder=FakeEmbedder(),
            shelf=MemoryShelf(),
            catalog=MemoryCatalog(),
            threads=MemoryThreads(),
        )
        self.error: Exception = AssertionError()

    async def reply(
        self, question: Question, *, asker: Asker | None = None, history: Sequence[Message] = ()
    ) -> Reply:
        raise self.error


@pytest.fixture(scope="module")
def broken() -> Iterator[tuple[_BrokenLibrary, TestClient]]:
    library = _BrokenLibrary()
    with TestClient(create_app(library), client=("127.0.0.1", 50_000)) as client:
        yield library, client


def _errors() -> Iterator[ServiceError]:
    for failed in (WriterFailed, EmbedderFailed):
        named = Named("openai:some-model", "model", "OPENAI_API_KEY", failed)
        for kind in Kind:
            yield named.error(Fault(kind))
        yield named.error(Fault(Kind.BUSY, retry_after=11.2))


_ERRORS = list(_errors())


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("error", _ERRORS, ids=lambda error: f"{type(error).__name__}: {error}")
def test_every_fault_is_told_by_every_contract(
    path: str, error: ServiceError, broken: tuple[_BrokenLibrary, TestClient]
) -> None:
    library, client = broken
    library.error = error
    asked: object = "What is a kite?"
    body = {"messages": [{"role": "user", "content": asked}]} if "v1/chat" in path else {}
    response = client.post(path, json=body or {_PATHS[path]: asked})
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
