"""What every test relies on: closed sockets, and real components that may not be missing in CI."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from reliability.rows import FULL, SKIPPED
from tests.support import parts
from tests.support.databases import postgres
from tests.support.parts import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_sessionfinish,
)
from tests.support.samples import SAMPLE_BOOK, small_book
from tests.support.servers import qdrant_cluster, qdrant_server

__all__ = [  # fixtures of every test, and hooks
    "postgres",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
    "qdrant_cluster",
    "qdrant_server",
]

_guard = {"closed": False}

# A busy machine is no counterexample; what must be fast is measured by tests/support/clock.py.
hypothesis_settings.register_profile("unhurried", deadline=None)
hypothesis_settings.load_profile("unhurried")


def _audit(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect" and _guard["closed"] and isinstance(args[1], tuple):
        raise RuntimeError("a unit test opens no sockets: mark it loopback or real, or use a fake")


sys.addaudithook(_audit)


# For a test and for each side of its fixtures; a row that hangs is told within minutes.
_LIMIT_S, _ROW_LIMIT_S = 600, 150


@contextmanager
def _limited(item: pytest.Item) -> Iterator[None]:
    """Fail what hangs by its name, again and again until it ends, so that nothing swallows it."""
    seconds = _LIMIT_S
    if item.get_closest_marker("row"):
        seconds = _ROW_LIMIT_S * (20 if FULL else 1)

    def fail(*_: object) -> None:
        faulthandler.dump_traceback(sys.__stderr__)
        pytest.fail(f"{item.name} does not end within {seconds} s")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with _limited(item):
        return (yield)


_rows: list[dict[str, Any]] = []  # of the reliability suite, from every test process


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _rows.extend(row for name, row in report.user_properties if name == "row")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write each reliability row with its figures, then what was run and what was not."""
    if _rows:
        terminalreporter.section("reliability")
    for row in sorted(_rows, key=lambda row: (row["id"][0], int(row["id"][1:]))):
        terminalreporter.write_line(line_of(row))
    parts.write_summary(terminalreporter, terminalreporter.config)


def line_of(row: dict[str, Any]) -> str:
    """Format a row for the summary; a skipped row has neither passed nor failed."""
    if row["skipped"]:
        return f"skipped {row['id']:<4} {row['title']}: {row['skipped']}"
    mark = "passed" if row["passed"] else "FAILED"
    return f"{mark:<7} {row['id']:<4} {row['title']}: {row['procedure']}: {row['result']}"


def pytest_configure(config: pytest.Config) -> None:
    """Started in the background, we ignore Ctrl+C, and so would every process that we start."""
    parts.pytest_configure(config)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _closed_sockets(request: pytest.FixtureRequest) -> Iterator[None]:
    opens = any(request.node.get_closest_marker(name) for name in ("real", "loopback"))
    _guard["closed"] = not opens
    yield
    _guard["closed"] = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        item.stash[SKIPPED] = report.longrepr[2].removeprefix("Skipped: ")
    must_run = os.environ.get("CI") and item.get_closest_marker("real")
    if must_run and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is real and was skipped in CI: {report.longrepr}"
    return report


@pytest.fixture
def book_folder(tmp_path: Path) -> Path:
    return small_book(tmp_path / "docs")


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample book, ingested once with the real model and the real engine."""
    import asyncio

    from bythebook.book import Book
    from bythebook.config.settings import load_settings
    from bythebook.ingestion.read_book import read_book

    home = tmp_path_factory.mktemp("sample") / "home"
    library = Book(load_settings({"home": home}, environ={}), new=True)
    book = read_book(SAMPLE_BOOK / "docs")
    asyncio.run(
        library.ingest(
            book,
        )
    )
    return home
