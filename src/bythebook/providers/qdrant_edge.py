"""Generations of a book in the embedded Qdrant engine, one folder each.

A generation is written once, without a write-ahead log, flushed, and from then on only read.
Qdrant's lock guards the log alone, so any number of processes can read the same generation:
a server, its workers and the command line.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import qdrant_edge as edge

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.ports import Candidate, Entry, Filters
from bythebook.providers.points import (
    WEIGHED_BY,
    dense_vectors,
    in_order,
    point_id,
    to_candidate,
    to_entry,
    to_payload,
)
from bythebook.providers.seal import is_sealed, seal

if TYPE_CHECKING:
    from bythebook.model import Vectors

_BATCH = 256
_UNFINISHED = ".unfinished"


class EdgeShelf:
    """A folder of generations: ``<folder>/<generation>/``."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension

    async def publish(self, generation: str, entries: Iterable[Entry]) -> int:
        return await asyncio.to_thread(self._publish, generation, entries)

    async def open(self, generation: str) -> EdgeStore:
        path = self._folder / generation
        if not path.is_dir():
            raise IndexDamaged(
                "The index that the catalog names is missing.", cure="Run the ingest again."
            )
        return EdgeStore(await asyncio.to_thread(_load, path))

    async def discard(self, *, keep: Sequence[str]) -> None:
        await asyncio.to_thread(self._discard, frozenset(keep))

    def _publish(self, generation: str, entries: Iterable[Entry]) -> int:
        # Built under another name: a folder that bears a generation's name is complete.
        draft = self._folder / (generation + _UNFINISHED)
        draft.mkdir(parents=True, exist_ok=False)
        try:
            shard = edge.EdgeShard.create(str(draft), _config(self._dimension))
            for batch in _batches(entries):
                points = [_to_point(entry, self._dimension) for entry in batch]
                shard.update(edge.UpdateOperation.upsert_points(points))
            shard.flush()
            count = int(shard.count(edge.CountRequest(exact=True)))
            shard.close()
            seal(draft)
            draft.rename(self._folder / generation)
        except OSError as error:
            raise StoreFailed(
                f"The index cannot be written: {error.strerror}.",
                cure="Check the space and rights of the home folder.",
            ) from error
        return count

    def _discard(self, keep: frozenset[str]) -> None:
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name not in keep:
                shutil.rmtree(path, ignore_errors=True)


class EdgeStore:
    """One generation, opened for reading."""

    def __init__(self, shard: Any) -> None:
        self._shard = shard

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        wanted = _to_filter(filters)
        if vector is None:
            return await asyncio.to_thread(self._find_by_words, list(terms), limit, wanted)
        return await asyncio.to_thread(self._find, vector.tolist(), list(terms), limit, wanted)

    async def fetch(self, passage_ids: Sequence[str]) -> list[Entry]:
        return await asyncio.to_thread(self._fetch, list(passage_ids))

    async def count(self) -> int:
        return await asyncio.to_thread(self._count)

    async def close(self) -> None:
        """Nothing to do: a question may still be reading; the engine lets go with the last one."""

    def _count(self) -> int:
        with _translated(StoreFailed, "The index did not answer."):
            return int(self._shard.count(edge.CountRequest(exact=True)))

    def _find_by_words(self, terms: list[int], limit: int, wanted: Any) -> list[Candidate]:
        if not terms:
            return []
        request = edge.QueryRequest(
            limit=limit,
            query=_by_words(terms),
            filter=wanted,
            with_payload=WEIGHED_BY,
            with_vector=["terms"],
        )
        with _translated(StoreFailed, "The index did not answer."):
            found = self._shard.query(request)
        return [to_candidate(point, 0.0, 0.0) for point in found]

    def _find(
        self, vector: list[float], terms: list[int], limit: int, wanted: Any
    ) -> list[Candidate]:
        by_passage = edge.Query.Nearest(vector, using="passage")
        by_unit = edge.Query.Nearest(vector, using="units")
        ways = [by_passage, by_unit]
        if terms:
            ways.append(_by_words(terms))
        with _translated(StoreFailed, "The index did not answer."):
            # What any of the ways finds is scored by its passage, then by its units.
            found = self._shard.query(
                edge.QueryRequest(
                    limit=limit * len(ways),
                    prefetches=[edge.Prefetch(limit, query=way, filter=wanted) for way in ways],
                    query=by_passage,
                    with_payload=WEIGHED_BY,
                    with_vector=["terms"],
                )
            )
            among = edge.Filter(must=[edge.HasIdCondition({point.id for point in found})])
            scored = self._shard.query(
                edge.QueryRequest(limit=max(1, len(found)), query=by_unit, filter=among)
            )
        unit_cosines = {point.id: float(point.score) for point in scored}
        return [to_candidate(point, float(point.score), unit_cosines[point.id]) for point in found]

    def _fetch(self, passage_ids: list[str]) -> list[Entry]:
        points = [point_id(passage_id) for passage_id in passage_ids]
        with _translated(StoreFailed, "The index did not answer."):
            records = self._shard.retrieve(points, with_payload=True, with_vector=True)
        entries = [to_entry(record.payload, record.vector) for record in records]
        return in_order(entries, passage_ids)


def _by_words(terms: list[int]) -> Any:
    # Without weights: the engine multiplies each passage's own by the term's IDF.
    return edge.Query.Nearest(edge.SparseVector(terms, [1.0] * len(terms)), using="terms")


def _config(dimension: int) -> Any:
    best_unit = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    cosine = edge.Distance.Cosine
    return edge.EdgeConfig(
        vectors={
            "passage": edge.EdgeVectorParams(size=dimension, distance=cosine),
            "units": edge.EdgeVectorParams(
                size=dimension, distance=cosine, multivector_config=best_unit
            ),
        },
        sparse_vectors={"terms": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        wal_enabled=False,
    )


@contextmanager
def _translated(kind: type[BookError], message: str) -> Iterator[None]:
    """The engine raises bare Exceptions, and Rust's panics, which are BaseExceptions."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise kind(message, cure="Run the ingest again.") from error


def _load(path: Path) -> Any:
    if not is_sealed(path):
        raise IndexDamaged(
            "The index is not what was written.", cure="Run the ingest again; it embeds nothing."
        )
    with _translated(IndexDamaged, "The index cannot be opened."):
        return edge.EdgeShard.load(str(path))


def _to_point(entry: Entry, dimension: int) -> Any:
    terms = edge.SparseVector(list(entry.terms), list(entry.terms.values()))
    vectors: dict[str, Any] = {**dense_vectors(entry, dimension), "terms": terms}
    # The engine's MatchValue turns a bool into a number, so it is kept as one.
    payload = {**to_payload(entry.passage), "hasCode": int(entry.passage.metadata.has_code)}
    return edge.Point(point_id(entry.passage.id), vectors, payload)


def _to_filter(filters: Filters) -> Any:
    if not filters:
        return None
    return edge.Filter(
        must=[
            edge.FieldCondition(key=name, match=edge.MatchValue(value))
            for name, value in filters.items()
        ]
    )


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    iterator = iter(entries)
    while batch := list(itertools.islice(iterator, _BATCH)):
        yield batch
