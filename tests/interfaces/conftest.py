"""The databases on which every store in SQL is tested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bythebook.providers.sql.engine import open_database, open_memory_database
from tests.support.databases import POSTGRES, address

PATIENT_S = 60.0  # the deadline of a store whose test is not about it: the machine may be busy


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    if request.param == "memory":
        engine = open_memory_database()
    else:
        engine = open_database(address(request.param, tmp_path, request), tmp_path)
    yield engine
    engine.dispose()
