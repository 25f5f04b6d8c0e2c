"""Index entries in flat files, read by row and field.

Vectors, terms and records are in separate files, because a search compares the vectors of a hundred
passages, the terms of half of them, and returns five. Reads use ``pread`` instead of a memory map:
the process's memory depends on its queries, not on the size of the book.
"""

from __future__ import annotations

import json
import os
import struct
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from bythebook.indexing.passage_records import from_record, to_json
from bythebook.interfaces.store import Candidate, IndexedPassage

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
_packed_row = struct.Struct("<32s32sQQQIII")  # _ROW, for one row at a time
_ORDER = np.dtype([("key", "<u8"), ("row", "<u4")])  # sorted by the first eight bytes of the id


class EntryWriter:
    """Context manager that appends entries; they are complete and durable on a clean exit."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._open = ExitStack()
        self._rows, self._vectors, self._terms, self._records = self._files = [
            self._open.enter_context((folder / name).open("wb"))
            for name in ("rows", "vectors", "terms", "records")
        ]
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._open:
            if kind is None:
                for file in self._files:
                    _make_durable(file)
                self._write_order()

    def add(self, entry: IndexedPassage) -> int:
        """Append an entry and return its row number."""
        record = to_json(entry.passage).encode()
        row = _packed_row.pack(
            bytes.fromhex(entry.passage.id),
            bytes.fromhex(entry.passage.content_hash),
            self._vectors.tell(),
            self._terms.tell(),
            self._records.tell(),
            0 if entry.vector is None else 1 + len(entry.unit_vectors),
            len(entry.terms),
            len(record),
        )
        self._rows.write(row)
        if entry.vector is not None:
            for vectors in (entry.vector, entry.unit_vectors):
                self._vectors.write(vectors.astype(_FLOAT, copy=False).tobytes())
        self._terms.write(np.fromiter(entry.terms, _TERM, len(entry.terms)).tobytes())
        self._terms.write(np.fromiter(entry.terms.values(), _FLOAT, len(entry.terms)).tobytes())
        self._records.write(record)
        self.count += 1
        return self.count - 1

    def _write_order(self) -> None:
        keys = _keys(_map(self._folder / "rows", _ROW)["id"])
        order = np.empty(len(keys), _ORDER)
        order["row"] = np.argsort(keys, kind="stable")
        order["key"] = keys[order["row"]]
        with (self._folder / "order").open("wb") as file:
            file.write(order.tobytes())
            _make_durable(file)


class EntryFiles:
    """Entries of a finished folder, safe to read from several threads and processes."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        self._dimension = dimension
        self._rows = _map(folder / "rows", _ROW)
        self._order = _map(folder / "order", _ORDER)
        self._vectors, self._terms, self._records = (
            _Bytes(folder / name) for name in ("vectors", "terms", "records")
        )
        self._check_sizes()

    def __len__(self) -> int:
        return len(self._rows)

    def rows_of(self, passage_ids: Sequence[str]) -> list[int | None]:
        """Return the row number of each passage; None for unknown ids."""
        wanted = [bytes.fromhex(passage_id) for passage_id in passage_ids]
        keys = np.array([int.from_bytes(one[:8], "big") for one in wanted], dtype="<u8")
        starts = np.searchsorted(self._order["key"], keys)
        return [self._find(one, int(start)) for one, start in zip(wanted, starts, strict=True)]

    def cosines(self, rows: Sequence[int], question: Vectors) -> tuple[Vectors, Vectors]:
        """Return for each row the cosine with the passage and with its nearest unit.

        ``question`` may be a matrix with one question per row; each then gets a column of the
        results.
        """
        cosines = _dot(self.vectors(rows), question)
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
            Candidate(name.hex(), content.hex(), cosine, unit_cosine, self._weights(start, count))
            for name, content, cosine, unit_cosine, start, count in zip(
                lines["id"].tolist(),
                lines["content_hash"].tolist(),
                *(each.tolist() for each in cosines),
                lines["terms"].tolist(),
                lines["terms_count"].tolist(),
                strict=True,
            )
        ]

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

    def _find(self, passage_id: bytes, start: int) -> int | None:
        key = int.from_bytes(passage_id[:8], "big")
        for place in range(start, len(self._order)):
            if self._order["key"][place] != key:
                break
            row = int(self._order["row"][place])
            if self._rows["id"][row].tobytes() == passage_id:
                return row
        return None

    def _check_sizes(self) -> None:
        if len(self._order) != len(self._rows):
            raise ValueError("rows and order do not belong together")
        if not len(self._rows):
            return
        last = self._rows[-1]
        vectors_size = int(last["vectors_count"]) * self._dimension * 4
        self._vectors.check_size(int(last["vectors"]) + vectors_size)
        self._terms.check_size(int(last["terms"]) + int(last["terms_count"]) * 8)
        self._records.check_size(int(last["record"]) + int(last["record_size"]))


class _Bytes:
    """File for random reads from any thread; closed with its last user."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def read(self, start: int, size: int) -> bytes:
        found = os.pread(self._file, size, start)
        if len(found) != size:
            raise ValueError(f"{self._name} is shorter than it was")
        return found

    def check_size(self, size: int) -> None:
        if os.fstat(self._file).st_size != size:
            raise ValueError(f"{self._name} is not as long as it was written")


def _map(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.empty(0, kind)
    return np.asarray(np.memmap(path, kind, mode="r"))


def _dot(vectors: Vectors, question: Vectors) -> Vectors:
    if question.ndim > 1:
        return vectors @ question.T
    # For such a small product BLAS would wake its threads, which costs more than it saves on busy
    # cores.
    product: Vectors = np.einsum("vd,d->v", vectors, question)
    return product


def _keys(ids: NDArray[np.void]) -> NDArray[np.uint64]:
    first = np.ascontiguousarray(ids).view(np.uint8).reshape(-1, 32)[:, :8]
    return np.ascontiguousarray(first).view(">u8").ravel().astype("<u8")


def _make_durable(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
