"""Everything that can go wrong, as one tree. A refusal is not here: it is a value.

::

    BookError                      exit code
    ├── InvalidInput                   2      a question, selection or option that cannot be used
    │   ├── TooLarge                   2      more than a request may carry
    │   └── KeyReused                  2      an Idempotency-Key that came with another request
    ├── NotFound                       2      a thread, key or section that is not there for you
    ├── NotAllowed                     2      a key that is missing, unknown or revoked
    ├── RateLimited                    3      too many questions; says when the next may come
    ├── ConfigurationError             2      settings that do not fit together
    │   ├── UnknownProvider            2      a "provider:model" nobody knows, or not installed
    │   ├── NotIngested                2      the home holds no book yet
    │   └── EmbedderMismatch           2      the index was made by another embedder
    ├── SourceError                    2      a folder or file of the book that cannot be read
    ├── IngestRunning                  3      another ingest is at work on the same home
    ├── IndexDamaged                   3      catalog and index do not agree
    └── ServiceError                   3      something the answer needs did not answer
        ├── EmbedderFailed             3
        ├── StoreFailed                3
        ├── WriterFailed               3
        │   └── Truncated              3      it reached the length it may have
        ├── DatabaseFailed             3
        └── Stopping                   3      the server is being shut down

``message`` is for a person and names what happened; ``cure`` says what to do about it. Neither
carries a stack trace, a key or, for services, an address.
"""

from __future__ import annotations


class BookError(Exception):
    """The root: every error of ours, with one sentence for what happened and one for the cure."""

    exit_code = 2

    def __init__(self, message: str, *, cure: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.message} {self.cure}".strip()


class InvalidInput(BookError):
    """A question, selection or option that cannot be used."""

    def __init__(self, message: str, *, cure: str = "", field: str = "") -> None:
        super().__init__(message, cure=cure)
        self.field = field  # of the request, where it is known which one


class TooLarge(InvalidInput):
    """More than a request may carry."""


class KeyReused(InvalidInput):
    """An Idempotency-Key that came with another request before."""


class NotFound(BookError):
    """Not there, or not there for whoever asks: the two are never told apart."""


class NotAllowed(BookError):
    """A key that is missing, unknown or revoked."""


class RateLimited(BookError):
    """Too many questions in too short a time."""

    exit_code = 3

    def __init__(self, message: str, *, retry_after: float, cure: str = "") -> None:
        super().__init__(message, cure=cure)
        self.retry_after = retry_after  # seconds until the next may come


class ConfigurationError(BookError):
    """Settings that do not fit together."""


class UnknownProvider(ConfigurationError):
    """A "provider:model" that nobody knows, or whose package is not installed."""


class NotIngested(ConfigurationError):
    """The home holds no book yet."""


class EmbedderMismatch(ConfigurationError):
    """The index was made by another embedder than the one configured."""


class SourceError(BookError):
    """A folder or file of the book that cannot be read."""


class IngestRunning(BookError):
    """Another ingest is at work on the same home."""

    exit_code = 3


class IndexDamaged(BookError):
    """Catalog and index do not agree."""

    exit_code = 3


def damaged_catalog(part: str) -> IndexDamaged:
    return IndexDamaged(
        f"The catalog's {part} is damaged.",
        cure="Move the home folder away and ingest the book again.",
    )


class ServiceError(BookError):
    """Something that the answer needs did not answer."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        cure: str = "",
        timed_out: bool = False,
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, cure=cure)
        self.timed_out = timed_out  # it may still have been at work
        self.retryable = retryable  # the same may succeed later, with nothing changed
        self.retry_after = retry_after  # seconds, where the service said so


class EmbedderFailed(ServiceError):
    """The embedder gave no usable vectors."""


class StoreFailed(ServiceError):
    """The passage store did not answer."""


class WriterFailed(ServiceError):
    """The writer broke off."""


class Truncated(WriterFailed):
    """The writer reached the length it may have: its last sentence may be half of one."""


class DatabaseFailed(ServiceError):
    """The database did not answer."""


class Stopping(ServiceError):
    """The server is being shut down."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down.", cure="Ask again in a moment.")
