"""Generations of a book in the embedded Qdrant engine, one folder each.

A generation is written once, without a write-ahead log, flushed, and read-only from then on.
Qdrant's lock protects only the log, so any number of processes can read the same generation: a
server, its workers and the command line.

The engine searches passages by vector and by keyword. The entries themselves are stored next to it
in flat files; a point's id is the entry's row number there.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import qdrant_edge as edge

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.interfaces.store import Candidate, Filters, IndexedPassage
from bythebook.providers.qdrant.checksums import is_sealed, make_durable, seal
from bythebook.providers.qdrant.payload import (
    KEYWORD_FIELDS,
    check_vectors,
    index_missing,
    to_filterable,
)
from bythebook.providers.qdrant.segment_files import EntryFiles, EntryWriter, entry_writer

if TYPE_CHECKING:
    from bythebook.types import Passage, Vectors

P = ParamSpec("P")
T = TypeVar("T")

_BATCH = 256
_READ = 1 << 20
_UNFINISHED = ".unfinished"
_ENTRIES = "entries"
_CHECK = "Check the space and rights of the home folder."
# More than a batch needs: the engine writes through memory maps, where a full disk is a crash.
_ROOM = 64 << 20

# Up to this many passages, comparing every full vector takes less than a millisecond.
_PLAIN = 4096
# Passages packed at a time, so that a larger book needs no more memory to publish.
_SEGMENT = 32768
# Beyond _PLAIN, a scan reads four bits per vector component. This many passages per requested one
# are then compared exactly, including their units: a passage with a near sentence is near itself,
# and scanning all units would cost five times as much as scanning the passages.
_DEPTH = 6

_MOST_SEGMENTS = 1000  # the engine would merge more than that


class EmbeddedGenerationStore:
    """Folder of generations: ``<folder>/<generation>/``.

    A book of more than ``plain`` passages is packed, ``segment`` passages at a time.
    """

    def __init__(
        self, folder: Path, *, dimension: int, plain: int = _PLAIN, segment: int = _SEGMENT
    ) -> None:
        self._folder = folder
        self._dimension = dimension
        self._plain = plain
        self._segment = segment

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        return await asyncio.to_thread(self._publish, generation, entries)

    async def open(self, generation: str) -> EmbeddedStore:
        path = self._folder / generation
        if not path.is_dir():
            raise index_missing()
        return await asyncio.to_thread(self._load, path)

    async def discard(self, *, keep: Sequence[str]) -> None:
        await asyncio.to_thread(self._discard, frozenset(keep))

    async def close(self) -> None:
        """Do nothing: each generation is released with its last reader."""

    def _publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        # Built under another name: a folder that has a generation's name is complete.
        draft = self._folder / (generation + _UNFINISHED)
        try:
            draft.mkdir(parents=True, exist_ok=False)
            with _translated(StoreFailed, "The index cannot be written.", hint=_CHECK):
                count = self._fill(draft, entries)
            seal(draft)
            draft.rename(self._folder / generation)
            # The directory entry must be durable too, before the catalog refers to it.
            make_durable(self._folder)
            make_durable(self._folder.parent)
        except OSError as error:
            raise StoreFailed(
                f"The index cannot be written: {error.strerror}.", hint=_CHECK
            ) from error
        return count

    def _fill(self, draft: Path, entries: Iterable[IndexedPassage]) -> int:
        shard = edge.EdgeShard.create(str(draft), _config(self._dimension, self._plain))
        with entry_writer(draft / _ENTRIES) as writer:
            for segment in _batches(entries, self._segment):
                for batch in _batches(segment, _BATCH):
                    _check_room(draft)
                    points = [self._to_point(entry, writer) for entry in batch]
                    shard.update(edge.UpdateOperation.upsert_points(points))
                if writer.count > self._plain:
                    _pack(shard)
        shard.flush()
        count = int(shard.count(edge.CountRequest(exact=True)))
        shard.close()
        return count

    def _to_point(self, entry: IndexedPassage, writer: EntryWriter) -> Any:
        check_vectors(entry, self._dimension)
        terms = edge.SparseVector(list(entry.terms), list(entry.terms.values()))
        vectors: dict[str, Any] = {"terms": terms}
        if entry.vector is not None:
            vectors["passage"] = entry.vector.tolist()
        return edge.Point(writer.add(entry), vectors, _to_payload(entry.passage))

    def _load(self, path: Path) -> EmbeddedStore:
        if not is_sealed(path):
            raise IndexDamaged("The index was changed or damaged.", hint="Run the ingest again.")
        _check_holes(path)
        with _translated(IndexDamaged, "The index cannot be opened."):
            entries = EntryFiles(path / _ENTRIES, dimension=self._dimension)
            _read_ahead(path)
            shard = edge.EdgeShard.load(str(path))
            return EmbeddedStore(shard, entries, packed=len(entries) > self._plain)

    def _discard(self, keep: frozenset[str]) -> None:
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name not in keep:
                shutil.rmtree(path, ignore_errors=True)


class EmbeddedStore:
    """One generation, opened for reading."""

    def __init__(self, shard: Any, entries: EntryFiles, *, packed: bool) -> None:
        self._shard = shard
        self._entries = entries
        self._params = _PACKED if packed else edge.SearchParams(exact=True)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        return await self._run(self._find, vector, list(terms), limit, filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return await self._run(self._entries.fetch, passage_ids)

    async def count(self) -> int:
        return int(await self._run(self._shard.count, edge.CountRequest(exact=True)))

    async def close(self) -> None:
        """Do nothing: a search may still be running; the engine is released with the last one."""

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def run() -> T:
            with _translated(StoreFailed, "The index did not answer."):
                return work(*args, **kwargs)

        return await asyncio.to_thread(run)

    def _find(
        self, vector: Vectors | None, terms: list[int], limit: int, filters: Filters
    ) -> list[Candidate]:
        nearest, matching = self._rows(vector, terms, limit, _to_filter(filters))
        if vector is None:
            zeros = np.zeros(len(matching), dtype=np.float32)
            return self._entries.candidates(matching, (zeros, zeros))
        rows = sorted({*nearest, *matching})
        cosines = self._entries.cosines(rows, vector)
        by_passage, by_unit = (np.argsort(-kind, kind="stable")[:limit] for kind in cosines)
        by_terms = np.searchsorted(rows, matching)
        chosen = np.unique(np.concatenate([by_passage, by_unit, by_terms])).astype(int)
        return self._entries.candidates(
            [rows[index] for index in chosen.tolist()], (cosines[0][chosen], cosines[1][chosen])
        )

    def _rows(
        self, vector: Vectors | None, terms: list[int], limit: int, condition: Any
    ) -> tuple[list[int], list[int]]:
        """Return rows found by vector (``_DEPTH`` times the limit) and rows found by keywords."""
        requests = []
        if vector is not None:
            nearest = edge.Query.Nearest(vector.tolist(), using="passage")
            requests.append(
                edge.QueryRequest(
                    limit=limit * _DEPTH, query=nearest, filter=condition, params=self._params
                )
            )
        if terms:
            # Query weights are all 1: the engine multiplies each passage's weight by the term's
            # IDF.
            sparse = edge.SparseVector(terms, [1.0] * len(terms))
            matching = edge.Query.Nearest(sparse, using="terms")
            requests.append(edge.QueryRequest(limit=limit, query=matching, filter=condition))
        results = self._shard.query_batch(edge.QueryBatchRequest(requests)) if requests else []
        rows = [[point.id for point in result] for result in results]
        by_vector = [] if vector is None else rows.pop(0)
        return by_vector, rows[0] if rows else []


# No rescoring in the engine: results are compared with the full vectors in the entry files.
_PACKED = edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=False))

# On disk: in memory these indexes would need as much as all the rest, and would take four fifths of
# the time to open a book.
_KEYWORD = edge.KeywordIndexParams(memory=edge.Memory.Cold, enable_hnsw=False)
_INTEGER = edge.IntegerIndexParams(
    lookup=True, range=False, memory=edge.Memory.Cold, enable_hnsw=False
)
_INDEXED: dict[str, Any] = {
    **dict.fromkeys(KEYWORD_FIELDS, _KEYWORD),
    **dict.fromkeys(("week", "hasCode"), _INTEGER),
}


def _config(dimension: int, plain: int) -> Any:
    bytes_of_vector = dimension * 4
    return edge.EdgeConfig(
        vectors={
            "passage": edge.EdgeVectorParams(
                size=dimension,
                distance=edge.Distance.Cosine,
                quantization_config=edge.TurboQuantQuantizationConfig(
                    bits=edge.TurboQuantBitSize.Bits4, memory=edge.Memory.Cached
                ),
                # No HNSW graph: a full scan is exact, also with a filter, and a generation is
                # published in minutes instead of hours.
                hnsw_config=edge.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10),
                memory=edge.Memory.Cold,
            )
        },
        sparse_vectors={
            "terms": edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf, memory=edge.Memory.Cold
            )
        },
        optimizers=edge.EdgeOptimizersConfig(
            indexing_threshold=max(1, plain * bytes_of_vector // 1024),  # in KB
            default_segment_number=_MOST_SEGMENTS,
        ),
        wal_enabled=False,
    )


@contextmanager
def _translated(
    kind: type[BookError], message: str, *, hint: str = "Run the ingest again."
) -> Iterator[None]:
    """Translate engine errors: bare Exceptions, and Rust panics, which are BaseExceptions."""
    try:
        yield
    except (BookError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise kind(message, hint=hint) from error


def _check_room(folder: Path) -> None:
    if shutil.disk_usage(folder).free < _ROOM:
        raise _full()


def _full() -> StoreFailed:
    return StoreFailed("The disk is full.", hint="Free space where the home folder is.")


def _check_holes(path: Path) -> None:
    """Raise unless there is room for what the engine's sparse files lack.

    It maps them (``quantized_data/chunk_0.mmap`` as a whole), and where a file system fills a hole
    that is only read, as tmpfs does, a full disk kills the process (SIGBUS).
    """
    system = os.statvfs(path)
    files = (file.stat() for file in path.rglob("*") if file.is_file())
    holes = sum(max(0, file.st_size - file.st_blocks * 512) for file in files)
    is_writable = not system.f_flag & os.ST_RDONLY
    if is_writable and system.f_bavail * system.f_frsize < min(holes, _ROOM):
        raise _full()


def _read_ahead(path: Path) -> None:
    """Load the packed vectors into the page cache before the engine reads them.

    The engine reads single pages in random order and waits for each: half a minute for a million
    passages on a disk that reads them sequentially in a fifth of a second.
    """
    for packed in path.glob("segments/*/*/quantized.data"):
        with packed.open("rb", buffering=0) as file:
            while file.read(_READ):
                pass


def _to_payload(passage: Passage) -> dict[str, Any]:
    # The engine's MatchValue converts a bool to a number, so it is stored as one.
    filterable = {**to_filterable(passage), "hasCode": int(passage.metadata.has_code)}
    return {name: value for name, value in filterable.items() if value is not None}


def _to_filter(filters: Filters) -> Any:
    if not filters:
        return None
    return edge.Filter(
        must=[
            edge.FieldCondition(key=name, match=edge.MatchValue(value))
            for name, value in filters.items()
        ]
    )


def _pack(shard: Any) -> None:
    """Build the payload indexes, the quantised vectors and the memory-mapped inverted index."""
    for name, kind in _INDEXED.items():
        shard.update(edge.UpdateOperation.create_field_index(name, kind))
    shard.optimize()
    shard.flush()  # until then the engine keeps the packed data in memory, unpacked


def _batches(entries: Iterable[IndexedPassage], size: int) -> Iterator[Iterable[IndexedPassage]]:
    iterator = iter(entries)
    for first in iterator:
        yield itertools.chain([first], itertools.islice(iterator, size - 1))
