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
from typing import TYPE_CHECKING, Any, Literal

import qdrant_edge as edge

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.ports import Entry, Filters, Found
from bythebook.providers.points import (
    VECTOR_BY,
    dense_vectors,
    in_order,
    point_id,
    to_entry,
    to_payload,
)

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

    async def nearest(
        self, vector: Vectors, *, by: Literal["passage", "unit"], limit: int, filters: Filters
    ) -> list[Found]:
        query = edge.Query.Nearest(vector.tolist(), using=VECTOR_BY[by])
        return await asyncio.to_thread(self._query, query, limit, filters)

    async def matching(
        self, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Found]:
        if not terms:
            return []
        sparse = edge.SparseVector(list(terms), [1.0] * len(terms))
        query = edge.Query.Nearest(sparse, using="terms")
        return await asyncio.to_thread(self._query, query, limit, filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[Entry]:
        return await asyncio.to_thread(self._fetch, list(passage_ids))

    async def count(self) -> int:
        return await asyncio.to_thread(self._count)

    async def close(self) -> None:
        """Nothing to do: a question may still be reading; the engine lets go with the last one."""

    def _count(self) -> int:
        with _translated(StoreFailed, "The index did not answer."):
            return int(self._shard.count(edge.CountRequest(exact=True)))

    def _query(self, query: Any, limit: int, filters: Filters) -> list[Found]:
        request = edge.QueryRequest(
            limit=limit, query=query, filter=_to_filter(filters), with_payload=["id"]
        )
        with _translated(StoreFailed, "The index did not answer."):
            points = self._shard.query(request)
        return [Found(point.payload["id"], float(point.score)) for point in points]

    def _fetch(self, passage_ids: list[str]) -> list[Entry]:
        points = [point_id(passage_id) for passage_id in passage_ids]
        with _translated(StoreFailed, "The index did not answer."):
            records = self._shard.retrieve(points, with_payload=True, with_vector=True)
        entries = [to_entry(record.payload, record.vector) for record in records]
        return in_order(entries, passage_ids)


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
