"""A key works only for its holder, and nothing stored reveals it."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.server.access_fixtures import PEPPER, client_of, new_key
from typer.testing import CliRunner

from bythebook.access_stores import open_access_stores
from bythebook.cli.main import app
from bythebook.providers.testing import MemoryKeys
from bythebook.server.access import KeyRing, make_key
from reliability.rows import Rows

_PAGE = "https://book.example"
_ELSEWHERE = (
    None,
    "null",
    "https://evil.example",
    "https://book.example.evil.example",
    "https://book.example:8443",
    "http://book.example",
    "https://BOOK.example",
)
_KEYS = 20
_TRIALS = 10_000


def _told_by_a_dump(home: Path) -> int:
    """Count keys and pepper in the database, as text or bytes."""
    command = ["keys", "create", "--home", str(home)]
    texts = [CliRunner().invoke(app, command).stdout.strip() for _ in range(_KEYS)]
    with sqlite3.connect(home / "bythebook.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    stored = dump.encode() + b"".join(file.read_bytes() for file in home.glob("bythebook.db*"))
    assert all(text.split("_")[1] in dump for text in texts), "a key's name is there"
    secrets = [text.split("_", 2)[2] for text in texts] + [(home / "pepper").read_text()]
    return sum(secret.encode() in stored for secret in secrets)


async def _apart_us() -> tuple[float, bool]:
    """Return the distance between the medians of refusals of better and worse guesses, and whether
    it is noise.
    """
    store = MemoryKeys()
    text, key = make_key(PEPPER)
    await store.add(key)
    ring = KeyRing(store, PEPPER, clock=lambda: 0.0)
    nearly = text[:-1] + ("A" if text[-1] != "A" else "B")
    guesses = (nearly, text[:21] + "x" * 43, make_key(PEPPER)[0])
    took: dict[str, list[int]] = {guess: [] for guess in guesses}
    for _ in range(_TRIALS):
        for guess in guesses:
            began = time.perf_counter_ns()
            holder = await ring.holder(guess)
            took[guess].append(time.perf_counter_ns() - began)
            assert holder is None
    medians = [statistics.median(times) for times in took.values()]
    apart = max(medians) - min(medians)
    # The same guess differs from itself from one half of the trials to the other.
    halves = [(times[::2], times[1::2]) for times in took.values()]
    noise = max(abs(statistics.median(one) - statistics.median(two)) for one, two in halves)
    return apart / 1000, apart <= max(3 * noise, 0.05 * max(medians))


async def _revoked_let_in() -> int:
    now, store, late = 0.0, MemoryKeys(), 0
    ring = KeyRing(store, PEPPER, clock=lambda: now)
    for _ in range(_KEYS):
        text, key = make_key(PEPPER)
        await store.add(key)
        now += 1
        assert await ring.holder(text) == key
        await store.revoke(key.id, datetime.now(UTC))
        now += 0.99
        late += await ring.holder(text) is not None
    return late


async def _strangers_let_in() -> int:
    stores = open_access_stores()
    text, _ = await new_key(stores, _PAGE)
    async with client_of(stores=stores, needs_keys=True) as client:
        codes = []
        for origin in (_PAGE, *_ELSEWHERE):
            headers = {"X-API-Key": text} | ({"Origin": origin} if origin else {})
            codes.append((await client.post("/chat/run", headers=headers)).status_code)
    assert codes[0] == 200
    return sum(code != 401 for code in codes[1:])


async def test_a_key_is_its_holders_alone(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S7",
        "Stolen, guessed or misused API keys",
        requirement=(
            "0 keys in a dump, no timing difference beyond noise, revoked keys refused "
            "within 1 s, publishable keys only on their own page"
        ),
    )
    told = await asyncio.to_thread(_told_by_a_dump, tmp_path)
    apart_us, noise = await _apart_us()
    late, strangers = await _revoked_let_in(), await _strangers_let_in()
    row.record(
        f"{_KEYS} keys and the pepper looked for in the database; {_TRIALS:,} refusals each of a "
        f"key right but for its last letter, of a known name and of a stranger; {_KEYS} keys used "
        f"0.99 s after their end; a publishable key from {len(_ELSEWHERE)} other origins",
        f"{told} keys found; medians {apart_us:.2f} µs apart{' (noise)' if noise else ''}; {late} "
        f"revoked and {strangers} strangers let in",
        passed=noise and not (told or late or strangers),
    )
