"""Open the stores of access control: API keys, rate limit counters and replayable replies."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.errors import DatabaseFailed, UnknownProvider
from bythebook.wiring import open_database

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.interfaces.access import RateCounter
    from bythebook.providers.sql.access import SqlKeys, SqlReplies

_log = logging.getLogger(__name__)


def open_keys(settings: Settings) -> SqlKeys:
    from bythebook.providers.sql.access import SqlKeys

    return SqlKeys(open_database(settings, new=True))


@dataclass(frozen=True, slots=True)
class AccessStores:
    """State of the access middleware: API keys, rate limit counters and replayable replies."""

    keys: SqlKeys
    counter: RateCounter
    replies: SqlReplies


def open_access_stores(settings: Settings | None = None) -> AccessStores:
    """Open the stores that the settings name; without settings, in-memory ones."""
    from bythebook.providers.rate_limits import FallbackCounter, MemoryCounter
    from bythebook.providers.sql.access import SqlCounter, SqlKeys, SqlReplies
    from bythebook.providers.sql.engine import open_access_database, open_memory_database

    if settings is None:
        engine = open_memory_database()
        return AccessStores(SqlKeys(engine), MemoryCounter(), SqlReplies(engine))
    keys = open_keys(settings)
    store = settings.access.rate_limit_store
    shared = redis_counter(store) if store.startswith("redis") else None
    try:
        engine = open_access_database(settings.database_url, settings.home)
    except DatabaseFailed:
        # A book on a read-only disk can still be queried; each worker keeps its own state.
        _log.warning("no writable database: rate limits and idempotency are per process")
        return AccessStores(keys, shared or MemoryCounter(), SqlReplies(open_memory_database()))
    if store == "database":
        shared = SqlCounter(engine)
    counter = FallbackCounter(shared, MemoryCounter()) if shared else MemoryCounter()
    return AccessStores(keys, counter, SqlReplies(engine))


def redis_counter(url: str) -> RateCounter:
    from bythebook.providers.rate_limits import RedisCounter

    try:
        return RedisCounter(url)
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"Counting on Redis needs the package {error.name}.",
            hint='Run: pip install "bythebook[redis]"',
        ) from None
