"""Errors of hosted services, and their translation into errors with a hint.

A ``ProviderError`` never leaves ``providers/``: ``translate_errors`` turns it into a
``ServiceError``. Messages of the service are never included: they may hold keys or addresses.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cache
from pathlib import Path

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
