"""Translate error responses of hosted services into ``ProviderError``.

Messages of the service are only matched against patterns, never passed on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bythebook.providers.http.errors import ErrorCode, ProviderError

_A_DAY_S = 86_400.0

_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|too many (?:input )?tokens|too long|maximum.{0,30}tokens"
    r"|exceed.{0,40}(?:tokens|context)|string_above_max_length",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not found|not exist|not supported|no longer|deprecated|invalid)"
    r"|(?:not a valid|no such|unknown|invalid) model|model_not_found",
    re.IGNORECASE,
)
_NO_SUCH_KEY = re.compile(r"api.?key.{0,20}(?:not valid|invalid)|invalid.{0,5}api", re.IGNORECASE)
_PARAMETERS = (
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "stream_options",
    "response_format",
)


def refusal(status: int, headers: Mapping[str, str], message: str) -> ProviderError:
    """Translate an error response; only a retryable one has a ``retry_after``."""
    fault = fault_of(status, message)
    if fault.retryable:
        wait_s = retry_after(headers, datetime.now(UTC))
        fault.retry_after = _delay_within(message) if wait_s is None else wait_s
    return fault


def fault_of(status: int, message: str) -> ProviderError:
    """Translate an error response by its status and message."""
    code = _by_message(status, message) or _by_status(status, message)
    return ProviderError(code, parameter=_parameter(message) if code is ErrorCode.REJECTED else "")


def stream_fault(error: Any) -> ProviderError:
    """Translate an error sent within a stream; its code, if any, is read as an HTTP status."""
    code = error.get("code") if isinstance(error, dict) else None
    return fault_of(code if isinstance(code, int) and 400 <= code < 600 else 500, str(error))


def _parameter(message: str) -> str:
    """Return the parameter that is named first: later ones are suggested replacements."""
    named = [name for name in _PARAMETERS if name in message]
    return min(named, key=message.index, default="")


def _by_message(status: int, message: str) -> ErrorCode | None:
    if status == 429 and "insufficient_quota" in message:
        return ErrorCode.NO_CREDIT
    if status == 400 and _NO_SUCH_KEY.search(message):
        return ErrorCode.WRONG_KEY
    if status not in (400, 404, 422):
        return None
    if _TOO_LONG.search(message):
        return ErrorCode.TOO_LONG
    is_model = _NO_MODEL.search(message) and not any(name in message for name in _PARAMETERS)
    return ErrorCode.UNKNOWN_MODEL if is_model else None


_BY_STATUS = {
    401: ErrorCode.WRONG_KEY,
    402: ErrorCode.NO_CREDIT,
    403: ErrorCode.WRONG_KEY,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.NOT_FOUND,
    408: ErrorCode.UNAVAILABLE,
    409: ErrorCode.UNAVAILABLE,
    410: ErrorCode.UNKNOWN_MODEL,
    413: ErrorCode.TOO_LONG,
    425: ErrorCode.RATE_LIMITED,
    429: ErrorCode.RATE_LIMITED,
}


def _by_status(status: int, message: str) -> ErrorCode:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return ErrorCode.UNAVAILABLE
    if 300 <= status < 400:
        return ErrorCode.REDIRECTED
    return ErrorCode.WEB_PAGE if message.lstrip()[:1] == "<" or status < 300 else ErrorCode.REJECTED


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds, at most a day, from ``Retry-After`` (number or date), if present."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, _A_DAY_S)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is None:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = max(0.0, (when - now).total_seconds())
    return min(seconds, _A_DAY_S)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _delay_within(message: str) -> float | None:
    """Return the delay that Google sends in the body: ``"retryDelay": "34s"``."""
    delay = re.search(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"', message)
    return None if delay is None else min(float(delay[1]), _A_DAY_S)
