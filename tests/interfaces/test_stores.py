"""Conformance suite of GenerationStore and PassageStore."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bythebook.errors import IndexDamaged, StoreFailed
from bythebook.interfaces.store import Candidate, GenerationStore, IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.providers.flat_index import FlatGenerationStore
from bythebook.providers.testing import FakeEmbedder, MemoryGenerationStore
from bythebook.types import Passage
from tests.support.samples import passage
from tests.support.servers import server_shelf

ONE, TWO = "1" * 32, "2" * 32  # named as an ingest names them

_SERVERS = {
    "server": ("qdrant_server", 0),
    "cached": ("qdrant_server", 2),  # passages
    "cluster": ("qdrant_cluster", 0),
}
_EMBEDDER = FakeEmbedder()
_PASSAGES = [
    passage("A kite flies in the wind.", file="kites.md", section="Kites", week=1),
    passage("A kettle boils water. It whistles.", file="kettles.md", section="Kettles", week=2),
    passage("The wind is moving air.", file="kites.md", section="Wind", week=1, has_code=True),
]


@pytest.fixture(
    params=["memory", "files", *(pytest.param(each, marks=pytest.mark.real) for each in _SERVERS)]
)
async def generations(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[GenerationStore]:
    if request.param == "memory":
        yield MemoryGenerationStore(dimension=_EMBEDDER.dimension)
    elif request.param == "files":
        yield FlatGenerationStore(tmp_path / "generations", dimension=_EMBEDDER.dimension)
    else:
        nodes, cached = _SERVERS[request.param]
        async with server_shelf(
            request.getfixturevalue(nodes), dimension=_EMBEDDER.dimension, cached=cached
        ) as on_server:
            yield on_server


async def _entries(passages: list[Passage]) -> list[IndexedPassage]:
    vocabulary = Vocabulary.of(passages)
    entries = []
    for one in passages:
        units = [one.unit_text(unit) for unit in one.units]
        vectors = await _EMBEDDER.embed([one.text, *units], role="passage")
        entries.append(IndexedPassage(one, vectors[0], vectors[1:], vocabulary.weigh(one)))
    return entries


async def _ask(text: str) -> np.ndarray:
    return (await _EMBEDDER.embed([text], role="query"))[0]


async def test_a_published_generation_returns_its_entries(generations: GenerationStore) -> None:
    entries = await _entries(_PASSAGES)
    assert await generations.publish(ONE, entries) == 3
    store = await generations.open(ONE)
    assert await store.count() == 3
    for before, after in zip(entries, await store.fetch([p.id for p in _PASSAGES]), strict=True):
        assert after.passage == before.passage
        assert np.allclose(after.vector, before.vector, atol=1e-6)
        assert np.allclose(after.unit_vectors, before.unit_vectors, atol=1e-6)
        assert after.terms == pytest.approx(dict(before.terms))


async def test_a_book_without_vectors_is_searched_by_keywords(
    generations: GenerationStore,
) -> None:
    nothing = np.zeros((0, 0), dtype=np.float32)
    entries = [
        replace(entry, vector=None, unit_vectors=nothing) for entry in await _entries(_PASSAGES)
    ]
    assert await generations.publish(ONE, entries) == 3
    store = await generations.open(ONE)
    asked = Vocabulary.of(_PASSAGES).ask("kettle")
    found = await store.find(None, asked, limit=3, filters={})
    assert [each.passage_id for each in found] == [_PASSAGES[1].id]
    assert (found[0].cosine, found[0].unit_cosine) == (0, 0)
    assert found[0].terms.keys() >= asked.keys()
    [entry] = await store.fetch([_PASSAGES[1].id])
    assert entry.vector is None
    assert len(entry.unit_vectors) == 0
    assert entry.passage == _PASSAGES[1]


async def test_fetch_keeps_the_order_and_skips_unknown_ids(generations: GenerationStore) -> None:
    await generations.publish(ONE, await _entries(_PASSAGES))
    store = await generations.open(ONE)
    wanted = [_PASSAGES[2].id, "0" * 64, _PASSAGES[0].id]
    assert [e.passage.id for e in await store.fetch(wanted)] == [wanted[0], wanted[2]]


async def test_a_candidate_has_all_values_used_for_ranking(generations: GenerationStore) -> None:
    entries = await _entries(_PASSAGES)
    await generations.publish(ONE, entries)
    vector = await _ask("kettle water whistles")
    asked = Vocabulary.of(_PASSAGES).ask("kettle water whistles")
    found = await (await generations.open(ONE)).find(vector, asked, limit=5, filters={})
    expected = {entry.passage.id: Candidate.of(entry, vector) for entry in entries}
    assert sorted(one.passage_id for one in found) == sorted(expected)
    for one in found:
        exact = expected[one.passage_id]
        assert one.content_hash == exact.content_hash
        assert one.cosine == pytest.approx(exact.cosine, abs=1e-4)
        assert one.unit_cosine == pytest.approx(exact.unit_cosine, abs=1e-4)
        assert one.terms == pytest.approx(dict(exact.terms))


async def test_the_best_of_each_ranking_is_found(generations: GenerationStore) -> None:
    # Three passages of which each is the best in one way only, and one that is best in none.
    near = await _ask("kite")
    far = await _ask("stove")
    passages = [passage(text, section=text) for text in ("one", "two", "three kettle", "four")]
    by_passage, by_unit, by_word, in_no_way = (
        IndexedPassage(one, vector, np.stack([unit, far]), Vocabulary.of(passages).weigh(one))
        for one, vector, unit in zip(
            passages, (near, far, far, far), (far, near, far, far), strict=True
        )
    )
    await generations.publish(ONE, [by_passage, by_unit, by_word, in_no_way])
    store = await generations.open(ONE)
    asked = Vocabulary.of(passages).ask("kettle")
    found = await store.find(near, asked, limit=1, filters={})
    assert sorted(one.passage_id for one in found) == sorted(
        entry.passage.id for entry in (by_passage, by_unit, by_word)
    )


async def test_keyword_search_ranks_by_bm25_with_idf(generations: GenerationStore) -> None:
    """Where meaning finds the same one, the second is what the words found."""
    passages = [passage(text, section=text) for text in ("wind kite", "wind", "wind wind", "oak")]
    vector, far = await _ask("oak"), await _ask("stove")
    vocabulary = Vocabulary.of(passages)
    entries = [IndexedPassage(one, far, far[None], vocabulary.weigh(one)) for one in passages[:3]]
    entries.append(IndexedPassage(passages[3], vector, vector[None], vocabulary.weigh(passages[3])))
    await generations.publish(ONE, entries)
    store = await generations.open(ONE)

    async def by_word(words: str) -> set[str]:
        found = await store.find(vector, vocabulary.ask(words), limit=1, filters={})
        return {one.passage_id for one in found} - {passages[3].id}

    assert await by_word("wind") == {passages[2].id}, "twice is more than once"
    assert await by_word("kite wind") == {passages[0].id}, "a rare word is worth more"
    assert await by_word("zeppelin") == set()
    assert await by_word("the") == set()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"week": 1}, 2),
        ({"week": 1, "hasCode": True}, 1),
        ({"chapter": "Chapter"}, 3),
        ({"section": "Kettles"}, 1),
        ({"module": "Module", "url": "/docs/kites#wind"}, 1),
        ({"language": "ur"}, 0),
    ],
)
async def test_filters_apply_to_every_search(
    generations: GenerationStore, filters: dict[str, str | int | bool], expected: int
) -> None:
    await generations.publish(ONE, await _entries(_PASSAGES))
    store = await generations.open(ONE)
    asked = Vocabulary.of(_PASSAGES).ask("kite kettle wind")
    found = await store.find(await _ask("wind"), asked, limit=9, filters=filters)
    assert len(found) == expected


async def test_an_open_generation_does_not_change_when_another_is_published(
    generations: GenerationStore,
) -> None:
    await generations.publish(ONE, await _entries(_PASSAGES))
    old = await generations.open(ONE)
    await generations.publish(TWO, await _entries(_PASSAGES[:1]))
    await generations.discard(keep=[TWO])
    assert await old.count() == 3
    assert len(await old.fetch([_PASSAGES[1].id])) == 1
    assert await (await generations.open(TWO)).count() == 1
    with pytest.raises(IndexDamaged):
        await generations.open(ONE)


async def test_several_readers_open_one_generation(generations: GenerationStore) -> None:
    await generations.publish(ONE, await _entries(_PASSAGES))
    stores = [await generations.open(ONE) for _ in range(3)]
    assert [await store.count() for store in stores] == [3, 3, 3]


@pytest.mark.parametrize("wrong", [np.full(64, np.nan), np.full(64, np.inf), np.ones(10)])
async def test_a_vector_that_is_not_finite_or_of_another_dimension_is_rejected(
    generations: GenerationStore, wrong: np.ndarray
) -> None:
    entry = (await _entries(_PASSAGES[:1]))[0]
    with pytest.raises(StoreFailed):
        await generations.publish(ONE, [replace(entry, vector=wrong.astype(np.float32))])
    with pytest.raises(IndexDamaged):
        await generations.open(ONE)
