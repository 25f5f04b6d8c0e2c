"""The tables and collections of the data models have the names that the data models print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.config.settings import load_settings
from bythebook.contracts import ask
from bythebook.providers.qdrant.server import payload_indexes, to_payload
from bythebook.providers.sql.engine import open_database
from tests.support.databases import POSTGRES, address
from tests.support.samples import passage

# The columns of a table as the data model prints them, and its indexes.
_TABLES = {
    "query_sessions": """
        session_id UUID PRIMARY KEY DEFAULT gen_random_uuid()
        created_at TIMESTAMP DEFAULT NOW()
        user_ip VARCHAR(45)
        query_count INTEGER DEFAULT 0
        last_query_at TIMESTAMP
        idx_sessions_ip_created INDEX user_ip, created_at
    """,
    "queries": """
        query_id UUID PRIMARY KEY DEFAULT gen_random_uuid()
        session_id UUID REFERENCES query_sessions(session_id)
        query_text TEXT NOT NULL
        selected_text_length INTEGER
        mode VARCHAR(20) NOT NULL CHECK (mode IN ('standard_rag', 'selected_text_only'))
        status VARCHAR(20) NOT NULL CHECK (status IN ('success', 'refused', 'error'))
        refusal_reason TEXT
        chunks_retrieved INTEGER
        top_chunk_score FLOAT
        processing_time_ms INTEGER
        created_at TIMESTAMP DEFAULT NOW()
        idx_queries_status INDEX status, created_at
        idx_queries_session INDEX session_id
    """,
}
_THREAD_INDEXES = {
    "idx_threads_updated": "updated_at DESC",
    "idx_threads_created": "created_at DESC",
}
_TYPES = {"UUID": ("CHAR(36)", "UUID"), "FLOAT": ("FLOAT", "DOUBLE PRECISION")}


@pytest.mark.parametrize("database", ["sqlite", POSTGRES])
@pytest.mark.parametrize("table", _TABLES)
def test_a_table_has_the_columns_and_indexes_of_its_data_model(
    database: str, table: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = open_database(address(database, tmp_path, request), tmp_path)
    inspector = sa.inspect(engine)
    columns = {column["name"]: column for column in inspector.get_columns(table)}
    indexes = {index["name"]: index["column_names"] for index in inspector.get_indexes(table)}
    [key] = inspector.get_pk_constraint(table)["constrained_columns"]
    checks = " ".join(check["sqltext"] for check in inspector.get_check_constraints(table))
    listed = []
    for line in _TABLES[table].strip().splitlines():
        name, kind, *rest = line.split()
        constraint = " ".join(rest)
        if kind == "INDEX":
            assert indexes[name] == constraint.split(", ")
            continue
        listed.append(name)
        actual = str(columns[name]["type"]).replace("DATETIME", "TIMESTAMP")
        assert actual in _TYPES.get(kind, (kind,))
        assert (name == key) == ("PRIMARY KEY" in constraint)
        assert columns[name]["nullable"] == (not re.search("NOT NULL|PRIMARY", constraint))
        if "DEFAULT" in constraint and name != key:  # the application makes the keys
            assert columns[name]["default"] is not None
        for value in re.findall(r"'(\w+)'", constraint):
            assert value in checks
    assert list(columns) == listed
    for foreign in inspector.get_foreign_keys(table):
        assert (foreign["referred_table"], foreign["referred_columns"]) == (
            "query_sessions",
            ["session_id"],
        )
    engine.dispose()


def test_threads_have_the_columns_and_indexes_of_their_data_model(tmp_path: Path) -> None:
    engine = open_database(address("sqlite", tmp_path, None), tmp_path)  # type: ignore[arg-type]
    columns = [each["name"] for each in sa.inspect(engine).get_columns("conversation_threads")]
    wanted = "thread_id messages created_at updated_at topic_summary metadata"
    assert columns == wanted.split()
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT name, sql FROM sqlite_master"))
        created = {row.name: row.sql for row in rows}
    for name, key in _THREAD_INDEXES.items():
        assert key in created[name]
    engine.dispose()


# The payload of a collection, with the types of its values or indexes.
_COLLECTIONS = {
    "query physical_ai_textbook": "text string, module string, week integer, chapter string, "
    "section string, difficulty string, keywords string[], hasCode boolean, language string",
    "plain physical-ai-textbook-v1": "text string, chapter index, section index, filename index, "
    "chunk_index integer, content_hash string",
    "chat textbook_chunks": "chapter keyword, section keyword, url keyword, chunk_index integer, "
    "content_hash keyword, text text",
}


def test_the_preset_of_ask_has_the_collection_of_its_data_model(tmp_path: Path) -> None:
    settings = load_settings({"preset": "ask"}, environ={}, directory=tmp_path)
    assert settings.collection.name == ask.COLLECTION_NAME


_VALUES = {"integer": int, "boolean": bool, "string[]": list}


@pytest.mark.parametrize("collection", _COLLECTIONS)
def test_a_collection_has_the_payload_and_indexes_of_its_data_model(
    collection: str, tmp_path: Path
) -> None:
    preset, name = collection.split()
    settings = load_settings({"preset": preset}, environ={}, directory=tmp_path)
    assert settings.collection.name == name
    written = to_payload(passage("A kite flies.", week=2, difficulty="easy", keywords=("kite",)))
    indexes = payload_indexes(settings.collection.indexes)
    for field, kind in map(str.split, _COLLECTIONS[collection].split(", ")):
        assert isinstance(written[field], _VALUES.get(kind, str)), field
        if kind == "index" or preset == "chat":
            assert indexes[field] == kind.replace("index", "keyword")
