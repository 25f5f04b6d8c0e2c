"""Errors of hosted services, and their translation into errors with a hint.

A ``ProviderError`` never leaves ``providers/``: ``translate_errors`` turns it into a
``ServiceError``. Messages of the service are never included: they may hold keys or addresses.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum, auto
from functools import cache
from pathlib import Path
from typing import Any

from bythebook.errors import ServiceError, Truncated, WriterFailed


class ErrorCode(StrEnum):
    NO_KEY = auto()
    BAD_KEY = auto()  # characters that an HTTP header cannot carry
    WRONG_KEY = auto()
    NO_CREDIT = auto()
    UNKNOWN_MODEL = auto()
    NOT_FOUND = auto()
    REDIRECTED = auto()
    WEB_PAGE = auto()
    UNREACHABLE = auto()
    LATE_START = auto()
    STALLED = auto()
    LATE = auto()
    RATE_LIMITED = auto()
    UNAVAILABLE = auto()
    CIRCUIT_OPEN = auto()
    CONNECTION_LOST = auto()
    MALFORMED = auto()
    TOO_MUCH = auto()  # output
    TOO_LONG = auto()  # input
    REJECTED = auto()
    FILTERED = auto()
    EMPTY = auto()
    TRUNCATED = auto()
    OVER_BUDGET = auto()
    UNCOUNTED = auto()
    WRONG_DIMENSION = auto()
    BAD_VECTORS = auto()


@dataclass(frozen=True, slots=True)
class ErrorText:
    message: str
    hint: str
    retryable: bool = False  # the same call may succeed shortly
    timed_out: bool = False


@cache
def error_texts() -> Mapping[ErrorCode, ErrorText]:
    tables = tomllib.loads(Path(__file__).with_name("error_texts.toml").read_text("utf-8"))
    return {ErrorCode(code): ErrorText(**fields) for code, fields in tables.items()}


class ProviderError(Exception):
    """Failure of one call, without a message for users."""

    def __init__(
        self,
        code: ErrorCode,
        *,
        retry_after: float | None = None,
        parameter: str = "",
        found: int = 0,
    ) -> None:
        super().__init__(code.value)
        self.code = code
        self.retry_after = retry_after  # seconds
        self.parameter = parameter  # of the request, rejected by the service
        self.found = found  # dimension

    @property
    def retryable(self) -> bool:
        return error_texts()[self.code].retryable

    @property
    def timed_out(self) -> bool:
        return error_texts()[self.code].timed_out


@dataclass(frozen=True, slots=True)
class ServiceName:
    """Names of a service and its settings, for error messages."""

    name: str  # "openai:gpt-4o-mini"
    section: str  # of the settings file: model or embedding
    key_name: str  # environment variable or setting
    failed: type[ServiceError]
    start: str = "Check the network, and {section}.base_url if it is set."
    dimension: int = 0

    def error(self, fault: ProviderError) -> ServiceError:
        text = error_texts()[fault.code]
        kind = self.failed
        if fault.code is ErrorCode.TRUNCATED and issubclass(kind, WriterFailed):
            kind = Truncated
        fields = {
            "name": self.name,
            "model": repr(self.name.partition(":")[2]),
            "section": self.section,
            "key_name": self.key_name or f"{self.section}.api_key",
            "dimension": self.dimension,
            "found": fault.found,
        }
        fields["start"] = self.start.format_map(fields)
        return kind(
            text.message.format_map(fields),
            hint=text.hint.format_map(fields),
            retryable=text.retryable or fault.retry_after is not None,
            retry_after=fault.retry_after,
            timed_out=text.timed_out,
        )


@contextmanager
def translate_errors(service: ServiceName) -> Iterator[None]:
    try:
        yield
    except ProviderError as fault:
        raise service.error(fault) from None


# --- error responses: their messages are only matched against patterns, never passed on ----------

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
