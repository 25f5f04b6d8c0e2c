"""What a service behind an address did wrong in; an error of ours, with its cure, out.

A ``Fault`` never leaves ``providers/``: ``told`` makes it the error that the stages know. None of
its words are the service's own, which may hold keys, addresses or anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bythebook.errors import ServiceError, Truncated, WriterFailed


class Kind(StrEnum):
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
    cure: str
    retryable: bool = False  # the same call may succeed in a moment
    timed_out: bool = False


_AGAIN = "Ask again in a moment."
_TIME = "Ask again, or give it more time: the settings under [{section}]."
_ADDRESS = "Check {section}.base_url: most end in /v1."

WORDS = {
    Kind.NO_KEY: Words("{name} needs a key.", "Export {key_name}, or set {section}.api_key."),
    Kind.BAD_KEY: Words(
        "The key for {name} holds characters that no key has.", "Set {key_name} again."
    ),
    Kind.WRONG_KEY: Words("{name} did not accept the key.", "Check {key_name}."),
    Kind.NO_CREDIT: Words(
        "The account for {name} has no credit left.", "Add some where the key comes from."
    ),
    Kind.UNKNOWN_MODEL: Words(
        "The provider has no model {model}.", "Check the name of the model, and your access to it."
    ),
    Kind.NOTHING_THERE: Words("Nothing answers for {name} at its address.", _ADDRESS),
    Kind.MOVED: Words("The address of {name} leads to another one.", _ADDRESS),
    Kind.WEB_PAGE: Words("{name} answered with a web page.", _ADDRESS),
    Kind.UNREACHABLE: Words("{name} cannot be reached.", "{start}", retryable=True),
    Kind.LATE_TO_BEGIN: Words(
        "{name} did not begin in time.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    Kind.SILENT: Words(
        "{name} fell silent.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    Kind.LATE: Words(
        "{name} took too long.",
        _TIME,
        retryable=True,
        timed_out=True,
    ),
    Kind.BUSY: Words("{name} takes no more requests for now.", _AGAIN, retryable=True),
    Kind.OUT_OF_ORDER: Words("{name} is out of order.", _AGAIN, retryable=True),
    Kind.RESTING: Words(
        "{name} has failed several times and is left alone for a moment.", _AGAIN, retryable=True
    ),
    Kind.CUT: Words("{name} broke off.", _AGAIN, retryable=True),
    Kind.GARBLED: Words(
        "{name} answered with something that cannot be read.",
        "Ask again, or check {section}.base_url.",
        retryable=True,
    ),
    Kind.TOO_MUCH: Words(
        "{name} does not stop.", "Choose another model, or lower model.max_output_tokens."
    ),
    Kind.TOO_LONG: Words(
        "The question and its passages are too long for {name}.",
        "Lower limits.context_tokens, or choose a model that reads more.",
    ),
    Kind.REJECTED: Words(
        "{name} does not take the request.", "Check the name of the model and its settings."
    ),
    Kind.FILTERED: Words(
        "The provider's filter stopped {name}.", "Ask in other words, or choose another model."
    ),
    Kind.EMPTY: Words("{name} said nothing.", _AGAIN, retryable=True),
    Kind.TRUNCATED: Words(
        "{name} reached the length that an answer may have.", "Raise model.max_output_tokens."
    ),
    Kind.OVER_BUDGET: Words(
        "Today's tokens are used up.", "Raise model.daily_tokens, or wait for midnight (UTC)."
    ),
    Kind.UNCOUNTED: Words(
        "The tokens of today cannot be counted, so none are spent.",
        "Check the home folder.",
        retryable=True,
    ),
    Kind.WRONG_DIMENSION: Words(
        "{name} gives vectors of another dimension than {dimension}.",
        'Write its true one after the model, as in "{name}@{found}", and ingest the book again.',
    ),
    Kind.NO_DIRECTION: Words(
        "{name} returned vectors that cannot be used.", "Ask again, or choose another embedder."
    ),
}


class Fault(Exception):
    """One call that went wrong, before it has words."""

    def __init__(
        self, kind: Kind, *, retry_after: float | None = None, parameter: str = "", found: int = 0
    ) -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.retry_after = retry_after  # seconds
        self.parameter = parameter  # of the request, which the service does not take
        self.found = found  # dimension

    @property
    def retryable(self) -> bool:
        return WORDS[self.kind].retryable


@dataclass(frozen=True, slots=True)
class Named:
    """How the service is called when something goes wrong with it."""

    name: str  # "openai:gpt-4o-mini"
    section: str  # of the settings: model or embedding
    key_name: str  # what people export
    failed: type[ServiceError]
    start: str = "Check the network, and {section}.base_url if it is set."
    dimension: int = 0

    def error(self, fault: Fault) -> ServiceError:
        words = WORDS[fault.kind]
        kind = self.failed
        if fault.kind is Kind.TRUNCATED and issubclass(kind, WriterFailed):
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
            cure=words.cure.format_map(fields),
            retryable=words.retryable or fault.retry_after is not None,
            retry_after=fault.retry_after,
            timed_out=words.timed_out,
        )


@contextmanager
def told(named: Named) -> Iterator[None]:
    try:
        yield
    except Fault as fault:
        raise named.error(fault) from None
