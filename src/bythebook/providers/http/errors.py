"""Errors of hosted services, and their translation into errors with a cure.

A ``ProviderError`` never leaves ``providers/``: ``translate_errors`` turns it into a
``ServiceError``. Messages of the service are never included: they may hold keys or addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bythebook.errors import ServiceError, Truncated, WriterFailed


class ErrorCode(StrEnum):
    NO_KEY = "no key"
    BAD_KEY = "a key that no header can carry"
    WRONG_KEY = "wrong key"
    NO_CREDIT = "no credit"
    UNKNOWN_MODEL = "unknown model"
    NOTHING_THERE = "nothing there"
    MOVED = "moved"
    WEB_PAGE = "a web page"
    UNREACHABLE = "unreachable"
    LATE_TO_BEGIN = "late to begin"
    SILENT = "silent"
    LATE = "late"
    BUSY = "busy"
    OUT_OF_ORDER = "out of order"
    RESTING = "resting"
    CUT = "cut"
    GARBLED = "garbled"
    TOO_MUCH = "too much"
    TOO_LONG = "too long"
    REJECTED = "rejected"
    FILTERED = "filtered"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    OVER_BUDGET = "over budget"
    UNCOUNTED = "uncounted"
    WRONG_DIMENSION = "wrong dimension"
    NO_DIRECTION = "no direction"


@dataclass(frozen=True, slots=True)
class Words:
    said: str
    hint: str
    retryable: bool = False  # the same call may succeed shortly
    timed_out: bool = False


_AGAIN = "Ask again in a moment."
_TIME = "Ask again, or give it more time: the settings under [{section}]."
_ADDRESS = "Check {section}.base_url: most end in /v1."

WORDS = {
    ErrorCode.NO_KEY: Words("{name} needs a key.", "Export {key_name}, or set {section}.api_key."),
    ErrorCode.BAD_KEY: Words(
        "The key for {name} holds characters that no key has.", "Set {key_name} again."
    ),
    ErrorCode.WRONG_KEY: Words("{name} did not accept the key.", "Check {key_name}."),
    ErrorCode.NO_CREDIT: Words(
        "The account for {name} has no credit left.", "Add some where the key comes from."
    ),
    ErrorCode.UNKNOWN_MODEL: Words(
        "The provider has no model {model}.", "Check the name of the model, and your access to it."
    ),
    ErrorCode.NOTHING_THERE: Words("Nothing answers for {name} at its address.", _ADDRESS),
    ErrorCode.MOVED: Words("The address of {name} leads to another one.", _ADDRESS),
    ErrorCode.WEB_PAGE: Words("{name} answered with a web page.", _ADDRESS),
    ErrorCode.UNREACHABLE: Words("{name} cannot be reached.", "{start}", retryable=True),
    ErrorCode.LATE_TO_BEGIN: Words(
        "{name} did not begin in time.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    ErrorCode.SILENT: Words(
        "{name} fell silent.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    ErrorCode.LATE: Words(
        "{name} took too long.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    ErrorCode.BUSY: Words("{name} takes no more requests for now.", _AGAIN, retryable=True),
    ErrorCode.OUT_OF_ORDER: Words("{name} is out of order.", _AGAIN, retryable=True),
    ErrorCode.RESTING: Words(
        "{name} has failed several times and is left alone for a moment.", _AGAIN, retryable=True
    ),
    ErrorCode.CUT: Words("{name} broke off.", _AGAIN, retryable=True),
    ErrorCode.GARBLED: Words(
        "{name} answered with something that cannot be read.",
        "Ask again, or check {section}.base_url.",
        retryable=True,
    ),
    ErrorCode.TOO_MUCH: Words(
        "{name} does not stop.", "Choose another model, or lower model.max_output_tokens."
    ),
    ErrorCode.TOO_LONG: Words(
        "The question and its passages are too long for {name}.",
        "Lower limits.context_tokens, or choose a model that reads more.",
    ),
    ErrorCode.REJECTED: Words(
        "{name} does not take the request.", "Check the name of the model and its settings."
    ),
    ErrorCode.FILTERED: Words(
        "The provider's filter stopped {name}.", "Ask in other words, or choose another model."
    ),
    ErrorCode.EMPTY: Words("{name} said nothing.", _AGAIN, retryable=True),
    ErrorCode.TRUNCATED: Words(
        "{name} reached the length that an answer may have.", "Raise model.max_output_tokens."
    ),
    ErrorCode.OVER_BUDGET: Words(
        "Today's tokens are used up.", "Raise model.daily_tokens, or wait for midnight (UTC)."
    ),
    ErrorCode.UNCOUNTED: Words(
        "The tokens of today cannot be counted, so none are spent.",
        "Check the home folder.",
        retryable=True,
    ),
    ErrorCode.WRONG_DIMENSION: Words(
        "{name} gives vectors of another dimension than {dimension}.",
        'Write its true one after the model, as in "{name}@{found}", and ingest the book again.',
    ),
    ErrorCode.NO_DIRECTION: Words(
        "{name} returned vectors that cannot be used.", "Ask again, or choose another embedder."
    ),
}


class ProviderError(Exception):
    """Failure of one call, without a message for users."""

    def __init__(
        self,
        kind: ErrorCode,
        *,
        retry_after: float | None = None,
        parameter: str = "",
        found: int = 0,
    ) -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.retry_after = retry_after  # seconds
        self.parameter = parameter  # of the request, rejected by the service
        self.found = found  # dimension

    @property
    def retryable(self) -> bool:
        return WORDS[self.kind].retryable


@dataclass(frozen=True, slots=True)
class Named:
    """Names of a service and its settings, for error messages."""

    name: str  # "openai:gpt-4o-mini"
    section: str  # of the settings file: model or embedding
    key_name: str  # environment variable or setting
    failed: type[ServiceError]
    start: str = "Check the network, and {section}.base_url if it is set."
    dimension: int = 0

    def error(self, fault: ProviderError) -> ServiceError:
        words = WORDS[fault.kind]
        kind = self.failed
        if fault.kind is ErrorCode.TRUNCATED and issubclass(kind, WriterFailed):
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
            words.said.format_map(fields),
            hint=words.hint.format_map(fields),
            retryable=words.retryable or fault.retry_after is not None,
            retry_after=fault.retry_after,
            timed_out=words.timed_out,
        )


@contextmanager
def translate_errors(named: Named) -> Iterator[None]:
    try:
        yield
    except ProviderError as fault:
        raise named.error(fault) from None
