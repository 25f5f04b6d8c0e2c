"""Entries in flat files are read back unchanged; truncation is detected."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.interfaces.store import Candidate, IndexedPassage
from bythebook.providers.qdrant.segment_files import EntryFiles, entry_writer
from tests.support.samples import passage

_DIMENSION = 3
_numbers = st.floats(-1, 1, width=32)
_vector = st.lists(_numbers, min_size=_DIMENSION, max_size=_DIMENSION)
_terms = st.dictionaries(st.integers(0, 2**32 - 1), st.floats(0, 2, width=32), max_size=5)


@st.composite
def _entries(draw: st.DrawFn) -> list[IndexedPassage]:
    texts = draw(st.lists(st.text(max_size=40), max_size=8, unique=True))
    return [
        IndexedPassage(
            passage(text, week=draw(st.none() | st.integers(1, 9))),
            np.array(draw(_vector), np.float32),
            np.array(draw(st.lists(_vector, max_size=3)), np.float32).reshape(-1, _DIMENSION),
            draw(_terms),
        )
        for text in texts
    ]


def _write(folder: Path, entries: list[IndexedPassage]) -> list[int]:
    with entry_writer(folder) as writer:
        return [writer.add(entry) for entry in entries]


@given(entries=_entries())
@settings(max_examples=50, deadline=None)
def test_entries_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, entries: list[IndexedPassage]
) -> None:
    folder = tmp_path_factory.mktemp("files") / "entries"
    rows = _write(folder, entries)
    files = EntryFiles(folder, dimension=_DIMENSION)
    assert len(files) == len(entries)
    assert [files.row_of(entry.passage.id) for entry in entries] == rows
    for row, before in zip(rows, entries, strict=True):
        after = files.entry(row)
        assert after.passage == before.passage
        assert np.array_equal(after.vector, before.vector)
        assert np.array_equal(after.unit_vectors, before.unit_vectors)
        assert after.terms == before.terms


@given(entries=_entries(), question=_vector)
@settings(max_examples=50, deadline=None)
def test_candidates_equal_their_entries(
    tmp_path_factory: pytest.TempPathFactory, entries: list[IndexedPassage], question: list[float]
) -> None:
    folder = tmp_path_factory.mktemp("files") / "entries"
    vector = np.array(question, np.float32)
    rows = _write(folder, entries)
    files = EntryFiles(folder, dimension=_DIMENSION)
    candidates = files.candidates(rows, files.cosines(rows, vector))
    for found, entry in zip(candidates, entries, strict=True):
        exact = Candidate.of(entry, vector)
        assert (found.passage_id, found.content_hash) == (exact.passage_id, exact.content_hash)
        assert found.terms == exact.terms
        assert found.cosine == pytest.approx(exact.cosine, abs=1e-5)
        assert found.unit_cosine == pytest.approx(exact.unit_cosine, abs=1e-5)


def test_ids_with_a_common_prefix_are_distinguished(tmp_path: Path) -> None:
    vector = np.ones(_DIMENSION, np.float32)
    entries = [
        IndexedPassage(passage(text), vector, vector[None], {}) for text in ("one", "two", "three")
    ]
    alike = [
        replace(entry, passage=replace(entry.passage, id="ab" * 8 + str(number) * 48))
        for number, entry in enumerate(entries)
    ]
    rows = _write(tmp_path / "entries", alike)
    files = EntryFiles(tmp_path / "entries", dimension=_DIMENSION)
    assert [files.row_of(entry.passage.id) for entry in alike] == rows
    for unknown in ("ab" * 8 + "9" * 48, "f" * 64, "0" * 64):
        assert files.row_of(unknown) is None


@pytest.mark.parametrize("name", ["rows", "order", "vectors", "terms", "records"])
def test_a_truncated_file_is_detected_when_read(tmp_path: Path, name: str) -> None:
    vector = np.ones(_DIMENSION, np.float32)
    _write(tmp_path / "entries", [IndexedPassage(passage("one"), vector, vector[None], {1: 1.0})])
    file = tmp_path / "entries" / name
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(ValueError, match=r"."):
        EntryFiles(tmp_path / "entries", dimension=_DIMENSION).entry(0)
