"""A book on a full disk is still read, by commands and by a server that starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.samples import small_book

from reliability.rows import Rows

_QUESTION = "At how many degrees does a kettle boil water?"
# Asks a server that starts on the full disk, in one process, and prints its health.
_SERVER = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from bythebook.config.settings import load_settings
from bythebook.server.access import open_access
from bythebook.server.app import create_app
from bythebook.book import Book
settings = load_settings({"home": Path(sys.argv[1])}, environ={})
with TestClient(create_app(Book(settings), settings, open_access(settings))) as client:
    print(client.post("/ask", json={"text": sys.argv[2]}).text)
    for _ in range(2):
        print(client.get("/health").text)
"""
_COMMAND = "from bythebook.cli.main import run; run()"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which fills the holes of files that are read."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if not made or made.returncode:
        pytest.skip("no file system can be mounted here: it needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _fill(disk: Path, free: int) -> None:
    (disk / "filling").unlink(missing_ok=True)
    size = shutil.disk_usage(disk).free - free
    with (disk / "filling").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
    )


def test_a_book_on_a_full_disk_is_read(rows: Rows, tmp_path: Path, small_disk: Path) -> None:
    row = rows.add(
        "R32",
        "Open a book on a full disk",
        requirement="0 crashes; every question answered; the log or the health tells the reason",
    )
    docs, made = small_book(tmp_path / "docs"), tmp_path / "made"
    assert _run(_COMMAND, "ingest", str(docs), "--home", str(made)).returncode == 0
    left, wrong = (0, 16 << 10, 1 << 20, 20 << 20), list[str]()
    for free in left:
        home = small_disk / "home"
        (small_disk / "filling").unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run(["cp", "-r", "--sparse=always", str(made), str(home)], check=True)
        _fill(small_disk, free)
        for done in (
            _run(_COMMAND, "ask", _QUESTION, "--home", str(home)),
            _run(_SERVER, str(home), _QUESTION),
        ):
            told = "disk is full" in done.stderr
            if done.returncode or "100 degrees" not in done.stdout or not told:
                wrong.append(f"{free} bytes: {done.returncode} {done.stderr[-300:]}")
    row.record(
        f"{len(left)} amounts of free space, from none to {max(left) >> 20} MB, on tmpfs; each "
        "with the command ask and with a server",
        f"{len(wrong)} of {2 * len(left)} without an answer or a reason"
        + "".join(f"; {text}" for text in wrong[:3]),
        passed=not wrong,
    )
