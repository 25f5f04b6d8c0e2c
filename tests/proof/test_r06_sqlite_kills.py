"""A message that was acknowledged survives the death of whoever wrote it, at any instant.

BYTHEBOOK_KILLS=100 kills as often; a few times is the habit.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import sqlite3
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from bythebook.model import Message, Role
from bythebook.providers.sql import open_database
from bythebook.providers.sql_threads import SqlThreads

_KILLS = int(os.environ.get("BYTHEBOOK_KILLS", "15"))
_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload([__name__])


def _talk(home: Path, begin: int, acknowledged: Connection) -> None:
    async def talk() -> None:
        threads = SqlThreads(open_database(None, home), deadline_s=60)
        number = begin
        while True:
            now = datetime.now(UTC)
            question = Message(Role.USER, f"{number}", now)
            answer = Message(Role.ASSISTANT, f"{number}", now, 0.5)
            await threads.append(f"thread {number % 3}", [question, answer], owner=None)
            acknowledged.send(number)
            number += 1

    asyncio.run(talk())


def _drain(pipe: Connection) -> list[int]:
    numbers = []
    try:
        while pipe.poll():
            numbers.append(pipe.recv())
    except EOFError:
        pass
    return numbers


def _kept(home: Path) -> list[int]:
    with sqlite3.connect(home / "bythebook.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = database.execute(
            "SELECT thread_id, seq, role, content FROM thread_messages ORDER BY thread_id, seq"
        ).fetchall()
    for name in {row[0] for row in rows}:
        mine = [row for row in rows if row[0] == name]
        assert [row[1] for row in mine] == list(range(len(mine)))
        assert [row[2] for row in mine] == ["user", "assistant"] * (len(mine) // 2)
        said = [int(row[3]) for row in mine]
        assert said == sorted(said)
        assert said[::2] == said[1::2]
    return sorted(int(row[3]) for row in rows if row[2] == "user")


def test_no_acknowledged_message_is_lost_and_none_is_torn(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, begin, acknowledged = random.Random(seed), 0, []
    for _ in range(_KILLS):
        ours, theirs = _forkserver.Pipe(duplex=False)
        process = _forkserver.Process(target=_talk, args=(tmp_path, begin, theirs))
        process.start()
        theirs.close()
        assert ours.poll(60), "the first message was not acknowledged"
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.join(60)
        acknowledged += _drain(ours)
        kept = _kept(tmp_path)
        assert len(kept) == len(set(kept))
        assert set(acknowledged) <= set(kept)
        begin = max(kept) + 1
    print(f"{_KILLS} kills, {len(acknowledged)} exchanges acknowledged, {len(kept)} kept")
