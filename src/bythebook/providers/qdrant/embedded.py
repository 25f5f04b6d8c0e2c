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
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import qdrant_edge as edge

from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.interfaces.store import Candidate, Filters, IndexedPassage
from bythebook.providers.qdrant.checksums import is_sealed, make_durable, seal
from bythebook.providers.qdrant.payload import check_vectors, to_filterable
from bythebook.providers.qdrant.segment_files import EntryFiles, EntryWriter

if TYPE_CHECKING:
    from bythebook.types import Passage, Vectors

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


class EdgeShelf:
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

    async def open(self, generation: str) -> EdgeStore:
        path = self._folder / generation
        if not path.is_dir():
            raise IndexDamaged(
                "The index that the catalog names is missing.", hint="Run the ingest again."
            )
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
        self._write(shard, draft / _ENTRIES, entries)
        shard.flush()
        count = int(shard.count(edge.CountRequest(exact=True)))
        shard.close()
        return count

    def _write(self, shard: Any, folder: Path, entries: Iterable[IndexedPassage]) -> None:
        with EntryWriter(folder) as writer:
            for segment in _batches(entries, self._segment):
                for batch in _batches(segment, _BATCH):
                    _check_room(folder)
                    points = [self._to_point(entry, writer) for entry in batch]
                    shard.update(edge.UpdateOperation.upsert_points(points))
                if writer.count > self._plain:
                    _pack(shard)

    def _to_point(self, entry: IndexedPassage, writer: EntryWriter) -> Any:
        check_vectors(entry, self._dimension)
        terms = edge.SparseVector(list(entry.terms), list(entry.terms.values()))
        vectors: dict[str, Any] = {"terms": terms}
        if entry.vector is not None:
            vectors["passage"] = entry.vector.tolist()
        return edge.Point(writer.add(entry), vectors, _to_payload(entry.passage))

    def _load(self, path: Path) -> EdgeStore:
        if not is_sealed(path):
            raise IndexDamaged("The index is not as it was written.", hint="Run the ingest again.")
        with _translated(IndexDamaged, "The index cannot be opened."):
            entries = EntryFiles(path / _ENTRIES, dimension=self._dimension)
            _read_ahead(path)
            shard = edge.EdgeShard.load(str(path))
            return EdgeStore(shard, entries, packed=len(entries) > self._plain)

    def _discard(self, keep: frozenset[str]) -> None:
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name not in keep:
                shutil.rmtree(path, ignore_errors=True)


class EdgeStore:
    """One generation, opened for reading."""

    def __init__(self, shard: Any, entries: EntryFiles, *, packed: bool) -> None:
        self._shard = shard
        self._entries = entries
        self._params = _PACKED if packed else edge.SearchParams(exact=True)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        wanted = _to_filter(filters)
        if vector is None:
            return await asyncio.to_thread(self._find_by_words, list(terms), limit, wanted)
        return await asyncio.to_thread(self._find, vector, list(terms), limit, wanted)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return await asyncio.to_thread(self._fetch, passage_ids)

    async def count(self) -> int:
        return await asyncio.to_thread(self._count)

    async def close(self) -> None:
        """Do nothing: a search may still be running; the engine is released with the last one."""

    def _count(self) -> int:
        with _translated(StoreFailed, "The index did not answer."):
            return int(self._shard.count(edge.CountRequest(exact=True)))

    def _find_by_words(self, terms: list[int], limit: int, wanted: Any) -> list[Candidate]:
        if not terms:
            return []
        with _translated(StoreFailed, "The index did not answer."):
            rows = [point.id for point in self._shard.query(_by_words(terms, limit, wanted))]
            nothing = np.zeros(len(rows), dtype=np.float32)
            return self._entries.candidates(rows, (nothing, nothing))

    def _find(self, vector: Vectors, terms: list[int], limit: int, wanted: Any) -> list[Candidate]:
        with _translated(StoreFailed, "The index did not answer."):
            near, worded = self._rows(vector, terms, limit, wanted)
            rows = sorted({*near, *worded})
            cosines = self._entries.cosines(rows, vector)
            by_passage, by_unit = (np.argsort(-way, kind="stable")[:limit] for way in cosines)
            by_word = np.searchsorted(rows, worded)
            chosen = np.unique(np.concatenate([by_passage, by_unit, by_word])).astype(int)
            return self._entries.candidates(
                [rows[place] for place in chosen.tolist()], (cosines[0][chosen], cosines[1][chosen])
            )

    def _rows(
        self, vector: Vectors, terms: list[int], limit: int, wanted: Any
    ) -> tuple[list[int], list[int]]:
        """Return rows found by vector (``_DEPTH`` times the limit) and rows found by keywords."""
        near = edge.QueryRequest(
            limit=limit * _DEPTH,
            query=edge.Query.Nearest(vector.tolist(), using="passage"),
            filter=wanted,
            params=self._params,
        )
        if not terms:
            return [point.id for point in self._shard.query(near)], []
        worded = _by_words(terms, limit, wanted)
        found = self._shard.query_batch(edge.QueryBatchRequest([near, worded]))
        return [point.id for point in found[0]], [point.id for point in found[1]]

    def _fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        with _translated(StoreFailed, "The index did not answer."):
            rows = self._entries.rows_of(passage_ids)
            return [self._entries.entry(row) for row in rows if row is not None]


def _by_words(terms: list[int], limit: int, wanted: Any) -> Any:
    # Query weights are all 1: the engine multiplies each passage's weight by the term's IDF.
    query = edge.Query.Nearest(edge.SparseVector(terms, [1.0] * len(terms)), using="terms")
    return edge.QueryRequest(limit=limit, query=query, filter=wanted)


# No rescoring in the engine: results are compared with the full vectors in the entry files.
_PACKED = edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=False))

# On disk: in memory these indexes would need as much as all the rest, and would take four fifths of
# the time to open a book.
_KEYWORD = edge.KeywordIndexParams(memory=edge.Memory.Cold, enable_hnsw=False)
_INTEGER = edge.IntegerIndexParams(
    lookup=True, range=False, memory=edge.Memory.Cold, enable_hnsw=False
)
_FILTERED: dict[str, Any] = {
    "module": _KEYWORD,
    "chapter": _KEYWORD,
    "section": _KEYWORD,
    "url": _KEYWORD,
    "language": _KEYWORD,
    "difficulty": _KEYWORD,
    "week": _INTEGER,
    "hasCode": _INTEGER,
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
        raise StoreFailed("The disk is full.", hint="Make room where the home folder is.")


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
    for name, kind in _FILTERED.items():
        shard.update(edge.UpdateOperation.create_field_index(name, kind))
    shard.optimize()
    shard.flush()  # until then the engine keeps the packed data in memory, unpacked


def _batches(entries: Iterable[IndexedPassage], size: int) -> Iterator[Iterable[IndexedPassage]]:
    iterator = iter(entries)
    for first in iterator:
        yield itertools.chain([first], itertools.islice(iterator, size - 1))
