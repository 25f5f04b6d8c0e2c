"""Bounds of responses, and translation of error responses and of Retry-After headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import EmbedderFailed, Truncated, WriterFailed
from bythebook.providers.http.client import ResponseReader
from bythebook.providers.http.errors import (
    ErrorCode,
    ProviderError,
    ServiceName,
    error_texts,
    fault_of,
    retry_after,
)

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.text(max_size=40))
def test_retry_after_is_none_or_within_a_day(value: str) -> None:
    seconds = retry_after({"retry-after": value}, _NOW)
    assert seconds is None or 0 <= seconds <= 86_400


@given(st.integers(-100_000, 100_000))
def test_retry_after_reads_a_date(seconds: int) -> None:
    when = format_datetime(_NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": when}, _NOW) == min(max(seconds, 0), 86_400)


@given(st.integers(100, 999).filter(lambda status: status != 200), st.text(max_size=60))
def test_every_error_status_has_an_error_text(status: int, message: str) -> None:
    assert fault_of(status, message).code in error_texts()


@pytest.mark.parametrize("code", ErrorCode)
@pytest.mark.parametrize("failed", [WriterFailed, EmbedderFailed])
def test_every_error_code_has_a_message_and_a_hint(
    code: ErrorCode, failed: type[WriterFailed] | type[EmbedderFailed]
) -> None:
    service = ServiceName("openai:some{model}", "model", "OPENAI_API_KEY", failed, dimension=3)
    error = service.error(ProviderError(code, retry_after=7))
    assert isinstance(error, failed)
    assert isinstance(error, Truncated) == (code is ErrorCode.TRUNCATED and failed is WriterFailed)
    assert error.message.endswith(".")
    assert error.hint.endswith(".")
    assert error.retryable
    assert error.retry_after == 7


_MIB = 1 << 20


class _Body(httpx.AsyncByteStream):
    def __init__(self, chunk: bytes, times: int) -> None:
        self.chunk = chunk
        self.left = times

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.left:
            self.left -= 1
            yield self.chunk


def _reader(body: _Body) -> ResponseReader:
    return ResponseReader(httpx.Response(200, stream=body))


async def test_events_are_read_from_chunks_of_any_size() -> None:
    reader = _reader(_Body(b"a", 0))
    assert [event async for event in reader.data()] == []
    text = b"data: one\r\ndata: line\r\n\r\n: a comment\n\ndata:two\n\ndata: three"
    for size in (1, 2, 7, 100):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]

        async def body(pieces: list[bytes] = pieces) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        reader = ResponseReader(httpx.Response(200, content=body()))
        assert [event async for event in reader.data()] == ["one\nline", "two", "three"]


@pytest.mark.parametrize("chunk", [b"data:\n" * 1000, b"data: " + b"a" * 1000 + b"\n", b"a" * 1000])
async def test_event_without_an_end_is_refused(chunk: bytes) -> None:
    body = _Body(chunk, 10 * _MIB // len(chunk))
    with pytest.raises(ProviderError) as refused:
        [event async for event in _reader(body).data()]
    assert refused.value.code is ErrorCode.TOO_MUCH
    assert body.left * len(chunk) > 8 * _MIB


async def test_whole_answer_is_as_short_as_an_event() -> None:
    body = _Body(b"[[]," + b"[]," * 1000, 10 * _MIB // 3000)  # parsed, it would take 250 MiB
    with pytest.raises(ProviderError) as refused:
        await _reader(body).json()
    assert refused.value.code is ErrorCode.TOO_MUCH
    assert body.left * 3000 > 8 * _MIB
