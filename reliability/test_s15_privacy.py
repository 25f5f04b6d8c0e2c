"""Questions and identities are stored only where intended, and secrets nowhere.

Canaries go into every field of every contract, into headers and configuration; then all files,
tables, log lines, metrics and errors are searched for them.
"""

from __future__ import annotations

import io
import logging
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.support.samples import read, small_book

from bythebook.access_stores import open_keys
from bythebook.book import Book
from bythebook.config.settings import Settings, load_settings
from bythebook.server.access import AccessControl, make_key, open_access, pepper_of
from bythebook.server.app import create_app
from bythebook.server.observability import configuration
from reliability.rows import Rows

_ADDRESS = "203.0.113.77"
_AGENT = "agent-canary"
_PEPPER = "pepper-canary-of-more-than-sixteen"
# Where a reader's own words may stand, beside the log of questions if that keeps their text.
_CONVERSATIONS = {"thread_messages.content", "threads.topic_summary"}
_ANSWERS = {"thread_messages.content", "thread_messages.citations", "kept_replies.body"}


@dataclass
class Told:
    """Everything that remains of a run."""

    columns: dict[str, str] = field(default_factory=dict)
    files: bytes = b""
    log: str = ""
    metrics: str = ""
    key: str = ""
    errors: list[str] = field(default_factory=list)

    def places_of(self, canary: str) -> set[str]:
        places = {name for name, text in self.columns.items() if canary in text}
        elsewhere = {"log": self.log, "metrics": self.metrics, "errors": "\n".join(self.errors)}
        places |= {name for name, text in elsewhere.items() if canary in text}
        if canary.encode() in self.files and not any("." in name for name in places):
            places.add("the bytes of a file")
        return places


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    """Capture every line of every logger from the lowest level, as the server writes it."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(configuration()["formatters"]["json"]["()"]())
    handler.addFilter(lambda record: "http://server" not in record.getMessage())  # our own client
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def _bodies(question: str, selection: str) -> list[tuple[str, dict[str, Any]]]:
    """Return one question and one selection as bodies of every contract."""
    session = str(uuid.uuid4())
    words = f"{question} At how many degrees does a kettle boil water?"
    chosen = f"{selection} A kettle boils water at 100 degrees."
    turns = [{"role": "user", "content": words}]
    return [
        ("/query", {"text": words}),
        ("/ask", {"text": words}),
        ("/ask", {"text": words, "selected_text": chosen}),
        ("/search", {"text": words}),
        ("/api/v1/query", {"query": words, "selected_text": chosen}),
        ("/api/v2/query", {"query": words, "session_id": session}),
        ("/api/v2/query", {"query": words, "selected_text": chosen, "session_id": session}),
        ("/chat/run", {"message": words, "session_id": session}),
        ("/chat/stream", {"message": words, "session_id": session}),
        ("/v1/chat/completions", {"messages": turns}),
        ("/v1/chat/completions", {"messages": turns, "stream": True}),
    ]


def _broken(canary: str) -> list[tuple[str, Any]]:
    """Yield invalid requests; their content must not appear in the log."""
    return [
        ("/query", {"text": canary * 1000}),
        ("/ask", {"text": 7, canary: canary}),
        ("/api/v2/query", {"query": "x", "top_k": canary}),
        ("/api/v2/query", {"query": "x", "session_id": canary}),
        ("/chat/run", {"message": "x", "session_id": canary}),
        ("/chat/run", [canary]),
        (f"/{canary}", {}),
    ]


async def _run(settings: Settings, book: Path) -> Told:
    told = Told()
    with _logged() as lines:
        library = Book(settings, new=True)
        await library.ingest(read(book))
        door = open_access(settings)
        keys = open_keys(settings)
        told.key, kept = make_key(pepper_of(settings))
        await keys.add(kept)
        await keys.close()
        await _ask_everything(library, door, settings, told)
    told.log = lines.getvalue()
    for file in settings.home.rglob("*"):
        if file.is_file():
            told.files += file.read_bytes()
    for database in settings.home.glob("*.db"):
        told.columns |= _columns(database)
    return told


async def _ask_everything(
    library: Book, door: AccessControl, settings: Settings, told: Told
) -> None:
    app = create_app(library, settings, door)
    transport = httpx.ASGITransport(app, client=(_ADDRESS, 50_000), raise_app_exceptions=False)
    headers = {
        "Authorization": f"Bearer {told.key}",
        "User-Agent": _AGENT,
        "Cookie": "session=cookie-canary",
        "Referer": "https://book.example/?q=referer-canary",
    }
    async with httpx.AsyncClient(
        transport=transport, base_url="http://server", headers=headers
    ) as client:
        for path, body in _bodies("question-canary", "selection-canary"):
            once = {"Idempotency-Key": f"once-canary-{uuid.uuid4()}"}
            response = await client.post(path, json=body, headers=once)
            assert response.status_code == 200, (path, response.text)
        for path, body in _broken("broken-canary"):
            response = await client.post(path, json=body)
            assert 400 <= response.status_code < 500, (path, response.status_code)
        for wrong in (f"{told.key}x", "btk_wrong-canary"):
            headers = {"Authorization": f"Bearer {wrong}"}
            refused = await client.post("/query", json={}, headers=headers)
            assert refused.status_code == 401
            told.errors.append(refused.text)
        told.metrics = (await client.get("/metrics")).text
    if library.log is not None:
        await library.log.flush()
    await library.close()
    await door.close()


def _columns(database: Path) -> dict[str, str]:
    """Return all text of each column of each table."""
    with sqlite3.connect(database) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {}
        for (table,) in tables.fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                    found[f"{table}.{name}"] = f"{found.get(f'{table}.{name}', '')}\n{text}"
    connection.close()
    return found


def _allowed(with_text: bool) -> dict[str, set[str]]:
    """Return each canary with the columns that may contain it."""
    asked = _CONVERSATIONS | ({"queries.query_text"} if with_text else set()) | _ANSWERS
    nowhere = (
        *("wrong-canary", "cookie-canary", "referer-canary", "once-canary", "broken-canary"),
        *(_AGENT, _ADDRESS, _PEPPER),
    )
    return {"question-canary": asked, "selection-canary": _ANSWERS} | {
        canary: set() for canary in nowhere
    }


async def test_nothing_is_kept_where_it_should_not_be(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S15",
        "Questions, addresses or secrets left behind",
        requirement="0 outside the columns meant for them; secrets nowhere",
    )
    book = small_book(tmp_path / "docs")
    faults, searched = [], 0
    for with_text in (True, False):
        settings = load_settings(
            {
                "home": tmp_path / f"home-{with_text}",
                "log": {"text": with_text},
                "access": {"keys": "required", "pepper": _PEPPER},
            },
            environ={},
        )
        told = await _run(settings, book)
        secret = told.key.split("_", 2)[2]
        for canary, allowed in {**_allowed(with_text), secret: set()}.items():
            found = told.places_of(canary) - allowed
            faults += [f"{canary} in {place}" for place in sorted(found)]
        searched += len(told.files) + len(told.log) + len(told.metrics)
        assert "question" in told.log, "the log was looked at"
        assert told.columns["queries.selected_text_length"].strip()
    row.record(
        f"{len(_allowed(True)) + 1} canaries (question, selection, key, cookie, address, agent, "
        "pepper …) through every contract, well and badly formed, with and without the log of "
        f"questions; {searched // 1024:,} KiB of files, tables, log lines at DEBUG, metrics and "
        "errors searched",
        "; ".join(faults) or "0 found where they should not be",
        passed=not faults,
    )
