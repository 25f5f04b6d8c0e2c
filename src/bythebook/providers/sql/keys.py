"""API keys in SQL: the table ``api_keys``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from bythebook.interfaces.access import ApiKey
from bythebook.providers.sql.engine import SqlStore, aware, on_database_thread
from bythebook.providers.sql.schema import api_keys


class SqlKeys(SqlStore):
    def __init__(self, engine: sa.Engine, *, deadline_s: float = 3.0) -> None:
        super().__init__(engine, threads=2, deadline_s=deadline_s)

    @on_database_thread()
    def add(self, key: ApiKey) -> None:
        row = {**asdict(key), "origins": list(key.origins)}
        with self._engine.begin() as connection:
            connection.execute(sa.insert(api_keys), [row])

    @on_database_thread()
    def all(self) -> list[ApiKey]:
        """Return every key, revoked ones included, oldest first."""
        oldest_first = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
        with self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(oldest_first)]

    @on_database_thread()
    def revoke(self, key_id: str, at: datetime) -> bool:
        """Revoke a key and return whether it exists. A revoked key keeps its first date."""
        is_key = api_keys.c.id == key_id
        revoke = sa.update(api_keys).where(is_key, api_keys.c.revoked_at.is_(None))
        with self._engine.begin() as connection:
            connection.execute(revoke.values(revoked_at=at))
            return connection.execute(sa.select(api_keys.c.id).where(is_key)).first() is not None


def _key(row: Any) -> ApiKey:
    return ApiKey(
        id=row.id,
        digest=row.digest,
        label=row.label,
        created_at=aware(row.created_at),
        origins=tuple(row.origins),
        revoked_at=aware(row.revoked_at) if row.revoked_at else None,
        is_author=row.is_author,
    )
