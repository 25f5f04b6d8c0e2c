"""The command line with the index on a real Qdrant server."""

import json
from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.servers import running_server

pytestmark = pytest.mark.real


def test_ingest_and_ask_with_the_index_on_a_server(book_folder: Path, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    question = ("ask", "At what temperature does a kettle boil water?", *home)
    with running_server(tmp_path / "qdrant", api_key="open-sesame") as node:
        there = {"QDRANT_URL": node.url, "QDRANT_API_KEY": "open-sesame"}
        first = run("ingest", str(book_folder), *home, "--json", **there)
        assert json.loads(first.stdout)["embedded"] > 2, first.stderr
        assert not (tmp_path / "home" / "generations").exists()
        asked = run(*question, **there)
        assert (asked.returncode, "100 degrees" in asked.stdout) == (0, True), asked.stderr

        (book_folder / "intro.md").write_text("# Kettles\n\nA kettle boils water at 212 degrees.\n")
        second = run("ingest", str(book_folder), *home, "--json", **there)
        assert json.loads(second.stdout)["embedded"] == 1, second.stderr
        assert "212 degrees" in run(*question, **there).stdout

        refused = run(*question, **{**there, "QDRANT_API_KEY": "wrong-word"})
        assert (refused.returncode, "QDRANT_API_KEY" in refused.stderr) == (0, True)
        node.kill()
        gone = run(*question, **there)
    assert (gone.returncode, "cannot be reached" in gone.stderr) == (0, True)
    for answered in (refused, gone):
        assert "212 degrees" in answered.stdout, "the catalog has the words"
    for said in (refused.stderr, gone.stderr):
        assert len(said.splitlines()) == 1, "one sentence, no stack trace"
        assert not any(secret in said for secret in ("sesame", "wrong-word", node.url))


def test_moving_a_book_to_a_server_embeds_nothing_again(book_folder: Path, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    assert run("ingest", str(book_folder), *home).returncode == 0
    with running_server(tmp_path / "qdrant") as node:
        early = run("ask", "What is a kite?", *home, QDRANT_URL=node.url)
        assert (early.returncode, "Run the ingest again" in early.stderr) == (3, True)
        moved = run("ingest", str(book_folder), *home, "--json", QDRANT_URL=node.url)
        assert json.loads(moved.stdout)["embedded"] == 0, moved.stderr
        asked = run("ask", "Why does a kite fly?", *home, QDRANT_URL=node.url)
    assert asked.returncode == 0, asked.stderr
