"""Everything that the OpenAPI allows, and much that it does not, asked of a small book.

500 cases by default; ``BYTHEBOOK_FUZZ_CASES=10000`` asks more. Whatever comes back is declared,
fits its schema, and is no failure of ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.python import asgi
from tools.make_docs import CONTRACTS, describe

from bythebook.library import Library
from bythebook.serve.app import create_app
from bythebook.serve.stream import MEDIA_TYPE

_CASES = int(os.environ.get("BYTHEBOOK_FUZZ_CASES", "500"))
_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
]


def _asked(operation: dict[str, Any]) -> list[GenerationMode]:
    """What fits the schema, and what does not; in a path, any text fits."""
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    bendable = "requestBody" in operation or "query" in places
    return [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if bendable else [])]


_OPERATIONS = [
    pytest.param(path, method, mode, id=f"{method} {path} {mode.value}")
    for path, operations in describe()["paths"].items()
    for method, operation in operations.items()
    if operation["tags"][0] in CONTRACTS
    for mode in _asked(operation)
]


@dataclass(frozen=True)
class Served:
    schema: Any
    client: Any


@pytest.fixture
def served(library: Library) -> Iterator[Served]:
    # A new application for each test: schemathesis stops it after one. And not from_asgi, which
    # would start it a second time.
    app = create_app(library)
    with asgi.get_client(app) as client:
        yield Served(schemathesis.openapi.from_dict(app.openapi()), client)


@pytest.mark.parametrize(("path", "method", "mode"), _OPERATIONS)
def test_whatever_is_asked_is_answered_as_declared(
    served: Served, path: str, method: str, mode: GenerationMode
) -> None:
    operation = served.schema[path][method]

    @settings(
        max_examples=max(1, _CASES // len(_OPERATIONS)),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = case.call(base_url=f"http://{asgi.HOST}", session=served.client)
        # Of a stream, the schema describes the whole, and would be held against each event.
        [kind] = response.headers.get("content-type", [""])
        whole = not kind.startswith(MEDIA_TYPE)
        schemas = [response_schema_conformance] if whole else []
        case.validate_response(response, checks=[*_CHECKS, *schemas])

    ask()
