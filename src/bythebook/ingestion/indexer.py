"""Ingest a book: embed its passages and publish a new generation.

Steps: compare with the catalog; if no book is served yet, publish a generation for keyword search
within seconds; embed new passages (each batch is committed at once); publish a complete generation
beside the served one; commit catalog and pointer in a single transaction. If the process is killed
at any point, the served book stays complete and the next run finishes the work.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.ingestion.cosine_marks import measure, sample_of
from bythebook.interfaces.models import Embedder
from bythebook.interfaces.store import (
    Catalog,
    Generation,
    GenerationStore,
    IndexedPassage,
    StoredVectors,
)
from bythebook.language.terms import Vocabulary
from bythebook.language.text import one_line
from bythebook.language.tokens import estimate_tokens
from bythebook.offload import offload
from bythebook.retrieval.embeddings import embed
from bythebook.retrieval.score import MEASURED
from bythebook.sources.inventory import UnreadFile
from bythebook.text.passage_records import batches, diff, fingerprint, vector_key
from bythebook.types import Passage, VectorState

if TYPE_CHECKING:
    from bythebook.ingestion.read_book import LeftOutTotal, ParsedBook, Problem

_BATCH = 32  # passages embedded between two commits
_ENOUGH = 0.99  # of a page's visible words; pages with less are reported
MOST_LISTED = 100  # files that were not read, in the result: enough to see what is missing
_NO_SITE_URL = "No site URL: links are relative. Pass --site-url."
_MOST_LOST = 0.5  # share of the passages that an ingest with errors may remove
_SOON = 32  # up to this many passages to embed, no keyword-only generation is published


@dataclass(frozen=True, slots=True)
class IngestResult:
    """IngestResult of the plain contract, with details for authors. Counts are passages."""

    files_processed: int
    chunks_created: int = 0
    errors: tuple[str, ...] = ()
    embedded: int = 0
    unchanged: int = 0
    changed: int = 0
    removed: int = 0
    coverage: float | None = None  # None: the book has no words
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # remarks for authors
    warnings: tuple[str, ...] = ()  # what needs a decision of the author
    generation: str = ""  # name of the generation served afterwards
    not_read: tuple[UnreadFile, ...] = ()  # the first files of the folder that are in no page
    not_read_total: int = 0
    images: int = 0  # in the folder; their text is not read
    left_out: tuple[LeftOutTotal, ...] = ()  # of the pages, on purpose
    published: bool = True  # False: the old book is kept, as this one has lost its passages
    to_embed: EmbeddingEstimate | None = None  # of a dry run, if that costs money

    @property
    def exit_code(self) -> int:
        return 1 if self.errors else 0


def result_of(book: ParsedBook, **counts: Any) -> IngestResult:
    """Return the result of an ingest of this book, with what its author should know."""
    return IngestResult(
        files_processed=len(book.pages),
        errors=_errors_of(book),
        coverage=book.coverage,
        notes=_notes_on(book),
        warnings=_warnings_on(book.passages),
        not_read=book.unread.files[:MOST_LISTED],
        not_read_total=len(book.unread.files),
        images=book.unread.images,
        left_out=book.left_out,
        **counts,
    )


def preview(
    book: ParsedBook, catalog: Catalog | None, *, embedder: str, price_in: float | None
) -> IngestResult:
    """Return what ingesting the book would do. ``catalog`` is None before the first ingest."""
    change = diff(catalog.passages() if catalog else {}, book.passages)
    known_vectors = catalog.known_vectors(embedder) if catalog else set()
    missing = _without_vectors(book.passages, known_vectors)
    result = result_of(
        book,
        chunks_created=len(book.passages),
        unchanged=change.unchanged,
        changed=change.changed,
        removed=change.removed,
        published=False,
        to_embed=_estimate(missing, embedder, price_in),
    )
    return replace(result, not_read=book.unread.files)


def _errors_of(book: ParsedBook) -> tuple[str, ...]:
    return tuple(describe(problem) for problem in book.problems if problem.fatal)


def _warnings_on(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return warnings that need a decision of the author: relative URLs."""
    web = ("http://", "https://")  # without a site URL, an address is only a path
    relative = any(not passage.place.url.startswith(web) for passage in passages)
    return (_NO_SITE_URL,) if relative else ()


def _notes_on(book: ParsedBook) -> tuple[str, ...]:
    """Return remarks for authors: non-fatal problems, and pages with missing words."""
    remarks = [describe(problem) for problem in book.problems if not problem.fatal]
    thin = [page for page in book.pages if page.covered_words < _ENOUGH * page.visible_words]
    lost = [
        f"{page.file}: visible words in no passage: {', '.join(dict.fromkeys(page.missing))}"
        for page in thin
    ]
    return (*remarks, *lost)


