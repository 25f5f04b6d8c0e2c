"""Importing the package loads little, and imports point one way."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.samples import ROOT

_HEAVY = {
    *(
        "numpy",
        "onnxruntime",
        "tokenizers",
        "qdrant_client",
        "sqlalchemy",
        "alembic",
        "fastapi",
    ),
    *("starlette", "granian", "pydantic", "markdown_it", "ruamel", "rich", "huggingface_hub"),
}


def _loaded(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_the_package_loads_nothing_but_itself() -> None:
    assert _loaded("import bythebook") & (_HEAVY | {"typer", "asyncio"}) == set()


def test_help_loads_no_pipeline_package_and_no_provider() -> None:
    code = (
        "import contextlib, io, sys\n"
        "sys.argv = ['bythebook', '--help']\n"
        "from bythebook.cli.main import run\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): run()"
    )
    assert _loaded(code) & _HEAVY == set()


def test_types_and_interfaces_load_no_vendor() -> None:
    assert (
        _loaded("import bythebook.interfaces.store, bythebook.interfaces.access, bythebook.errors")
        & _HEAVY
        == set()
    )


def test_every_public_name_exists_and_is_documented() -> None:
    import bythebook

    documented = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    for name in bythebook.__all__:
        assert getattr(bythebook, name) is not None
        assert f"`{name}" in documented


def test_a_vendor_import_in_a_pipeline_package_fails_the_import_rules(tmp_path: Path) -> None:
    """The rules of pyproject.toml really bite: a planted import fails them."""
    import shutil

    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert _lint(tmp_path).returncode == 0
    rank = tmp_path / "src" / "bythebook" / "retrieval" / "diversity.py"
    rank.write_text(rank.read_text() + "\nimport qdrant_client  # noqa\n")
    broken = _lint(tmp_path)
    assert broken.returncode == 1
    assert "qdrant_client" in broken.stdout


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
