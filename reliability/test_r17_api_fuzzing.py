"""Requests that the OpenAPI document allows, and many that it does not, against a small book.

Every response must be declared, fit its schema and not be a server error.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.python import asgi
from tests.support.samples import read
from tools.make_docs import describe

from bythebook.book import Book
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from bythebook.server.contracts.registry import CONTRACTS
from bythebook.server.sse import MEDIA_TYPE
from reliability.rows import Rows

_AT_A_TIME = 10  # requests, each led to by one before it
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
        many = max(1, (steps - followed.total()) // _AT_A_TIME)
        run_state_machine_as_test(Following, settings=_settings(many, _AT_A_TIME))
    return followed


def test_whatever_is_asked_is_answered_as_declared(rows: Rows, book_folder: Path) -> None:
    row = rows.add(
        "R17",
        "Fuzz every operation of the API",
        requirement="no status of 500 or above, none that the contract does not declare",
    )
    each = math.ceil(rows.count(400, 8000) / len(_OPERATIONS))
    asked, breaches, followed = 0, [], Counter[str]()
    for path, method, mode in _OPERATIONS:
        try:
            with _served(book_folder) as served:
                asked += _ask(served, path, method, mode, each)
        except (Exception, BaseExceptionGroup) as breach:
            breaches.append(f"{method} {path} {mode.value}: {breach}")
    try:
        followed = _follow(book_folder, rows.count(100, 2500))
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
