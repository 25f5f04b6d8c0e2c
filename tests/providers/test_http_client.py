"""Translation of error responses and of Retry-After headers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import EmbedderFailed, Truncated, WriterFailed
from bythebook.providers.http.error_responses import fault_of, retry_after
from bythebook.providers.http.errors import ErrorCode, ProviderError, ServiceName, error_texts

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
