"""Generations in flat files: exact search, filters, several readers, damage and full disks."""

import asyncio
import errno
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.interfaces.store import IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.providers.flat_index import FlatGenerationStore, FlatStore, keyword_store
from bythebook.types import Passage
from tests.support.samples import passage

_DIMENSION = 64
_PASSAGES = 900
_LIMIT = 24


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
    return tmp_path_factory.mktemp("generations")


@pytest.fixture(scope="module")
def store(folder: Path) -> FlatStore:
    return asyncio.run(_published(FlatGenerationStore(folder, dimension=_DIMENSION)))


async def _published(generations: FlatGenerationStore) -> FlatStore:
    assert await generations.publish("one", iter(_ENTRIES)) == _PASSAGES
    return await generations.open("one")


async def _find(
    store: FlatStore, vector: np.ndarray, words: Sequence[int] = (), **filters: int | bool
) -> set[str]:
    asked = dict.fromkeys(words, 1.0)
    found = await store.find(vector, asked, limit=_LIMIT, filters=filters)
    return {one.passage_id for one in found}


def _nearest(vector: np.ndarray) -> set[str]:
    order = np.argsort(-np.stack([entry.vector for entry in _ENTRIES]) @ vector)[:_LIMIT]
    return {_ENTRIES[row].passage.id for row in order}


async def test_the_nearest_passages_are_found(store: FlatStore) -> None:
    for vector in _QUESTIONS:
        assert _nearest(vector) <= await _find(store, vector)


async def test_a_passage_is_found_by_its_nearest_unit(tmp_path: Path) -> None:
    """Of the passages that are near at all, the one with the nearest sentence is found."""
    question = _QUESTIONS[0]
    order = np.argsort(-np.stack([entry.vector for entry in _ENTRIES]) @ question)
    chosen = _ENTRIES[order[_LIMIT + 6]]
    units = np.stack([question, *chosen.unit_vectors])
    changed = IndexedPassage(chosen.passage, chosen.vector, units, chosen.terms)
    others = [entry for entry in _ENTRIES if entry is not chosen]
    generations = FlatGenerationStore(tmp_path, dimension=_DIMENSION)
    await generations.publish("one", [changed, *others])
    found = await (await generations.open("one")).find(question, {}, limit=_LIMIT, filters={})
    cosines = {one.passage_id: one.unit_cosine for one in found}
    assert cosines[chosen.passage.id] == pytest.approx(1.0, abs=1e-5)


async def test_filters_narrow_the_search(store: FlatStore) -> None:
    weeks = {entry.passage.id: entry.passage.metadata for entry in _ENTRIES}
    for vector in _QUESTIONS[:5]:
        found = await _find(store, vector, [3, 102], week=4, hasCode=True)
        assert len(found) >= _LIMIT, "a filter narrows the search, not what it found"
        assert {(weeks[one].week, weeks[one].has_code) for one in found} == {(4, True)}
        assert not await _find(store, vector, [3, 102], week=4, hasCode=False)


def test_another_process_reads_a_generation(store: FlatStore, folder: Path) -> None:
    assert asyncio.run(store.count()) == _PASSAGES
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from bythebook.providers.flat_index import FlatGenerationStore\n"
        f"generations = FlatGenerationStore(Path(sys.argv[1]), dimension={_DIMENSION})\n"
        "async def count(): return await (await generations.open('one')).count()\n"
        "print(asyncio.run(count()))"
    )
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(_PASSAGES)


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    file.write_bytes(content)


_FILES = ["filters", "passages", "records", "rows", "seal.json", "terms", "units"]


@pytest.mark.parametrize(
    "damage",
    [_flip, Path.unlink, lambda file: file.write_bytes(b""), lambda file: file.write_bytes(b"x")],
    ids=["flipped", "gone", "empty", "short"],
)
@pytest.mark.parametrize("name", _FILES)
async def test_damage_to_any_file_is_noticed(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    generations = FlatGenerationStore(tmp_path, dimension=_DIMENSION)
    await generations.publish("one", _ENTRIES[:3])
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == _FILES
    damage(tmp_path / "one" / name)
    with pytest.raises(IndexDamaged):
        await generations.open("one")


@pytest.mark.parametrize(
    ("code", "said"), [(errno.ENOSPC, "The disk is full."), (errno.EIO, "cannot be written")]
)
async def test_a_disk_that_fails_leaves_no_generation(tmp_path: Path, code: int, said: str) -> None:
    def entries() -> Iterator[IndexedPassage]:
        yield _ENTRIES[0]
        raise OSError(code, "failed")

    generations = FlatGenerationStore(tmp_path, dimension=_DIMENSION)
    with pytest.raises(StoreFailed, match=said):
        await generations.publish("one", entries())
    with pytest.raises(IndexDamaged):
        await generations.open("one")
    await generations.discard(keep=[])
    assert not list(tmp_path.iterdir())


async def test_a_generation_of_another_dimension_is_not_opened(tmp_path: Path) -> None:
    await FlatGenerationStore(tmp_path, dimension=_DIMENSION).publish("one", _ENTRIES[:3])
    with pytest.raises(IndexDamaged):
        await FlatGenerationStore(tmp_path, dimension=_DIMENSION // 2).open("one")


async def test_damage_to_an_open_index_is_named(tmp_path: Path) -> None:
    generations = FlatGenerationStore(tmp_path, dimension=_DIMENSION)
    await generations.publish("one", _ENTRIES[:3])
    store = await generations.open("one")
    records = tmp_path / "one" / "records"
    with records.open("r+b") as file:
        file.write(b"x" * records.stat().st_size)
    with pytest.raises(IndexDamaged):
        await store.fetch([_ENTRIES[0].passage.id])


# --- the store in memory, which replaces an index that is down -----------------------------------

_WORDS = ["kite", "kettle", "wind", "water", "string", "paper"]
_TEXTS = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map(" ".join)


def _passages(texts: list[str]) -> list[Passage]:
    return [
        passage(text, file=f"{number}.md", section=f"S{number}", week=number % 2)
        for number, text in enumerate(texts)
    ]


@given(st.lists(_TEXTS, min_size=1, max_size=8), _TEXTS)
async def test_a_search_by_keywords_equals_an_exhaustive_one(
    texts: list[str], question: str
) -> None:
    passages = _passages(texts)
    vocabulary = Vocabulary.of(passages)
    asked = vocabulary.ask(question)
    store = keyword_store(passages, vocabulary)
    found = await store.find(None, asked, limit=100, filters={})
    weights = {one.id: vocabulary.weigh(one) for one in passages}
    matching = {name: terms for name, terms in weights.items() if terms.keys() & asked.keys()}
    assert {one.passage_id for one in found} == matching.keys()
    for one in found:
        assert one.terms == pytest.approx(matching[one.passage_id])
    weight = {
        one.passage_id: sum(one.terms.get(t, 0) * idf for t, idf in asked.items()) for one in found
    }
    best = await store.find(None, asked, limit=2, filters={})
    most = sorted(weight.values(), reverse=True)[:2]
    assert sorted((weight[one.passage_id] for one in best), reverse=True) == most
