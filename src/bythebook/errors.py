"""Exception hierarchy. A refusal is not an error but a value (``refusals.Refusal``).

``message`` describes what happened, ``hint`` what the user can do about it. Neither contains a
stack trace, a key or, for services, an address. ``exit_code`` is that of the command line: 2 for
bad input and configuration, 3 for a service or an index that cannot be used.
"""

from __future__ import annotations

RETRY_AFTER_S = 2.0  # by then a restarted server answers, and a load peak is over


class BookError(Exception):
    """Base class of all errors: one sentence for what happened, one hint on what to do."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InvalidInput(BookError):
    """Invalid question, selection or option."""

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field  # of the request; empty if unknown


class TooLarge(InvalidInput):
    """Request above the size limit."""


class KeyReused(InvalidInput):
    """Idempotency-Key that was used with another request before."""


class WrongHost(InvalidInput):
    """Request to a host name that is not the server's: a web page may have redirected the name."""


class NotFound(BookError):
    """Object that is unknown or belongs to another owner; clients cannot distinguish the two."""


class NotAllowed(BookError):
    """Missing, unknown or revoked API key."""


class Forbidden(NotAllowed):
    """API key without the right to do this."""


class RateLimited(BookError):
    """Rate limit exceeded."""

    exit_code = 3

    def __init__(self, message: str, *, retry_after: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after  # seconds until the next request is allowed


class ConfigurationError(BookError):
    """Invalid or inconsistent settings."""


class UnknownProvider(ConfigurationError):
    """Unknown "provider:model", or one whose package is not installed."""


class NotIngested(ConfigurationError):
    """Home folder without an ingested book."""


class EmbedderMismatch(ConfigurationError):
    """Index built with another embedder than the configured one."""


class SourceError(BookError):
    """Unreadable folder or file of the book."""


class IngestRunning(BookError):
    """Another ingest is running on the same home folder."""

    exit_code = 3


class IndexDamaged(BookError):
    """Catalog and index are inconsistent."""

    exit_code = 3


def damaged_catalog(part: str) -> IndexDamaged:
    return IndexDamaged(
        f"The catalog's {part} is damaged.",
        hint="Move the home folder away and ingest the book again.",
    )


class ServiceError(BookError):
    """A service that the answer depends on failed or timed out."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        timed_out: bool = False,
        retryable: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.timed_out = timed_out  # the service may still be processing the request
        self.retryable = retryable  # the same request may succeed later, unchanged
        self.retry_after = retry_after  # seconds, if the service gave a time


class EmbedderFailed(ServiceError):
    """The embedder returned no usable vectors."""


class ReaderFailed(ServiceError):
    """The reading model could not be loaded or returned no usable numbers."""


class StoreFailed(ServiceError):
    """The passage store failed or did not respond."""


class WriterFailed(ServiceError):
    """The writer stopped before the draft was complete."""


class Truncated(WriterFailed):
    """The writer reached the output limit; its last sentence may be incomplete."""


class DatabaseFailed(ServiceError):
    """The database failed or did not respond."""


class Stopping(ServiceError):
    """The server is shutting down."""

    def __init__(self) -> None:
        super().__init__(
            "The server is shutting down.", hint="Ask again in a moment.", retry_after=RETRY_AFTER_S
        )
