"""The ``bythebook.toml`` of somebody else's book gets no secret of the environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.providers.loopback import Loopback, Request, Step, chat, embeddings
from tests.support.samples import small_book

from reliability.rows import Rows

pytestmark = pytest.mark.loopback

_SECRETS = {
    name: f"canary-{name.lower()}"
    for name in (
        *("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "COHERE_API_KEY"),
        *("QDRANT_API_KEY", "BYTHEBOOK_MODEL_KEY", "BYTHEBOOK_EMBEDDING_KEY", "PGPASSWORD"),
        *("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_WEBHOOK_SECRET"),
    )
}
_SECRETS["OPENAI_CUSTOM_HEADERS"] = "X-Gateway: canary-header\nAuthorization: canary-authorization"
_EMBEDDER = 'embedder = "openai:tiny@32"\n'
# The file of the book, and the variables that are not set.
_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "accounts": (_EMBEDDER + '[accounts]\nopenai_url = "{url}"\n', ()),
    "qdrant": ('[qdrant]\nurl = "{url}"\n', ()),
    "embedding": (_EMBEDDER + '[embedding]\nbase_url = "{url}"\n', ()),
    "embedding, no own key": (
        _EMBEDDER + '[embedding]\nbase_url = "{url}"\n',
        ("BYTHEBOOK_EMBEDDING_KEY",),
    ),
    "model": ('writer = "openai:x"\n[model]\nbase_url = "{url}"\n', ()),
    "agents, no own key": (
        'writer = "agents:x"\n[model]\nbase_url = "{url}"\n',
        ("BYTHEBOOK_MODEL_KEY",),
    ),
    "ollama": ('writer = "ollama:x"\n[accounts]\nollama_host = "{url}"\n', ()),
    "postgres": ('database_url = "postgresql://me@127.0.0.1:{port}/book?sslmode=disable"\n', ()),
    "in the address": ('[qdrant]\nurl = "http://me:x@127.0.0.1:{port}"\n', ()),
}


def _models(request: Request) -> Iterator[Step]:
    if request.path.endswith("/chat/completions"):
        return iter(chat("A kettle boils water at 100 degrees Celsius. [1]"))
    return embeddings(request)


def _run(folder: Path, unset: tuple[str, ...], *command: str) -> subprocess.CompletedProcess[str]:
    secrets = {name: value for name, value in _SECRETS.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", "from bythebook.cli.main import run; run()", *command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), **secrets},
    )


def test_no_secret_of_the_environment_goes_to_an_address_of_the_file(
    rows: Rows, tmp_path: Path
) -> None:
    row = rows.add(
        "S22",
        "A book brings a bythebook.toml that names addresses of its own",
        requirement="0 secrets of the environment sent to them; the error names the variable",
    )
    small_book(tmp_path / "docs")
    question = "At how many degrees does a kettle boil water?"
    wrong: list[str] = []
    with Loopback(_models) as evil:
        for name, (toml, unset) in _FILES.items():
            file = tmp_path / "bythebook.toml"
            file.unlink(missing_ok=True)
            home = ("--home", str(tmp_path / name))
            if "[model]" in toml or "writer" in toml:
                assert _run(tmp_path, unset, "ingest", "docs", *home).returncode == 0
                command = ("ask", question, *home, "--json")
            else:
                command = ("ingest", "docs", *home, "--json")
            file.write_text(toml.format(url=evil.url, port=evil.port))
            done = _run(tmp_path, unset, *command)
            shown = done.stdout + done.stderr
            if unset:  # the file's address gets the question, without any key
                fine = done.returncode == 0 and "settings from ./bythebook.toml: " in done.stderr
            else:
                fine = done.returncode == 2 and "error" in done.stdout
            if not fine or "canary" in shown:
                wrong.append(f"{name}: {done.returncode} {shown[-300:]}")
        sent = [str(request) for request in evil.requests]
    leaked = sum("canary" in request for request in sent)
    row.record(
        f"{len(_FILES)} such files with {len(_SECRETS)} secrets in the environment",
        f"{leaked} secrets in {len(sent)} requests to the addresses of the file; "
        f"{len(wrong)} commands without the right error" + "".join(f"; {text}" for text in wrong),
        passed=not leaked and not wrong and len(sent) >= 2,
    )
