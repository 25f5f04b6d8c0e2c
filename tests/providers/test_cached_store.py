"""Recently fetched passages are cached."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bythebook.errors import StoreFailed
from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.flat_index import FlatStore
from bythebook.providers.qdrant.cached import CachedStore
from tests.support.samples import passage

_VECTOR = np.ones(64, dtype=np.float32)
_PASSAGES = [passage(f"Kite number {n} flies.", section=f"S{n}") for n in range(4)]
A, B, C, D = (one.id for one in _PASSAGES)


class Far(FlatStore):
    """Notes what is asked of it, and may be away."""

    is_away = False

    def __init__(self, *files: Any) -> None:
        super().__init__(*files)
        self.asked: list[list[str]] = []

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        if self.is_away:
            raise StoreFailed("Away.", hint="Wait.")
        self.asked.append(list(passage_ids))
        return await super().fetch(passage_ids)


@pytest.fixture
def far() -> Far:
    entries = (IndexedPassage(one, _VECTOR, _VECTOR[None], {}) for one in _PASSAGES)
    return Far.of(entries, dimension=64)


async def _names(store: CachedStore, *passage_ids: str) -> list[str]:
    return [entry.passage.id for entry in await store.fetch(passage_ids)]


async def test_only_uncached_passages_are_fetched(far: Far) -> None:
    store = CachedStore(far, most=4)
    assert await _names(store, B, A) == [B, A]
    assert await _names(store, A, C, B) == [A, C, B]
    assert await _names(store, C, A) == [C, A]
    assert far.asked == [[B, A], [C]]


async def test_the_least_recently_used_passage_is_evicted(far: Far) -> None:
    store = CachedStore(far, most=2)
    for wanted in ([A, B], [A], [C], [A, C]):
        assert await _names(store, *wanted) == wanted
    assert far.asked == [[A, B], [C]]
    assert await _names(store, B) == [B]
    assert far.asked[-1] == [B]


async def test_more_passages_than_the_capacity_can_be_fetched(far: Far) -> None:
    store = CachedStore(far, most=1)
    assert await _names(store, A, B, C, D, A) == [A, B, C, D, A]


async def test_missing_passages_are_not_cached(far: Far) -> None:
    store = CachedStore(far, most=4)
    assert await _names(store, "nobody", A) == [A]
    assert await _names(store, A, "nobody") == [A]
    assert far.asked == [["nobody", A], ["nobody"]]


async def test_an_unavailable_store_fails_only_for_uncached_passages(far: Far) -> None:
    store = CachedStore(far, most=4)
    await store.fetch([A])
    far.is_away = True
    assert await _names(store, A) == [A]
    with pytest.raises(StoreFailed):
        await store.fetch([A, B])
    far.is_away = False
    assert await _names(store, A, B) == [A, B]