def _without_vectors(passages: Iterable[Passage], known: Set[str]) -> dict[str, Passage]:
    """Return the passages whose vector key is not known, by that key."""
    by_key = {vector_key(passage): passage for passage in passages}
    return {key: passage for key, passage in by_key.items() if key not in known}


def describe(problem: Problem) -> str:
    line = "" if problem.line is None else f":{problem.line}"
    return f"{one_line(problem.file)}{line}: {one_line(problem.reason)}"


@dataclass(frozen=True, slots=True)
class EmbeddingEstimate:
    """Amount of text to send to a hosted embedder, and its estimated cost."""

    passages: int
    tokens: int
    cost_usd: float | None

    def __str__(self) -> str:
        cost = "" if self.cost_usd is None else f", about ${self.cost_usd:.4f}"
        return f"To embed: {self.passages} passages, about {self.tokens:,} tokens{cost}"


def _estimate(
    missing: Mapping[str, Passage], embedder: str, price_in: float | None
) -> EmbeddingEstimate | None:
    """Estimate tokens and cost; None for local embedders, which ``auto`` chooses: no cost."""
    if embedder == "auto" or embedder.startswith("local:"):
        return None
    tokens = sum(map(estimate_tokens, _texts(list(missing.values()))))
    cost = None if price_in is None else tokens * price_in / 1e6
    return EmbeddingEstimate(len(missing), tokens, cost)


class IngestProgress:
    """Callbacks of an ingest, which do nothing; override some. They may run on other threads."""

    def pages_read(self, count: int) -> None:
        """Called after each page, with the number of pages read."""

    def estimated(self, estimate: EmbeddingEstimate) -> None:
        """Called before a hosted embedder is used."""

    def searchable(self) -> None:
        """Called when keyword search works, before the passages are embedded."""

    def embedded(self, done: int, total: int) -> None:
        """Called after each batch of passages."""


