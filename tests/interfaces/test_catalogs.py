"""Conformance suite of Catalog."""

from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from bythebook.errors import IngestRunning
from bythebook.interfaces.store import Catalog, Generation, StoredVectors
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_database
from tests.support.databases import Postgres
from tests.support.samples import passage

_PASSAGES = [passage("A kite flies."), passage("پتنگ اڑتی ہے۔", language="ur", keywords=("a", "b"))]


@pytest.fixture
def catalog(engine: sa.Engine, tmp_path: Path) -> Catalog:
    return SqlCatalog(engine, tmp_path)


def _generation(name: str = "one") -> Generation:
    return Generation(name, "fake:bag", 4, 2, "f" * 64, b"vocabulary")


def _vectors(key: str) -> StoredVectors:
    row = np.arange(4, dtype=np.float32)
    return StoredVectors(key, row, np.vstack([row, row + 1]))


def test_an_empty_catalog_serves_nothing(catalog: Catalog) -> None:
    assert catalog.current() is None
    assert catalog.served() is None
    assert catalog.passages() == {}


def test_a_commit_is_read_back_whole(catalog: Catalog) -> None:
    catalog.commit(_PASSAGES, _generation(), keep_vectors=set())
    assert catalog.passages() == {p.id: p for p in _PASSAGES}
    assert catalog.current() == _generation()
    assert catalog.served() == _generation().name


def test_passages_come_in_the_order_of_the_commit(catalog: Catalog) -> None:
    many = [passage(f"Sentence {number * 7 % 50}.") for number in range(50)]
    for order in (many, many[::-1], many[25:] + many[:25]):
        catalog.commit(order, _generation(), keep_vectors=set())
        assert list(catalog.passages()) == [p.id for p in order]


def test_a_commit_replaces_the_one_before(catalog: Catalog) -> None:
    catalog.commit(_PASSAGES, _generation(), keep_vectors=set())
    catalog.commit(_PASSAGES[:1], _generation("two"), keep_vectors=set())
    assert list(catalog.passages()) == [_PASSAGES[0].id]
    current = catalog.current()
    assert current is not None
    assert current.name == "two"


def test_vectors_are_kept_per_embedder(catalog: Catalog) -> None:
    catalog.add_vectors("one", [_vectors("k1"), _vectors("k2")])
    catalog.add_vectors("two", [_vectors("k1")])
    assert catalog.known_vectors("one") == {"k1", "k2"}
    assert catalog.known_vectors("two") == {"k1"}
    found = catalog.vectors("one", ["k2", "missing"])
    assert list(found) == ["k2"]
    assert np.array_equal(found["k2"].unit_vectors, _vectors("k2").unit_vectors)


def test_many_vectors_are_read_at_once(catalog: Catalog) -> None:
    keys = [f"{n:064x}" for n in range(1200)]
    catalog.add_vectors("one", [_vectors(key) for key in keys])
    assert len(catalog.vectors("one", keys)) == 1200


@pytest.mark.real
def test_a_second_ingest_from_another_machine_is_rejected(
    postgres: Postgres, tmp_path: Path
) -> None:
    url = postgres.new_database()
    engines = [open_database(url, tmp_path) for _ in range(2)]
    here, there = (SqlCatalog(e, tmp_path / str(n)) for n, e in enumerate(engines))
    with here.ingesting(), pytest.raises(IngestRunning, match="database"), there.ingesting():
        pass
    with there.ingesting():
        pass
    for engine in engines:
        engine.dispose()


def test_a_second_ingest_is_rejected(tmp_path: Path) -> None:
    engine = open_database(None, tmp_path)
    first, second = SqlCatalog(engine, tmp_path), SqlCatalog(engine, tmp_path)
    with first.ingesting(), pytest.raises(IngestRunning, match="Wait"), second.ingesting():
        pass
    with second.ingesting():
        pass
