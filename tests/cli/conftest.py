"""The small book, ingested once for all tests that only read it."""

from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.samples import small_book


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    home = folder / "home"
    done = run("ingest", str(small_book(folder / "docs")), "--home", str(home))
    assert done.returncode == 0, done.stderr
    return home