@dataclass(frozen=True, slots=True)
class Indexer:
    """Catalog, generation store and embedder, with the steps of an ingest."""

    catalog: Catalog
    store: GenerationStore
    embedder: Embedder

    async def ingest(
        self,
        book: ParsedBook,
        *,
        origin: str = "",
        progress: IngestProgress,
        price_in: float | None = None,
        allow_removal: bool = False,
    ) -> IngestResult:
        """Embed what is new and serve the book, at first by keywords if embedding takes long.

        A book that has lost its passages is not served unless ``allow_removal`` is set.
        """
        started = time.perf_counter()
        passages = list({passage.id: passage for passage in book.passages}.values())
        known = await offload(self.catalog.passages)
        change = diff(known, passages)
        if not allow_removal and (loss := _loss(len(known), len(passages), _errors_of(book))):
            kept = result_of(book, unchanged=len(known), published=False)
            served = await offload(self.catalog.served)
            return replace(kept, errors=(*kept.errors, loss), generation=served or "")
        missing = await offload(lambda: self.missing(passages))
        cost = await offload(lambda: _estimate(missing, self.embedder.name, price_in))
        if cost is not None:
            progress.estimated(cost)
        if len(missing) > _SOON and not (change.unchanged and await self.serves_vectors()):
            await self.publish(passages, VectorState.PENDING, origin=origin)
            progress.searchable()
        await self.embed(missing, progress)
        await self.publish(passages, VectorState.READY, origin=origin)
        served = await offload(self.catalog.served)
        return result_of(
            book,
            chunks_created=len(passages),
            embedded=len(missing),
            unchanged=change.unchanged,
            changed=change.changed,
            removed=change.removed,
            seconds=time.perf_counter() - started,
            generation=served or "",
        )

    def missing(self, passages: Iterable[Passage]) -> dict[str, Passage]:
        """Return the passages without a stored vector, by vector key."""
        return _without_vectors(passages, self.catalog.known_vectors(self.embedder.name))

    async def embed(self, missing: Mapping[str, Passage], progress: IngestProgress) -> None:
        done = 0
        for batch in batches(list(missing.items()), _BATCH):
            vectors = await _embed(batch, self.embedder)
            await offload(partial(self.catalog.add_vectors, self.embedder.name, vectors))
            done += len(batch)
            progress.embedded(done, len(missing))

    async def serves_vectors(self) -> bool:
        """Return whether the served generation is complete and supports semantic search."""
        current = await offload(self.catalog.current)
        return (
            current is not None
            and current.vectors is VectorState.READY
            and await is_whole(self.store, current)
        )

    async def serves(self, generation: str) -> bool:
        """Return whether this generation is served, complete, and made with this embedder."""
        current = await offload(self.catalog.current)
        if (
            current is None
            or (current.name, current.embedder) != (generation, self.embedder.name)
            or not await self.serves_vectors()
        ):
            return False
        await self.store.discard(keep=[generation])  # remains of a killed ingest
        return True

    async def publish(
        self,
        passages: Sequence[Passage],
        vectors: VectorState,
        *,
        origin: str,
        again: bool = False,
    ) -> None:
        """Write a generation, with or without vectors, and serve it.

        Does nothing if an identical, complete generation is served, unless ``again`` is set.
        """
        content_hash = fingerprint(passages, f"{vectors} {self.embedder.name}", origin)
        current = await offload(self.catalog.current)
        served = current is not None and current.fingerprint == content_hash
        if current is not None and served and not again and await is_whole(self.store, current):
            await self.store.discard(keep=[current.name])  # remains of a killed ingest
            return
        vocabulary = await offload(lambda: Vocabulary.of(passages))
        generation = Generation(
            name=uuid.uuid4().hex,
            embedder=self.embedder.name,
            dimension=self.embedder.dimension,
            passages=len(passages),
            fingerprint=content_hash,
            vocabulary=vocabulary.to_bytes(),
            origin=origin,
            vectors=vectors,
        )
        entries = self._entries(passages, vocabulary, vectors)
        published = await self.store.publish(generation.name, entries)
        if published != len(passages):
            raise IndexDamaged(
                f"The new index holds {published} passages instead of {len(passages)}.",
                hint="The old book is still served; run the ingest again.",
            )
        if current is not None and again:
            generation = replace(generation, calibration=current.calibration)
        elif vectors is VectorState.READY:
            generation = replace(generation, calibration=await self._calibration(passages))
        kept = {vector_key(p) for p in passages}
        await offload(lambda: self.catalog.commit(passages, generation, keep_vectors=kept))
        await self.store.discard(keep=[generation.name, *([current.name] if current else [])])

    def _entries(
        self, passages: Sequence[Passage], vocabulary: Vocabulary, vectors: VectorState
    ) -> Iterator[IndexedPassage]:
        for batch in batches(passages, _BATCH):
            stored = self._stored(batch) if vectors is VectorState.READY else {}
            for passage in batch:
                terms = vocabulary.weigh(passage)
                if vectors is VectorState.PENDING:
                    yield IndexedPassage(passage, None, np.zeros((0, 0), dtype=np.float32), terms)
                else:
                    vectors_of = stored[vector_key(passage)]
                    yield IndexedPassage(passage, vectors_of.vector, vectors_of.unit_vectors, terms)

    async def _calibration(self, passages: Sequence[Passage]) -> str:
        """Return the marks of the embedder's cosines as JSON; empty if they are known."""
        if self.embedder.name in MEASURED:
            return ""
        sample = sample_of(passages)
        stored = await offload(lambda: self._stored(sample))
        marks = await measure(sample, stored, self.embedder)
        return "" if marks is None else marks.to_json()

    def _stored(self, passages: Iterable[Passage]) -> dict[str, StoredVectors]:
        return self.catalog.vectors(self.embedder.name, [vector_key(p) for p in passages])


def _loss(known: int, found: int, errors: Sequence[str]) -> str:
    """Return why a book with this many passages does not replace the known one, or ""."""
    if found and not (errors and found < _MOST_LOST * known):
        return ""
    if not known:
        return "no passages were found; nothing is published"
    few = f"only {found} of {known} passages were found, with errors"
    return (
        f"{few if found else 'no passages were found'}; the old book is kept, with "
        f"{known} passages. --allow-removal (allow_removal=True) replaces it all the same"
    )


async def is_whole(store: GenerationStore, generation: Generation) -> bool:
    """Return whether a generation can be opened and has as many passages as recorded."""
    try:
        passages = await store.open(generation.name)
        return await passages.count() == generation.passages
    except (IndexDamaged, StoreFailed):
        return False


async def _embed(batch: Sequence[tuple[str, Passage]], embedder: Embedder) -> list[StoredVectors]:
    # One call for passages and units: the embedder sorts by length, so there is little padding.
    texts = _texts([passage for _, passage in batch])
    vectors = await embed(texts, embedder, role="passage")
    stored, position = [], len(batch)
    for row, (key, passage) in enumerate(batch):
        end = position + len(passage.units)
        stored.append(StoredVectors(key, vectors[row], vectors[position:end]))
        position = end
    return stored


def _texts(passages: Sequence[Passage]) -> list[str]:
    """Return the texts of the passages, then those of their units."""
    texts = [passage.embedded_text for passage in passages]
    for passage in passages:
        texts.extend(passage.unit_text(unit) for unit in passage.units)
    return texts
