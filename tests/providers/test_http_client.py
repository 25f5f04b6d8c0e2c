"""The edge's own rules, without a socket."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import EmbedderFailed, Truncated, WriterFailed
from bythebook.providers.http.client import fault_of, retry_after
from bythebook.providers.http.errors import WORDS, ErrorCode, Named, ProviderError

_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.text(max_size=40))
def test_whatever_retry_after_says_it_is_a_time_within_a_day_or_nothing(value: str) -> None:
    seconds = retry_after({"retry-after": value}, _NOW)
    assert seconds is None or 0 <= seconds <= 86_400


@given(st.integers(-100_000, 100_000))
def test_a_date_is_as_many_seconds_as_it_is_away(seconds: int) -> None:
    when = format_datetime(_NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": when}, _NOW) == min(max(seconds, 0), 86_400)


@given(st.integers(100, 999).filter(lambda status: status != 200), st.text(max_size=60))
def test_every_refusal_is_a_fault_that_has_words(status: int, said: str) -> None:
    assert fault_of(status, said).kind in WORDS


@pytest.mark.parametrize("kind", ErrorCode)
@pytest.mark.parametrize("failed", [WriterFailed, EmbedderFailed])
def test_every_fault_has_a_sentence_and_a_cure(
    kind: ErrorCode, failed: type[WriterFailed] | type[EmbedderFailed]
) -> None:
    named = Named("openai:some{model}", "model", "OPENAI_API_KEY", failed, dimension=3)
    error = named.error(ProviderError(kind, retry_after=7))
    assert isinstance(error, failed)
    assert isinstance(error, Truncated) == (kind is ErrorCode.TRUNCATED and failed is WriterFailed)
    assert error.message.endswith(".")
    assert error.hint.endswith(".")
    assert error.retryable
    assert error.retry_after == 7
