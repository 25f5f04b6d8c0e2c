"""Random requests and random histories give what the contract and a dict would give."""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.python import asgi
from tests.support.databases import Postgres
from tests.support.samples import read
from tools.make_docs import describe

from bythebook.book import Book
from bythebook.conversations.retention import Archiver
from bythebook.conversations.summary import summarise
from bythebook.errors import NotFound
from bythebook.interfaces.conversations import ANYONE
from bythebook.providers.sql.engine import open_database
from bythebook.providers.sql.threads import SqlThreads
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryQueryLog,
    MemoryThreads,
)
from bythebook.server.app import create_app
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.server.sse import MEDIA_TYPE
from bythebook.types import Message, Role
from reliability.rows import Row

_REQUESTS_OF_A_RUN = 10  # requests, each led to by one before it
_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
]


def _asked(operation: dict[str, Any]) -> list[GenerationMode]:
    """Yield requests that fit the schema and requests that do not; in a path any text fits."""
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    bendable = "requestBody" in operation or "query" in places
    return [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if bendable else [])]


_OPERATIONS = [
    (path, method, mode)
    for path, operations in describe()["paths"].items()
    for method, operation in operations.items()
    if operation["tags"][0] in CONTRACTS
    for mode in _asked(operation)
]


@dataclass(frozen=True)
class Served:
    schema: Any
    client: Any


@contextmanager
def _served(folder: Path) -> Iterator[Served]:
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
    )
    asyncio.run(library.ingest(read(folder)))
    # A new application for each operation: schemathesis stops it after one. And not from_asgi,
    # which would start it a second time.
    app = create_app(library)
    with asgi.get_client(app) as client:
        yield Served(schemathesis.openapi.from_dict(app.openapi()), client)


def _check(case: Any, response: Any) -> None:
    # Of a stream, the schema describes the whole, and would be held against each event.
    [kind] = response.headers.get("content-type", [""])
    whole = not kind.startswith(MEDIA_TYPE)
    schemas = [response_schema_conformance] if whole else []
    case.validate_response(response, checks=[*_CHECKS, *schemas])


def _settings(cases: int, steps: int = 1) -> settings:
    return settings(
        max_examples=cases,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def _ask(served: Served, path: str, method: str, mode: GenerationMode, cases: int) -> int:
    operation = served.schema[path][method]
    asked = 0

    @_settings(cases)
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        response = case.call(base_url=f"http://{asgi.HOST}", session=served.client)
        _check(case, response)

    ask()
    return asked


def _follow(folder: Path, steps: int) -> Counter[str]:
    """Follow the links from one response to the next; return which were followed."""
    followed: Counter[str] = Counter()
    with _served(folder) as served:
        described = served.schema.as_state_machine()

    class Following(described):  # type: ignore[misc, valid-type]
        """State machine with a fresh book each, so that links do not depend on other runs."""

        def setup(self) -> None:
            self._opened = ExitStack()
            self._client = self._opened.enter_context(_served(folder)).client

        def teardown(self) -> None:
            self._opened.close()

        def call(self, case: Any, **_: Any) -> Any:
            return case.call(base_url=f"http://{asgi.HOST}", session=self._client)

        def after_call(self, response: Any, case: Any) -> None:
            followed[f"{case.method} {case.path}"] += 1

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            _check(case, response)

    while followed.total() < steps:
        many = max(1, (steps - followed.total()) // _REQUESTS_OF_A_RUN)
        run_state_machine_as_test(Following, settings=_settings(many, _REQUESTS_OF_A_RUN))
    return followed


@pytest.mark.row(
    "R17",
    "Fuzz every operation of the API",
    "no status of 500 or above, none that the contract does not declare",
)
def test_whatever_is_asked_is_answered_as_declared(row: Row, book_folder: Path) -> None:
    """Requests that the OpenAPI document allows, and many that it does not, against a small book.

    Every response must be declared, fit its schema and not be a server error.
    """
    each = math.ceil(row.count(100, 8000) / len(_OPERATIONS))
    asked, breaches, followed = 0, [], Counter[str]()
    for path, method, mode in _OPERATIONS:
        try:
            with _served(book_folder) as served:
                asked += _ask(served, path, method, mode, each)
        except (Exception, BaseExceptionGroup) as breach:
            breaches.append(f"{method} {path} {mode.value}: {breach}")
    try:
        followed = _follow(book_folder, row.count(30, 2500))
    except (Exception, BaseExceptionGroup) as breach:
        breaches.append(f"following links: {breach}")
    undeclared = [
        f"{method} {path}"
        for path, method, _ in _OPERATIONS
        if not {"429", "503"} <= set(describe()["paths"][path][method]["responses"])
    ]
    row.record(
        f"{asked} requests to {len({each[:2] for each in _OPERATIONS})} operations, half of them "
        f"not as the schema wants them, and {followed.total()} along the links between "
        f"{len(followed)} of them",
        f"{len(breaches)} breaches; {len(undeclared)} operations without 429 and 503 declared"
        + "".join(f"; {each}" for each in [*breaches, *undeclared][:5]),
        passed=not breaches and not undeclared,
    )


T = TypeVar("T")

_STEPS_OF_A_RUN = 50
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
            max_examples=max(1, (steps - machine.steps) // _STEPS_OF_A_RUN),
            stateful_step_count=_STEPS_OF_A_RUN,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine, settings=many)
    return machine.steps


@pytest.mark.real
@pytest.mark.row(
    "R18",
    "Create, extend, read, archive, resume, delete and expire threads at random",
    "0 differences from a dict",
)
def test_threads_are_what_a_dict_would_be(row: Row, postgres: Postgres) -> None:
    class OnSqlite(Threads):
        pass

    class OnPostgres(Threads):
        url = postgres.new_database()

    steps, done, differences = row.count(100, 2000), [], []
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
