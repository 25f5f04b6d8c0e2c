"""Compare catalog, index and sources, and report the differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.indexing.passage_records import vector_key
from bythebook.offload import offload
from bythebook.types import Passage, VectorState

if TYPE_CHECKING:
    from bythebook.indexing.indexer import Indexer
    from bythebook.interfaces.store import Generation, IndexedPassage, PassageStore, StoredVectors

_BATCH = 256
_CLOSE = 1e-3  # tolerance: stores may keep vectors with less precision than the catalog


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Differences by passage id; all empty if catalog, index and sources agree."""

    passages: int
    vectors: VectorState
    unreadable: str = ""  # why the index could not be read
    missing: tuple[str, ...] = ()  # in the catalog, not in the index
    different: tuple[str, ...] = ()  # other text or vectors in the index than in the catalog
    surplus: int = 0  # in the index, not in the catalog
    without_vectors: tuple[str, ...] = ()  # never embedded, or lost: an ingest creates them
    not_ingested: tuple[str, ...] = ()  # in the sources, not in the catalog
    gone: tuple[str, ...] = ()  # in the catalog, no longer in the sources

    @property
    def index_is_right(self) -> bool:
        """Return whether the index matches the catalog."""
        return not (self.unreadable or self.missing or self.different or self.surplus)

    @property
    def is_current(self) -> bool:
        """Return whether the catalog matches the sources and has all vectors."""
        return not (self.without_vectors or self.not_ingested or self.gone)


async def compare(
    indexer: Indexer, generation: Generation, sources: Iterable[Passage] | None
) -> IndexReport:
    """Compare the three. ``sources`` is None if they can no longer be read."""
    known = await offload(indexer.catalog.passages)
    now = known.keys() if sources is None else {passage.id for passage in sources}
    embedded = await offload(lambda: indexer.catalog.known_vectors(generation.embedder))
    wanted = generation.vectors is VectorState.READY
    unreadable, missing, different, surplus = "", [], [], 0
    try:
        store = await indexer.store.open(generation.name)
        surplus = max(0, await store.count() - len(known))
        for ids in _batches(list(known)):
            passages = {name: known[name] for name in ids}
            found = await _fetch(store, ids)
            missing += [name for name in ids if name not in found]
            vectors = await _vectors(indexer, generation, passages.values()) if wanted else {}
            different += [
                name
                for name, entry in found.items()
                if not _is_same(entry, passages[name], vectors.get(vector_key(passages[name])))
            ]
    except (IndexDamaged, StoreFailed) as error:
        unreadable = error.message
    return IndexReport(
        passages=len(known),
        vectors=generation.vectors,
        unreadable=unreadable,
        missing=tuple(missing),
        different=tuple(different),
        surplus=surplus,
        without_vectors=tuple(n for n, p in known.items() if vector_key(p) not in embedded),
        not_ingested=tuple(sorted(now - known.keys())),
        gone=tuple(sorted(known.keys() - now)),
    )


async def _fetch(store: PassageStore, ids: list[str]) -> dict[str, IndexedPassage]:
    return {entry.passage.id: entry for entry in await store.fetch(ids)}


async def _vectors(
    indexer: Indexer, generation: Generation, passages: Iterable[Passage]
) -> Mapping[str, StoredVectors]:
    keys = [vector_key(p) for p in passages]
    return await offload(lambda: indexer.catalog.vectors(generation.embedder, keys))


def _is_same(entry: IndexedPassage, passage: Passage, stored: StoredVectors | None) -> bool:
    if entry.passage != passage:
        return False
    if stored is None or entry.vector is None:
        return stored is None  # no vector in the catalog to compare with
    return bool(np.allclose(entry.vector, stored.vector, atol=_CLOSE))


def _batches(ids: list[str]) -> Iterable[list[str]]:
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
