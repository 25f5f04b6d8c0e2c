"""Opening databases by URL or home, errors, and upgrades of old schemas."""

import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from bythebook.errors import ConfigurationError, DatabaseFailed, UnknownProvider
from bythebook.providers.sql import schema as tables
from bythebook.providers.sql.catalog import SqlCatalog
from bythebook.providers.sql.engine import migrations, open_database


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


def test_a_database_of_the_first_revision_is_upgraded_with_its_rows(tmp_path: Path) -> None:
    engine = open_database(None, tmp_path)
    thread = {"thread_id": "1", "created_at": "2026-01-02", "updated_at": "2026-01-02"}
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.downgrade(migrations(connection), "0001")
        insert = "INSERT INTO conversation_threads ({}) VALUES ({})"
        names, marks = ", ".join(thread), ", ".join(f":{name}" for name in thread)
        connection.execute(sa.text(insert.format(names, marks)), thread)
    engine.dispose()
    engine = open_database(None, tmp_path)
    with engine.connect() as connection:
        ids = connection.execute(sa.select(tables.threads.c.thread_id)).scalars().all()
        columns = sa.inspect(connection).get_columns
        upgraded = {name: {c["name"] for c in columns(name)} for name in tables.metadata.tables}
    engine.dispose()
    assert ids == ["1"]
    assert upgraded == {name: set(t.c.keys()) for name, t in tables.metadata.tables.items()}
