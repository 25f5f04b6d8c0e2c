"""Random operations of two clients on threads, with restarts, give the same result as a dict."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.support.databases import Postgres

from bythebook.conversations.retention import Archiver
from bythebook.conversations.summary import summarise
from bythebook.errors import NotFound
from bythebook.interfaces.conversations import ANYONE
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import MemoryQueryLog
from bythebook.types import Message, Role
from reliability.rows import Rows

T = TypeVar("T")

_AT_A_TIME = 50
_START = datetime(2026, 1, 1, tzinfo=UTC)

_names = st.sampled_from(["t1", "t2", "t3"])
_owners = st.sampled_from(["a", "b", None])
_clients = st.integers(0, 1)


@dataclass
class Known:
    """What the model knows about one thread."""

    owner: str | None
    created: datetime
    updated: datetime
    said: list[str] = field(default_factory=list)
    archived: bool = False


class Threads(RuleBasedStateMachine):
    url: str | None = None
    steps = 0  # of all machines of a run

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.home = Path(tempfile.mkdtemp(prefix="bythebook-threads-"))
        self.now = _START
        self.model: dict[str, Known] = {}
        self.clients = [self._open() for _ in range(2)]
        for one in self._run(self.clients[0].list(owner=ANYONE, limit=99)):
            self._run(self.clients[0].delete(one.id, owner=ANYONE))

    def teardown(self) -> None:
        for client in self.clients:
            self._run(client.close())
        self.loop.close()
        shutil.rmtree(self.home)

    @rule(name=_names, owner=_owners, client=_clients, count=st.integers(1, 30))
    def append(self, name: str, owner: str | None, client: int, count: int) -> None:
        known = self.model.get(name)
        if known is not None and known.owner != owner:
            with pytest.raises(NotFound):
                self._run(
                    self.clients[client].append(
                        name, self._exchange("x"), owner=owner, summarise=summarise
                    )
                )
            return
        known = self.model.setdefault(name, Known(owner, self.now, self.now))
        for _ in range(count):
            content = f"{name} {len(known.said)}"
            self._run(
                self.clients[client].append(
                    name, self._exchange(content), owner=owner, summarise=summarise
                )
            )
            known.said += [content, content]
        known.updated, known.archived = self.now, False

    @rule(name=_names, owner=_owners)
    def both_append_at_once(self, name: str, owner: str | None) -> None:
        known = self.model.setdefault(name, Known(owner, self.now, self.now))

        async def both() -> None:
            exchange = self._exchange("pair")
            await asyncio.gather(
                *(
                    client.append(name, exchange, owner=known.owner, summarise=summarise)
                    for client in self.clients
                )
            )

        self._run(both())
        known.said += ["pair"] * 4
        known.updated, known.archived = self.now, False

    @rule(name=_names, owner=_owners, client=_clients)
    def delete(self, name: str, owner: str | None, client: int) -> None:
        mine = name in self.model and self.model[name].owner == owner
        assert self._run(self.clients[client].delete(name, owner=owner)) == mine
        if mine:
            del self.model[name]

    @rule(name=_names, owner=_owners, client=_clients)
    def read(self, name: str, owner: str | None, client: int) -> None:
        known = self.model.get(name)
        if known is not None and known.owner != owner:
            with pytest.raises(NotFound):
                self._run(self.clients[client].read(name, owner=owner))
            return
        thread = self._run(self.clients[client].read(name, owner=owner))
        assert (thread is None) == (known is None)

    @rule(minutes=st.sampled_from([1, 30, 61, 24 * 60]))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(client=_clients)
    def archive(self, client: int) -> None:
        archiver = Archiver(self.clients[client], MemoryQueryLog(), clock=lambda: self.now)
        idle = [
            known
            for known in self.model.values()
            if not known.archived and known.updated < self.now - timedelta(hours=1)
        ]
        assert self._run(archiver.archive()) == len(idle)
        for known in idle:
            known.archived = True

    @rule(client=_clients, days=st.integers(1, 3))
    def expire(self, client: int, days: int) -> None:
        archiver = Archiver(self.clients[client], MemoryQueryLog(), clock=lambda: self.now)
        age = timedelta(days=days)
        old = [name for name, known in self.model.items() if known.updated < self.now - age]
        assert self._run(archiver.purge(threads_older_than=age)).threads_purged == len(old)
        for name in old:
            del self.model[name]

    @rule(client=_clients)
    def restart(self, client: int) -> None:
        self._run(self.clients[client].close())
        self.clients[client] = self._open()

    @invariant()
    def the_model_is_right(self) -> None:
        type(self).steps += 1
        for client in self.clients:
            listed = self._run(client.list(owner=ANYONE, limit=99))
            assert {one.id for one in listed} == self.model.keys()
            times = [one.updated_at for one in listed]
            assert times == sorted(times, reverse=True)
            for one in listed:
                self._compare(client, one.id, self.model[one.id])

    def _compare(self, client: SqlThreads, name: str, known: Known) -> None:
        whole = self._run(client.read(name, owner=known.owner, whole=True))
        live = self._run(client.read(name, owner=known.owner))
        assert whole is not None
        assert live is not None
        assert [message.content for message in whole.messages] == known.said
        assert live.messages == whole.messages[-50:]
        assert live.earlier == max(0, len(known.said) - 50)
        assert {m.role for m in whole.messages[::2]} == {Role.USER}
        assert {m.role for m in whole.messages[1::2]} == {Role.ASSISTANT}
        assert (whole.created_at, whole.updated_at) == (known.created, known.updated)
        assert (whole.archived_at is not None) == known.archived
        assert (whole.topic_summary is not None) == (len(known.said) >= 10)

    def _open(self) -> SqlThreads:
        return SqlThreads(open_database(self.url, self.home), deadline_s=60)

    def _append(self, client: int, name: str, content: str, owner: str | None) -> None:
        exchange, store = self._exchange(content), self.clients[client]
        self._run(store.append(name, exchange, owner=owner, summarise=summarise))

    def _exchange(self, content: str) -> list[Message]:
        question = Message(Role.USER, content, self.now)
        return [question, Message(Role.ASSISTANT, content, self.now, 0.5)]

    def _run(self, work: Awaitable[T]) -> T:
        async def whole() -> T:
            return await work

        return self.loop.run_until_complete(whole())


def _taken(machine: type[Threads], steps: int) -> int:
    """Take at least this many random steps, each compared with the model."""
    while machine.steps < steps:
        many = settings(
            max_examples=max(1, (steps - machine.steps) // _AT_A_TIME),
            stateful_step_count=_AT_A_TIME,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine, settings=many)
    return machine.steps


@pytest.mark.real
def test_threads_are_what_a_dict_would_be(rows: Rows, postgres: Postgres) -> None:
    class OnSqlite(Threads):
        pass

    class OnPostgres(Threads):
        url = postgres.new_database()

    row = rows.add(
        "R18",
        ("Create, extend, read, archive, resume, delete and expire threads at random"),
        requirement="0 differences from a dict",
    )
    steps, done, differences = rows.count(300, 2000), [], []
    for machine in (OnSqlite, OnPostgres):
        try:
            done.append(_taken(machine, steps))
        except Exception as difference:
            differences.append(f"{machine.__name__}: {difference}")
    row.record(
        f"{' and '.join(map(str, done))} random steps of two clients with restarts, on SQLite and "
        "on PostgreSQL",
        f"{len(differences)} differences" + "".join(f"; {each}" for each in differences),
        passed=not differences,
    )
