"""What is requested of a Qdrant server: little for a search, and no passage again."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from qdrant_client import models

from bythebook.errors import StoreFailed
from bythebook.providers.qdrant.server import ServerStore
from bythebook.text.passage_records import to_record
from tests.support.samples import passage

_PASSAGES = {
    str(uuid.UUID(one.id[:32]))[-12:]: one
    for one in (passage(f"Kite number {n} flies.", section=f"S{n}") for n in range(4))
}
A, B, C, D = (one.id for one in _PASSAGES.values())


class Far:
    """Nodes of a server that note which passages they are asked for, and may be away."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked: list[list[str]] = []

    async def call(self, work: Any) -> Any:
        if self.is_away:
            raise StoreFailed("Away.", hint="Wait.")
        return await work(self)

    async def retrieve(
        self, collection: str, points: Sequence[str], with_vectors: bool
    ) -> list[models.Record]:
        found = [_PASSAGES[point[-12:]] for point in points if point[-12:] in _PASSAGES]
        self.asked.append([one.id for one in found])
        terms = models.SparseVector(indices=[], values=[])
        return [
            models.Record(id=number, payload=to_record(one), vector={"terms": terms})
            for number, one in enumerate(found)
        ]


@pytest.fixture
def far() -> Far:
    return Far()


async def _fetched(store: ServerStore, *passage_ids: str) -> list[str]:
    return [entry.passage.id for entry in await store.fetch(passage_ids)]


async def test_the_least_recently_used_passages_are_fetched_again(far: Far) -> None:
    store = ServerStore(far, "book", cached=2)  # type: ignore[arg-type]
    for wanted in ([B, A], [A], [A, C], [C, A], [B], [A, B, C, D, A]):
        assert await _fetched(store, *wanted) == wanted
    assert far.asked == [[B, A], [C], [B], [C, D]]


async def test_passages_that_are_missing_are_asked_for_again(far: Far) -> None:
    store = ServerStore(far, "book", cached=2)  # type: ignore[arg-type]
    assert await _fetched(store, "0" * 64, A) == [A]
    assert await _fetched(store, A, "0" * 64) == [A]
    assert far.asked == [[A], []]


async def test_a_server_that_is_away_fails_only_for_other_passages(far: Far) -> None:
    store = ServerStore(far, "book", cached=2)  # type: ignore[arg-type]
    await store.fetch([A])
    far.is_away = True
    assert await _fetched(store, A) == [A]
    with pytest.raises(StoreFailed):
        await store.fetch([A, B])


async def test_a_search_requests_no_text_and_no_dense_vector() -> None:
    requests: list[models.QueryRequest] = []

    class Nodes:
        async def call(self, work: Any) -> Any:
            return await work(self)

        @property
        def http(self) -> Any:
            return SimpleNamespace(search_api=self)

        async def query_batch_points(self, _: str, *, query_request_batch: Any) -> Any:
            requests.extend(query_request_batch.searches)
            return SimpleNamespace(result=[SimpleNamespace(points=[])] * len(requests))

    store = ServerStore(Nodes(), "book")  # type: ignore[arg-type]
    vector = np.ones(64, dtype=np.float32)
    assert await store.find(vector, {7: 1.0}, limit=5, filters={}) == []
    assert [request.with_vector for request in requests] == [["terms"], None]
    assert [request.with_payload for request in requests] == [["id", "content_hash"], None]
