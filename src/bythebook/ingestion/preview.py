"""Compare the sources with the catalog, and say what an ingest would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.ingestion.indexer import (
    EmbeddingEstimate,
    errors_of,
    estimate,
    notes_on,
    warnings_on,
    without_vectors,
)
from bythebook.text.passage_records import Change, diff

if TYPE_CHECKING:
    from bythebook.ingestion.read_book import LeftOutTotal, ParsedBook
    from bythebook.interfaces.store import Catalog
    from bythebook.sources.inventory import UnreadFile


@dataclass(frozen=True, slots=True)
class IngestPreview:
    change: Change
    estimate: EmbeddingEstimate | None
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    not_read: tuple[UnreadFile, ...]
    not_read_total: int
    images: int
    left_out: tuple[LeftOutTotal, ...]

    @property
    def exit_code(self) -> int:
        return 1 if self.errors else 0


def preview(
    book: ParsedBook, catalog: Catalog | None, *, embedder: str, price_in: float | None
) -> IngestPreview:
    """Return what ingesting the book would do. ``catalog`` is None before the first ingest."""
    known_vectors = catalog.known_vectors(embedder) if catalog else set()
    missing = without_vectors(book.passages, known_vectors)
    return IngestPreview(
        change=diff(catalog.passages() if catalog else {}, book.passages),
        estimate=estimate(missing, embedder, price_in),
        errors=errors_of(book),
        warnings=warnings_on(book.passages),
        notes=notes_on(book),
        not_read=tuple(book.unread.files),
        not_read_total=len(book.unread.files),
        images=book.unread.images,
        left_out=tuple(book.left_out),
    )
