"""A book in; a published generation and an ``IngestResult`` out.

In order: compare with the catalog, embed what is new (each batch durable as soon as it is made),
publish a whole generation beside the served one, then commit catalog and pointer in a single
transaction. Whatever instant it is killed at, the served book is whole and the next run finishes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bythebook.book.site import Book, Problem
from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.index.catalog import diff, fingerprint, vector_key
from bythebook.index.lexicon import Vocabulary
from bythebook.model import Passage
from bythebook.ports import Catalog, Embedder, Entry, Generation, Shelf, StoredVectors

T = TypeVar("T")

_BATCH = 32  # passages embedded between two commits

Progress = Callable[[int, int], None]  # passages embedded so far, passages to embed


@dataclass(frozen=True, slots=True)
class IngestResult:
    """S3's IngestResult, and what an author would like to know besides. Counts are passages."""

    files_processed: int
    chunks_created: int
    errors: tuple[str, ...]
    embedded: int
    unchanged: int
    changed: int
    removed: int
    coverage: float
    seconds: float

    @property
    def exit_code(self) -> int:
        return 1 if self.errors else 0


async def ingest(
    book: Book,
    *,
    catalog: Catalog,
    shelf: Shelf,
    embedder: Embedder,
    on_progress: Progress = lambda done, total: None,
    origin: str = "",
) -> IngestResult:
    began = time.perf_counter()
    passages = list({passage.id: passage for passage in book.passages}.values())
    change = diff(catalog.passages(), passages)
    embedded = await _embed_missing(passages, catalog, embedder, on_progress)
    await _publish(passages, catalog, shelf, embedder, origin=origin)
    return IngestResult(
        files_processed=len(book.pages),
        chunks_created=len(passages),
        errors=tuple(describe(problem) for problem in book.problems if problem.fatal),
        embedded=embedded,
        unchanged=change.unchanged,
        changed=change.changed,
        removed=change.removed,
        coverage=book.coverage,
        seconds=time.perf_counter() - began,
    )


def describe(problem: Problem) -> str:
    line = "" if problem.line is None else f":{problem.line}"
    return f"{problem.file}{line}: {problem.reason}"


async def _embed_missing(
    passages: Sequence[Passage], catalog: Catalog, embedder: Embedder, on_progress: Progress
) -> int:
    known = catalog.known_vectors(embedder.name)
    missing = {vector_key(p): p for p in passages if vector_key(p) not in known}
    done = 0
    for batch in _batches(list(missing.items())):
        catalog.add_vectors(embedder.name, await _embed(batch, embedder))
        done += len(batch)
        on_progress(done, len(missing))
    return done


async def _embed(batch: Sequence[tuple[str, Passage]], embedder: Embedder) -> list[StoredVectors]:
    # One call for passages and units together: the embedder sorts by length and pads little.
    texts = [passage.embedded_text for _, passage in batch]
    for _, passage in batch:
        texts.extend(passage.unit_text(unit) for unit in passage.units)
    vectors = await embedder.embed(texts, role="passage")
    stored, position = [], len(batch)
    for row, (key, passage) in enumerate(batch):
        end = position + len(passage.units)
        stored.append(StoredVectors(key, vectors[row], vectors[position:end]))
        position = end
    return stored


async def _publish(
    passages: Sequence[Passage],
    catalog: Catalog,
    shelf: Shelf,
    embedder: Embedder,
    *,
    origin: str,
) -> None:
    print_of_book = fingerprint(passages, embedder.name, origin)
    current = catalog.current()
    if current is not None and current.fingerprint == print_of_book and await whole(shelf, current):
        return
    vocabulary = Vocabulary.of(passages)
    generation = Generation(
        name=uuid.uuid4().hex,
        embedder=embedder.name,
        dimension=embedder.dimension,
        passages=len(passages),
        fingerprint=print_of_book,
        vocabulary=vocabulary.to_bytes(),
        origin=origin,
    )
    entries = _entries(passages, catalog, embedder.name, vocabulary)
    published = await shelf.publish(generation.name, entries)
    if published != len(passages):
        raise IndexDamaged(
            f"The new index holds {published} passages instead of {len(passages)}.",
            cure="The old book is still served; run the ingest again.",
        )
    catalog.commit(passages, generation, keep_vectors={vector_key(p) for p in passages})
    await shelf.discard(keep=[generation.name, *([current.name] if current else [])])


async def whole(shelf: Shelf, generation: Generation) -> bool:
    """Whether a generation can be opened and holds what the catalog says."""
    try:
        store = await shelf.open(generation.name)
        return await store.count() == generation.passages
    except (IndexDamaged, StoreFailed):
        return False


def _entries(
    passages: Iterable[Passage], catalog: Catalog, embedder: str, vocabulary: Vocabulary
) -> Iterator[Entry]:
    for batch in _batches(list(passages)):
        vectors = catalog.vectors(embedder, [vector_key(passage) for passage in batch])
        for passage in batch:
            stored = vectors[vector_key(passage)]
            terms = vocabulary.weigh(passage)
            yield Entry(passage, stored.vector, stored.unit_vectors, terms)


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
