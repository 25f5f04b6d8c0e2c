"""An acknowledged message survives a kill of its writer at any moment."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.types import Message, Role
from reliability.crash import started
from reliability.rows import Rows


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


class Kept:
    """What the file contains after a kill."""

    def __init__(self, home: Path) -> None:
        with sqlite3.connect(home / "bythebook.db") as database:
            self.damaged = database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
            rows = database.execute(
                "SELECT thread_id, seq, role, content FROM thread_messages ORDER BY thread_id, seq"
            ).fetchall()
        said = [int(row[3]) for row in rows if row[2] == "user"]
        self.numbers = set(said)
        self.doubled = len(said) - len(self.numbers)
        threads = [[row for row in rows if row[0] == name] for name in {row[0] for row in rows}]
        self.torn = sum(not _is_whole(mine) for mine in threads)


def _is_whole(mine: list[tuple[str, int, str, str]]) -> bool:
    """Return whether messages are numbered without gaps and each question is followed by its
    answer.
    """
    said = [int(row[3]) for row in mine]
    return (
        [row[1] for row in mine] == list(range(len(mine)))
        and [row[2] for row in mine] == ["user", "assistant"] * (len(mine) // 2)
        and said == sorted(said)
        and said[::2] == said[1::2]
    )


def test_kills_while_messages_are_written(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R6",
        "Kill the process that writes threads to SQLite",
        requirement="0 lost, 0 torn, 0 doubled messages; integrity_check ok",
    )
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, begin, kills = random.Random(seed), 0, rows.count(15, 100)
    acknowledged: set[int] = set()
    lost = torn = doubled = damaged = 0
    for _ in range(kills):
        ours, theirs = get_context("forkserver").Pipe(duplex=False)
        process = started(_talk, tmp_path, begin, theirs)
        theirs.close()
        assert ours.poll(60), "the first message was not acknowledged"
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.join(60)
        acknowledged.update(_drain(ours))
        ours.close()
        kept = Kept(tmp_path)
        lost += len(acknowledged - kept.numbers)
        torn, doubled, damaged = torn + kept.torn, doubled + kept.doubled, damaged + kept.damaged
        begin = max(kept.numbers) + 1
    row.record(
        f"{kills} SIGKILLs in WAL with synchronous FULL, {2 * len(acknowledged):,} messages "
        "acknowledged",
        f"{lost} lost, {torn} torn, {doubled} doubled; integrity_check ok {kills - damaged} times",
        passed=not (lost or torn or doubled or damaged),
    )
