"""Quantised generations of large books find what plain ones find."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bythebook.errors import IndexDamaged
from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.qdrant.embedded import EmbeddedGenerationStore, EmbeddedStore
from tests.support.samples import passage

_DIMENSION = 64
_PASSAGES = 900
_LIMIT = 24
_PACKED = {"plain": 16, "segment": 256}  # several segments, packed one after the other
_RECALL = 0.99  # of the nearest passages; the rest are ties in all but the fourth decimal


def _unit_length(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit.astype(np.float32)


def _entries() -> list[IndexedPassage]:
    """Passages about thirty topics; a topic is a direction and a handful of words."""
    rng = np.random.default_rng(7)
    topics = _unit_length(rng.standard_normal((30, _DIMENSION)))
    entries = []
    for number in range(_PASSAGES):
        topic = number % len(topics)
        vectors = _unit_length(topics[topic] + rng.normal(0, 0.1, (4, _DIMENSION)))
        words = {topic: 1 + number / 2000, 100 + number % 7: 0.5, 1000 + number: 1.5}
        one = passage(f"Passage {number}.", week=number % 10, has_code=number % 2 == 0)
        entries.append(IndexedPassage(one, vectors[0], vectors[1:], words))
    return entries


_ENTRIES = _entries()
_QUESTIONS = _unit_length(
    np.stack([entry.vector for entry in _ENTRIES[::30]])
    + np.random.default_rng(8).normal(0, 0.1, (30, _DIMENSION))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelves")


@pytest.fixture(scope="module")
def plain(folder: Path) -> EmbeddedStore:
    return asyncio.run(_published(EmbeddedGenerationStore(folder / "plain", dimension=_DIMENSION)))


@pytest.fixture(scope="module")
def packed(folder: Path) -> EmbeddedStore:
    return asyncio.run(
        _published(EmbeddedGenerationStore(folder / "packed", dimension=_DIMENSION, **_PACKED))
    )


async def _published(generations: EmbeddedGenerationStore) -> EmbeddedStore:
    assert await generations.publish("one", iter(_ENTRIES)) == _PASSAGES
    return await generations.open("one")


async def _find(
    store: EmbeddedStore, vector: np.ndarray, words: Sequence[int] = (), **filters: int | bool
) -> set[str]:
    asked = dict.fromkeys(words, 1.0)
    found = await store.find(vector, asked, limit=_LIMIT, filters=filters)
    return {one.passage_id for one in found}


def _nearest(vector: np.ndarray) -> set[str]:
    order = np.argsort(-np.stack([entry.vector for entry in _ENTRIES]) @ vector)[:_LIMIT]
    return {_ENTRIES[row].passage.id for row in order}


def test_only_large_books_are_packed(
    plain: EmbeddedStore, packed: EmbeddedStore, folder: Path
) -> None:
    assert len(list((folder / "plain" / "one" / "segments").iterdir())) == 1
    assert len(list((folder / "packed" / "one" / "segments").iterdir())) >= _PASSAGES // 256


async def test_the_nearest_passages_are_found(plain: EmbeddedStore, packed: EmbeddedStore) -> None:
    for store, least in ((plain, 1.0), (packed, _RECALL)):
        shares = []
        for vector in _QUESTIONS:
            nearest = _nearest(vector)
            shares.append(len(nearest & await _find(store, vector)) / len(nearest))
        assert np.mean(shares) >= least


async def test_keyword_search_finds_the_same_in_both(
    plain: EmbeddedStore, packed: EmbeddedStore
) -> None:
    nowhere = _unit_length(np.ones(_DIMENSION))
    for words in ([3], [3, 102], [1000 + 450], [3, 101, 1000 + 450]):
        alone = await _find(plain, nowhere), await _find(packed, nowhere)
        both = await _find(plain, nowhere, words), await _find(packed, nowhere, words)
        assert both[0] - alone[0] == both[1] - alone[1]
    assert _ENTRIES[450].passage.id in await _find(packed, nowhere, [1000 + 450])


async def test_a_passage_is_found_by_its_nearest_unit(tmp_path: Path) -> None:
    """Of the passages that are near at all, the one with the nearest sentence is found."""
    question = _QUESTIONS[0]
    order = np.argsort(-np.stack([entry.vector for entry in _ENTRIES]) @ question)
    chosen = _ENTRIES[order[_LIMIT + 6]]
    units = np.stack([question, *chosen.unit_vectors])
    changed = IndexedPassage(chosen.passage, chosen.vector, units, chosen.terms)
    others = [entry for entry in _ENTRIES if entry is not chosen]
    generations = EmbeddedGenerationStore(tmp_path, dimension=_DIMENSION, **_PACKED)
    await generations.publish("one", [changed, *others])
    found = await (await generations.open("one")).find(question, {}, limit=_LIMIT, filters={})
    cosines = {one.passage_id: one.unit_cosine for one in found}
    assert cosines[chosen.passage.id] == pytest.approx(1.0, abs=1e-5)


async def test_filters_apply_in_a_packed_generation(packed: EmbeddedStore) -> None:
    weeks = {entry.passage.id: entry.passage.metadata for entry in _ENTRIES}
    for vector in _QUESTIONS[:5]:
        found = await _find(packed, vector, [3, 102], week=4, hasCode=True)
        assert len(found) >= _LIMIT, "a filter narrows the search, not what it found"
        assert {(weeks[one].week, weeks[one].has_code) for one in found} == {(4, True)}
        assert not await _find(packed, vector, [3, 102], week=4, hasCode=False)


async def test_entries_are_fetched_from_a_packed_generation(packed: EmbeddedStore) -> None:
    wanted = _ENTRIES[::100]
    fetched = await packed.fetch([entry.passage.id for entry in wanted])
    assert [entry.passage for entry in fetched] == [entry.passage for entry in wanted]
    for before, after in zip(wanted, fetched, strict=True):
        assert np.array_equal(before.unit_vectors, after.unit_vectors)


def test_another_process_reads_a_packed_generation(packed: EmbeddedStore, folder: Path) -> None:
    assert asyncio.run(packed.count()) == _PASSAGES
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from bythebook.providers.qdrant.embedded import EmbeddedGenerationStore\n"
        f"generations = EmbeddedGenerationStore(Path(sys.argv[1]), dimension={_DIMENSION})\n"
        "async def count(): return await (await generations.open('one')).count()\n"
        "print(asyncio.run(count()))"
    )
    command = [sys.executable, "-c", code, str(folder / "packed")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(_PASSAGES)


async def test_a_generation_without_its_entries_is_damaged(tmp_path: Path) -> None:
    generations = EmbeddedGenerationStore(tmp_path, dimension=_DIMENSION)
    await generations.publish("one", _ENTRIES[:3])
    (tmp_path / "one" / "entries" / "records").unlink()
    with pytest.raises(IndexDamaged):
        await generations.open("one")
