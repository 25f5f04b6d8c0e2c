"""Generations of a book in flat files, searched by comparing every passage.

A generation is a folder that is written once, flushed to disk and read-only from then on, so any
number of processes can read it: a server, its workers and the command line. They map its files, so
they share the memory. ``seal.json`` holds the checksums, by which later damage is noticed.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.interfaces.store import (
    Candidate,
    Filters,
    IndexedPassage,
    check_vectors,
    index_missing,
    to_filterable,
)
from bythebook.text.passage_records import from_record, to_json

if TYPE_CHECKING:
    from bythebook.language.terms import Vocabulary
    from bythebook.types import Passage, Vectors

_SEAL = "seal.json"
_UNFINISHED = ".unfinished"
_BLOCK = 1 << 20
_CHECKED_AT_MOST = 256 << 20  # bytes; of a larger index, only the sizes are checked when it opens
# This many passages per requested one are also compared by their units: a passage with a near
# sentence is near itself, and comparing all units would cost several times as much.
_DEPTH = 6

_FLOAT = np.dtype("<f4")
_TERM = np.dtype([("term", "<u4"), ("weight", "<f4")])
_ROW = np.dtype(
    [
        ("id", "V32"),
        ("content_hash", "V32"),
        # Where the row's part of each file ends; it begins where the previous row's ends.
        ("units", "<u8"),
        ("terms", "<u8"),
        ("records", "<u8"),
    ]
)
_FILES = ("rows", "passages", "units", "terms", "filters", "records")

P = ParamSpec("P")
T = TypeVar("T")
Write = Callable[[str, bytes], object]
File = NDArray[np.uint8]


class FlatGenerationStore:
    """Folder of generations: ``<folder>/<generation>/``."""

    def __init__(self, folder: Path, *, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        return await asyncio.to_thread(self._publish, generation, entries)

    async def open(self, generation: str) -> FlatStore:
        return await asyncio.to_thread(self._open, self._folder / generation)

    async def discard(self, *, keep: Sequence[str]) -> None:
        await asyncio.to_thread(self._discard, frozenset(keep))

    async def close(self) -> None:
        """Do nothing: the files of a generation are released with its last reader."""

    def _publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        # Built under another name: a folder that has a generation's name is complete.
        draft = self._folder / (generation + _UNFINISHED)
        try:
            draft.mkdir(parents=True, exist_ok=False)
            count = self._fill(draft, entries)
            draft.rename(self._folder / generation)
            # The directory entry must be durable too, before the catalog refers to it.
            for folder in (self._folder, self._folder.parent):
                _make_durable(folder)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                message, hint = "The disk is full.", "Free space where the home folder is."
            else:
                message = f"The index cannot be written: {error.strerror}."
                hint = "Check the space and rights of the home folder."
            raise StoreFailed(message, hint=hint) from error
        return count

    def _fill(self, draft: Path, entries: Iterable[IndexedPassage]) -> int:
        sums = dict.fromkeys(_FILES, 0)
        with ExitStack() as stack:
            files = {name: stack.enter_context((draft / name).open("wb")) for name in _FILES}

            def write(name: str, content: bytes) -> None:
                files[name].write(content)
                sums[name] = zlib.crc32(content, sums[name])

            count = _write(entries, write, dimension=self._dimension)
            seal = {name: [file.tell(), sums[name]] for name, file in files.items()}
        (draft / _SEAL).write_text(json.dumps(seal))
        for path in (*draft.iterdir(), draft):
            _make_durable(path)
        return count

    def _open(self, path: Path) -> FlatStore:
        if not path.is_dir():
            raise index_missing()
        if not _is_sealed(path):
            raise _damaged()
        try:
            return FlatStore({name: _map(path / name) for name in _FILES}, self._dimension)
        except (OSError, ValueError) as error:
            raise _damaged() from error

    def _discard(self, keep: frozenset[str]) -> None:
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name not in keep:
                    shutil.rmtree(path, ignore_errors=True)


class FlatStore:
    """One generation, opened for reading: its files, mapped or in memory."""

    def __init__(self, files: Mapping[str, File], dimension: int) -> None:
        self._rows = files["rows"].view(_ROW)
        # No vectors while they are pending.
        self._passages = files["passages"].view(_FLOAT).reshape(-1, dimension or 1)
        self._units = files["units"].view(_FLOAT).reshape(-1, dimension or 1)
        self._terms = files["terms"].view(_TERM)
        self._filters, self._records = files["filters"], files["records"]
        if len(self._passages) not in (0, len(self._rows)):
            raise ValueError("the vectors have another dimension")

    @classmethod
    def of(cls, entries: Iterable[IndexedPassage], *, dimension: int) -> Self:
        """Build a generation in memory."""
        files = {name: bytearray() for name in _FILES}
        _write(entries, lambda name, content: files[name].extend(content), dimension=dimension)
        return cls({name: np.frombuffer(file, np.uint8) for name, file in files.items()}, dimension)

    async def find(
        self, vector: Vectors | None, terms: Mapping[int, float], *, limit: int, filters: Filters
    ) -> list[Candidate]:
        return await _on_a_thread(self._find, vector, terms, limit, filters)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        return await _on_a_thread(self._fetch, passage_ids)

    async def count(self) -> int:
        return len(self._rows)

    async def close(self) -> None:
        """Do nothing: a search may still be running; the files are released with the last one."""

    def _find(
        self, vector: Vectors | None, terms: Mapping[int, float], limit: int, filters: Filters
    ) -> list[Candidate]:
        is_left_out = self._left_out(filters)
        matching = self._keyword_scores(terms)
        matching[is_left_out] = 0
        rows = _best(matching, limit)
        rows = rows[matching[rows] > 0]
        if vector is None or not len(self._passages):
            nothing = np.zeros(len(rows), _FLOAT)
            return self._candidates(rows, nothing, nothing)
        # No BLAS: it would wake its threads, which costs more than it saves on busy cores.
        cosines = np.einsum("pd,d->p", self._passages, vector)
        cosines[is_left_out] = -np.inf
        near = _best(cosines, limit * _DEPTH)
        by_unit = np.unique(np.concatenate([near[cosines[near] > -np.inf], rows]))
        unit_cosines = np.full(len(cosines), -np.inf, _FLOAT)
        unit_cosines[by_unit] = self._unit_cosines(by_unit, vector, cosines)
        ways = (by_unit[_best(kind[by_unit], limit)] for kind in (cosines, unit_cosines))
        chosen = np.unique(np.concatenate([rows, *ways]))
        return self._candidates(chosen, cosines[chosen], unit_cosines[chosen])

    def _left_out(self, filters: Filters) -> NDArray[np.bool_]:
        """Return which rows do not fit all the filters."""
        left_out = np.zeros(len(self._rows), np.bool_)
        for name, value in filters.items():
            lacking = np.ones(len(self._rows), np.bool_)
            lacking[self._rows_by_value.get(f"{name}={json.dumps(value)}", [])] = False
            left_out |= lacking
        return left_out

    def _keyword_scores(self, terms: Mapping[int, float]) -> NDArray[np.float64]:
        """Return each row's sum of its terms' weights times their IDF."""
        scores = np.zeros(len(self._rows))
        by_term, weights, rows = self._postings
        for term, idf in terms.items():
            first = np.searchsorted(by_term, np.uint32(term))
            last = np.searchsorted(by_term, np.uint32(term), "right")
            scores[rows[first:last]] += weights[first:last] * np.float64(idf)
        return scores

    def _unit_cosines(self, rows: NDArray[np.intp], vector: Vectors, cosines: Vectors) -> Vectors:
        """Return the cosine with each row's nearest unit; without units, with the passage."""
        parts = [_part(self._rows["units"], row) for row in rows.tolist()]
        near = [self._units[part] @ vector for part in parts]
        best = [
            float(units.max()) if len(units) else float(cosines[row])
            for row, units in zip(rows.tolist(), near, strict=True)
        ]
        return np.array(best, _FLOAT)

    def _candidates(
        self, rows: NDArray[np.intp], cosines: Vectors, unit_cosines: Vectors
    ) -> list[Candidate]:
        lines = self._rows[rows]
        return [
            Candidate(id_.hex(), content.hex(), cosine, unit_cosine, self._weights(row))
            for row, id_, content, cosine, unit_cosine in zip(
                rows.tolist(),
                lines["id"].tolist(),
                lines["content_hash"].tolist(),
                cosines.tolist(),
                unit_cosines.tolist(),
                strict=True,
            )
        ]

    def _fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        rows = (self._row_of.get(one) for one in passage_ids)
        return [self._entry(row) for row in rows if row is not None]

    def _entry(self, row: int) -> IndexedPassage:
        record = self._records[_part(self._rows["records"], row)].tobytes()
        vector = self._passages[row] if len(self._passages) else None
        units = self._units[_part(self._rows["units"], row)]
        return IndexedPassage(from_record(json.loads(record)), vector, units, self._weights(row))

    def _weights(self, row: int) -> dict[int, float]:
        terms = self._terms[_part(self._rows["terms"], row)]
        return dict(zip(terms["term"].tolist(), terms["weight"].tolist(), strict=True))

    @cached_property
    def _postings(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
        """Return the terms of all rows, sorted, with the weight and the row of each."""
        order = np.argsort(self._terms["term"], kind="stable")
        rows = np.searchsorted(self._rows["terms"], order, "right")
        return self._terms["term"][order], self._terms["weight"][order], rows

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {id_.hex(): row for row, id_ in enumerate(self._rows["id"].tolist())}

    @cached_property
    def _rows_by_value(self) -> dict[str, NDArray[np.intp]]:
        by_value = json.loads(self._filters.tobytes())
        return {value: np.array(rows, np.intp) for value, rows in by_value.items()}


def keyword_store(passages: Iterable[Passage], vocabulary: Vocabulary) -> FlatStore:
    """Build a store in memory that finds by keywords, for when the index does not answer.

    The catalog contains all that it needs. It takes a second for two thousand passages.
    """
    nothing = np.zeros((0, 0), _FLOAT)
    entries = (IndexedPassage(one, None, nothing, vocabulary.weigh(one)) for one in passages)
    return FlatStore.of(entries, dimension=0)


async def _on_a_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except (ValueError, LookupError, TypeError) as error:  # damage to files that are not checked
        raise _damaged() from error


def _damaged() -> IndexDamaged:
    return IndexDamaged("The index was changed or damaged.", hint="Run the ingest again.")


def _write(entries: Iterable[IndexedPassage], write: Write, *, dimension: int) -> int:
    """Write the files of a generation piece by piece; return the number of entries."""
    ends = dict.fromkeys(("units", "terms", "records"), 0)
    by_value: dict[str, list[int]] = defaultdict(list)
    count = 0
    for row, entry in enumerate(entries):
        check_vectors(entry, dimension)
        record = to_json(entry.passage).encode()
        terms = np.array(list(entry.terms.items()), _TERM)
        count += 1
        ends["units"] += 0 if entry.vector is None else len(entry.unit_vectors)
        ends["terms"] += len(terms)
        ends["records"] += len(record)
        hashes = bytes.fromhex(entry.passage.id), bytes.fromhex(entry.passage.content_hash)
        write("rows", np.array((*hashes, *ends.values()), _ROW).tobytes())
        if entry.vector is not None:
            write("passages", entry.vector.astype(_FLOAT, copy=False).tobytes())
            write("units", entry.unit_vectors.astype(_FLOAT, copy=False).tobytes())
        write("terms", terms.tobytes())
        write("records", record)
        for name, value in to_filterable(entry.passage).items():
            for one in value if isinstance(value, list) else [value]:
                by_value[f"{name}={json.dumps(one)}"].append(row)
    write("filters", json.dumps(by_value).encode())
    return count


def _part(ends: NDArray[Any], row: int) -> slice:
    return slice(int(ends[row - 1]) if row else 0, int(ends[row]))


def _best(scores: NDArray[Any], limit: int) -> NDArray[np.intp]:
    """Return the places of the highest scores, in no order."""
    if limit >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(-scores, limit)[:limit]


def _is_sealed(folder: Path) -> bool:
    """Return whether all files have the size and, if they are not too large, the checksum."""
    try:
        seal = json.loads((folder / _SEAL).read_bytes())
        sizes = {name: (folder / name).stat().st_size for name in _FILES}
        if any(sizes[name] != seal[name][0] for name in _FILES):
            return False
        is_large = sum(sizes.values()) > _CHECKED_AT_MOST
        return is_large or all(_checksum(folder / name) == seal[name][1] for name in _FILES)
    except (OSError, ValueError, TypeError, LookupError):
        return False


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _make_durable(path: Path) -> None:
    """Flush a file or a directory entry to disk, so that it survives a power cut."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _map(path: Path) -> File:
    if not path.stat().st_size:  # an empty file cannot be mapped
        return np.empty(0, np.uint8)
    return np.asarray(np.memmap(path, np.uint8, mode="r"))
