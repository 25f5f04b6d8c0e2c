"""The summary of a test run, and how it names reliability rows that were skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import line_of
from tests.support.samples import ROOT

_TESTS = """
import pytest

def test_plain(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.real
def test_real(): pytest.skip("needs a browser: sh .ci/install")
"""


def _pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder with our own conftest, in a process of its own."""
    (folder / "test_some.py").write_text(_TESTS, "utf-8")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), str(folder)]
    return subprocess.run(
        [
            *command,
            "-p",
            "conftest",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(folder),
            *arguments,
        ],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_default_run_names_what_it_leaves_out(tmp_path: Path) -> None:
    for processes in ("0", "2"):
        done = _pytest(tmp_path, "--part", "default", "-n", processes)
        assert done.returncode == 0, done.stdout
        assert "Run: the part 'default': 1 passed." in done.stdout
        assert "Not run: 1 tests (are slow):\n       1 test_some.py" in done.stdout
        assert "Not run: 1 tests (need a component from outside Python):" in done.stdout
        assert "Everything, with the real components: sh test.sh --all" in done.stdout


def test_the_rest_is_what_the_default_run_leaves_out(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "--part", "rest")
    assert done.returncode == 0, done.stdout
    assert "Run: the part 'rest': 1 passed." in done.stdout
    assert "Skipped: 1: needs a browser: sh .ci/install" in done.stdout


def test_all_of_it_runs_every_test_and_ci_skips_none(tmp_path: Path) -> None:
    done = _pytest(tmp_path, "--part", "all", CI="true")
    assert done.returncode == 1
    assert "Run: the part 'all': 2 passed, 1 failed." in done.stdout
    assert "is real and was skipped in CI" in done.stdout


def test_a_row_that_was_skipped_is_called_skipped() -> None:
    row = {
        "id": "R7",
        "title": "PostgreSQL is killed",
        "procedure": "",
        "result": "",
        "passed": False,
    }
    told = line_of({**row, "skipped": "needs PostgreSQL: sh .ci/install"})
    assert told == "skipped R7   PostgreSQL is killed: needs PostgreSQL: sh .ci/install"
    assert line_of({**row, "skipped": ""}).startswith("FAILED")
    assert line_of({**row, "passed": True, "skipped": ""}).startswith("passed")
