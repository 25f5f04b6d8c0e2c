"""Index entries in flat files, read by row and field.

Vectors, terms and records are in separate files, because a search compares the vectors of a hundred
passages, the terms of half of them, and returns five. Reads use ``pread`` instead of a memory map:
the process's memory depends on its queries, not on the size of the book.
"""

from __future__ import annotations

import json
import os
import weakref
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from bythebook.interfaces.store import Candidate, IndexedPassage
from bythebook.text.passage_records import from_record, to_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bythebook.types import Vectors

_FLOAT, _TERM = np.dtype("<f4"), np.dtype("<u4")
_ROW = np.dtype(
    [
        ("id", "V32"),
        ("content_hash", "V32"),
        # Offset and length of the row's part of each file.
        ("vectors", "<u8"),  # the passage's vector, then those of its units; none while pending
        ("terms", "<u8"),  # term ids, then weights
        ("record", "<u8"),
        ("vectors_count", "<u4"),
        ("terms_count", "<u4"),
        ("record_size", "<u4"),
    ]
)
_FILES = ("rows", "vectors", "terms", "records")
_ORDER = np.dtype([("key", "<u8"), ("row", "<u4")])  # sorted by the first eight bytes of the id


class EntryWriter:
    def __init__(self, rows: BinaryIO, vectors: BinaryIO, terms: BinaryIO, records: BinaryIO):
        self._rows, self._vectors, self._terms, self._records = rows, vectors, terms, records
        self.count = 0

    def add(self, entry: IndexedPassage) -> int:
        """Append an entry and return its row number."""
        record = to_json(entry.passage).encode()
        row = (
            bytes.fromhex(entry.passage.id),
            bytes.fromhex(entry.passage.content_hash),
            *(file.tell() for file in (self._vectors, self._terms, self._records)),
            0 if entry.vector is None else 1 + len(entry.unit_vectors),
            len(entry.terms),
            len(record),
        )
        self._rows.write(np.array(row, _ROW).tobytes())
        if entry.vector is not None:
            for vectors in (entry.vector, entry.unit_vectors):
                self._vectors.write(vectors.astype(_FLOAT, copy=False).tobytes())
        self._terms.write(np.fromiter(entry.terms, _TERM, len(entry.terms)).tobytes())
        self._terms.write(np.fromiter(entry.terms.values(), _FLOAT, len(entry.terms)).tobytes())
        self._records.write(record)
        self.count += 1
        return self.count - 1


@contextmanager
def entry_writer(folder: Path) -> Iterator[EntryWriter]:
    """Create the folder and write entries to it; on a clean exit they are complete."""
    folder.mkdir()
    with ExitStack() as stack:
        files = [stack.enter_context((folder / name).open("wb")) for name in _FILES]
        yield EntryWriter(*files)
    _write_order(folder)


def _write_order(folder: Path) -> None:
    keys = _keys(_map(folder / "rows", _ROW)["id"])
    order = np.empty(len(keys), _ORDER)
    order["row"] = np.argsort(keys, kind="stable")
    order["key"] = keys[order["row"]]
    (folder / "order").write_bytes(order.tobytes())


class EntryFiles:
    """Entries of a finished folder, safe to read from several threads and processes."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        self._dimension = dimension
        self._rows = _map(folder / "rows", _ROW)
        self._order = _map(folder / "order", _ORDER)
        self._vectors, self._terms, self._records = (_Bytes(folder / name) for name in _FILES[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def row_of(self, passage_id: str) -> int | None:
        """Return the row number of a passage; None for an unknown id."""
        wanted = bytes.fromhex(passage_id)
        key = int.from_bytes(wanted[:8], "big")
        # Not np.searchsorted: it would copy all keys, which are not aligned.
        for entry in self._order[bisect_left(self._order["key"], key) :]:
            if entry["key"] != key:
                break
            if self._rows["id"][entry["row"]].tobytes() == wanted:
                return int(entry["row"])
        return None

    def cosines(self, rows: Sequence[int], question: Vectors) -> tuple[Vectors, Vectors]:
        """Return for each row the cosine with the passage and with its nearest unit.

        ``question`` may be a matrix with one question per row; each then gets a column of the
        results.
        """
        # No BLAS: for such a small product it would wake its threads, which costs more than it
        # saves on busy cores.
        cosines = np.einsum("vd,...d->v...", self.vectors(rows), question)
        if not len(rows):
            return cosines, cosines
        counts = self._rows["vectors_count"][rows].astype(np.int64)
        starts = np.cumsum(counts) - counts
        ranges = np.stack([starts, starts + 1], axis=1).ravel()
        # reduceat needs an end for the last range, also if a passage without units leaves it empty.
        ended = np.concatenate([cosines, np.full_like(cosines[:1], -np.inf)])
        best = np.maximum.reduceat(ended, ranges, axis=0)
        passages, units = best[0::2], best[1::2]
        units[counts == 1] = passages[counts == 1]
        return passages, units

    def vectors(self, rows: Sequence[int]) -> Vectors:
        """Return the vectors of these rows stacked: each passage's, then its units'."""
        lines = self._rows[rows]
        sizes = (lines["vectors_count"].astype(np.int64) * self._dimension * 4).tolist()
        read = self._vectors.read
        blocks = map(read, lines["vectors"].tolist(), sizes)
        return np.frombuffer(b"".join(blocks), _FLOAT).reshape(-1, self._dimension)

    def candidates(self, rows: Sequence[int], cosines: tuple[Vectors, Vectors]) -> list[Candidate]:
        """Return these rows as candidates, with their cosines from ``cosines()``."""
        lines = self._rows[rows]
        return [
            Candidate(id_.hex(), content.hex(), cosine, unit_cosine, self._weights(start, count))
            for id_, content, cosine, unit_cosine, start, count in zip(
                lines["id"].tolist(),
                lines["content_hash"].tolist(),
                *(kind.tolist() for kind in cosines),
                lines["terms"].tolist(),
                lines["terms_count"].tolist(),
                strict=True,
            )
        ]

    def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return [self.entry(row) for row in map(self.row_of, passage_ids) if row is not None]

    def entry(self, row: int) -> IndexedPassage:
        line = self._rows[row]
        record = self._records.read(int(line["record"]), int(line["record_size"]))
        vectors = self.vectors([row])
        terms = self._weights(int(line["terms"]), int(line["terms_count"]))
        vector = vectors[0] if len(vectors) else None
        return IndexedPassage(from_record(json.loads(record)), vector, vectors[1:], terms)

    def _weights(self, start: int, count: int) -> dict[int, float]:
        numbers = self._terms.read(start, 8 * count)
        terms = np.frombuffer(numbers, _TERM, count).tolist()
        weights = np.frombuffer(numbers, _FLOAT, count, 4 * count).tolist()
        return dict(zip(terms, weights, strict=True))


class _Bytes:
    """File for random reads from any thread; closed with its last user."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def read(self, start: int, size: int) -> bytes:
        content = os.pread(self._file, size, start)
        if len(content) != size:
            raise ValueError("an index file is shorter than it was")
        return content


def _map(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, mode="r"))


def _keys(ids: NDArray[np.void]) -> NDArray[np.uint64]:
    first = np.ascontiguousarray(ids).view(np.uint8).reshape(-1, 32)[:, :8]
    return np.ascontiguousarray(first).view(">u8").ravel().astype("<u8")
