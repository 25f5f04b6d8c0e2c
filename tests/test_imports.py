"""Importing the package loads little, and imports point one way."""

import json
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from bythebook.types import Answer, Citation, Hit, Reply
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


@pytest.mark.parametrize("kind", [Reply, Answer, Citation, Hit])
def test_every_field_of_a_reply_is_documented(kind: type) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    table = re.split(rf"\nAn? `{kind.__name__}`", page)[1].partition("\n\nA")[0]
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in table] == []
