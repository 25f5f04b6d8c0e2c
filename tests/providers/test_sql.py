"""Opening databases by URL or home, errors, and upgrades of old schemas."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from bythebook.errors import ConfigurationError, DatabaseFailed, UnknownProvider
from bythebook.interfaces.store import StoredVectors
from bythebook.providers.sql import schema as tables
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import open_access_database, open_database


@pytest.mark.parametrize("url", ["postgres://book@host/name", "postgresql://book@host/name"])
def test_a_missing_psycopg_is_reported_with_the_install_command(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnknownProvider, match=r'psycopg.*pip install "bythebook\[postgres\]"'):
        open_database(url, tmp_path)


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1/", "oldbase://book@host/name"])
def test_an_invalid_url_is_reported_but_not_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_database(url, tmp_path)
    assert url not in str(raised.value)


def test_a_database_of_a_newer_version_is_not_opened(tmp_path: Path) -> None:
    engine = open_database(None, tmp_path)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigurationError, match="newer version"):
        open_database(None, tmp_path)


def test_sqlite_by_url_has_the_same_pragmas_as_the_home(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'own.db'}", tmp_path)
    with engine.connect() as connection:
        found = {
            name: connection.execute(sa.text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "synchronous")
        }
    engine.dispose()
    assert found == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2}
    assert not (tmp_path / "bythebook.db").exists()


def test_an_unreadable_passage_is_reported_as_damage(tmp_path: Path) -> None:
    engine = open_database(None, tmp_path)
    with engine.begin() as connection:
        row = {"id": "p", "file": "a.md", "position": 0, "content_hash": "h", "record": {"id": "p"}}
        connection.execute(sa.insert(tables.passages), [row])
    with pytest.raises(DatabaseFailed, match="damaged"):
        SqlCatalog(engine, tmp_path).passages()
    engine.dispose()


def test_only_the_owner_can_read_a_new_database_and_enter_a_new_home(tmp_path: Path) -> None:
    open_database(None, tmp_path / "home").dispose()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    (tmp_path / "shared").mkdir(mode=0o755)
    engines = [open_database(None, tmp_path / "shared")]
    engines.append(open_access_database(None, tmp_path / "shared"))
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o755  # the choice of its owner
    for engine in engines:
        with engine.begin() as connection:  # the files beside the database exist meanwhile
            connection.execute(sa.text("CREATE TABLE another (number INTEGER)"))
            modes = {file.name: file.stat().st_mode for file in (tmp_path / "shared").iterdir()}
        engine.dispose()
        assert len(modes) >= 3
        assert {name: mode & 0o077 for name, mode in modes.items()} == dict.fromkeys(modes, 0)


def test_a_database_on_a_full_disk_is_opened_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_database(None, tmp_path).dispose()
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    engine = open_database(None, tmp_path)
    with engine.connect() as connection:
        assert connection.execute(sa.select(tables.passages)).all() == []
    vectors = StoredVectors("key", np.zeros(1), np.zeros((1, 1)))
    with pytest.raises(DatabaseFailed, match="cannot be written"):
        SqlCatalog(engine, tmp_path).add_vectors("a model", [vectors])
    engine.dispose()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bythebook.db"]
