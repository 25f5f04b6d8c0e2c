"""Ingest and ask with hosted models."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import Loopback, Request, Step, chat, embeddings, refuse
from tests.support.samples import small_book

pytestmark = pytest.mark.loopback

_SAID = "A kettle boils water at 100 degrees Celsius."


def _models(request: Request) -> Iterable[Step]:
    if request.path.endswith("/chat/completions"):
        return chat(f"{_SAID} [1]", cost=(500, 20))
    return embeddings(request)


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(_models) as provider:
        yield provider


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("bythebook")), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"},
    )


@pytest.mark.slow
def test_ingest_and_ask_with_hosted_models(provider: Loopback, tmp_path: Path) -> None:
    small_book(tmp_path / "docs")
    (tmp_path / "bythebook.toml").write_text(
        'embedder = "openai:tiny@32"\nwriter = "openai:chatty"\n'
        f'[embedding]\nbase_url = "{provider.url}"\nprice_in = 0.02\n'
        f'[model]\nbase_url = "{provider.url}"\nprice_in = 1.0\nprice_out = 5.0\n'
    )
    plan = json.loads(_run(tmp_path, "ingest", "docs", "--dry-run", "--json").stdout)
    assert plan["to_embed"]["passages"] == plan["chunks_created"]
    assert plan["to_embed"]["cost_usd"] == pytest.approx(plan["to_embed"]["tokens"] * 2e-8)
    assert not provider.requests
    done = _run(tmp_path, "ingest", "docs")
    assert done.returncode == 0, done.stderr
    assert f"To embed: {plan['chunks_created']} passages, about " in done.stderr
    assert "tokens, about $0.00" in done.stderr
    question = "At how many degrees does a kettle boil water?"
    answer = _run(tmp_path, "ask", question, "--json")
    assert answer.returncode == 0, answer.stderr
    assert _SAID in answer.stdout
    assert provider.requests[-1].path == "/chat/completions"
    provider.script = lambda request: (
        refuse(401) if request.path.endswith("/chat/completions") else embeddings(request)
    )
    instead = _run(tmp_path, "ask", question)
    assert instead.returncode == 0, instead.stderr
    assert "100" in instead.stdout


def test_a_missing_api_key_is_one_message_with_a_hint(tmp_path: Path) -> None:
    small_book(tmp_path / "docs")
    done = _run(tmp_path, "ingest", "docs", "--embedder", "cohere:embed-english-v3.0")
    assert done.returncode == 3
    assert "cohere:embed-english-v3.0 needs a key. Export COHERE_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
