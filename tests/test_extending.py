"""The examples of docs/developers/extending.md and docs/reference/python.md run as written."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import types
from pathlib import Path

import pytest

import bythebook
from bythebook.errors import UnknownProvider
from bythebook.testing import fake_book
from bythebook.types import Question
from tests.support.samples import ROOT, SAMPLE_BOOK, small_book

_EXTENDING = (ROOT / "docs" / "developers" / "extending.md").read_text("utf-8")
_PYTHON = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
_QUESTION = "At how many degrees does a kettle boil water?"


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def _module(name: str) -> str:
    [code] = [block for block in _blocks(_EXTENDING, "python") if block.startswith(f"# {name}.py")]
    return code


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example packages in a folder of the import path, as pip would."""
    folder = tmp_path / "site-packages"
    info = folder / "kites-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kites\nVersion: 1.0\n")
    tables = "\n".join(_blocks(_EXTENDING, "toml"))
    entry_points = re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", tables).replace('"', "")
    missing = "\n[bythebook.embedders]\nlost = kites_lost:Embedder\n"
    merged = entry_points.replace("[bythebook.embedders]\n", missing.lstrip())
    (info / "entry_points.txt").write_text(merged)
    for name in ("kites", "textbook"):
        (folder / f"{name}.py").write_text(_module(name))
        monkeypatch.delitem(sys.modules, name, raising=False)
    (folder / "kites_lost.py").write_text("import not_installed\n")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_an_embedder_and_a_writer(tmp_path: Path) -> None:
    home, docs = tmp_path / "home", small_book(tmp_path / "docs")
    assert bythebook.ingest(docs, home=home, embedder="hash:words").embedded
    reply = bythebook.ask(_QUESTION, home=home, embedder="hash:words", writer="quote:best")
    assert isinstance(reply.outcome, bythebook.Answer)
    assert reply.outcome.text == "A kettle boils water at 100 degrees Celsius. [1]"
    assert reply.writer == "quote:best"


@pytest.mark.usefixtures("installed")
def test_an_unknown_provider_is_reported_with_the_names_of_all(tmp_path: Path) -> None:
    with pytest.raises(UnknownProvider, match=r"local, .*hash"):
        bythebook.ingest(tmp_path, home=tmp_path / "home", embedder="hush:words")
    with pytest.raises(UnknownProvider, match=r"not_installed.*pip install kites"):
        bythebook.ingest(tmp_path, home=tmp_path / "home", embedder="lost:words")


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_a_book_format(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "pages.txt").write_text("kettles.txt\n")
    (docs / "kettles.txt").write_text("Kettles\nA kettle boils water at 100 degrees Celsius.")
    result = bythebook.ingest(docs, home=tmp_path / "home", embedder="hash:words")
    assert (result.files_processed, result.chunks_created, result.errors) == (1, 1, ())


async def test_the_contract_of_the_page_shows_a_reply() -> None:
    contract = types.ModuleType("brief")
    sys.modules["brief"] = contract
    try:
        exec(compile(_module("brief"), "brief.py", "exec"), contract.__dict__)
        async with await fake_book() as book:
            reply = await book.ask(contract.read(contract.BriefRequest(question=_QUESTION)))
        assert contract.show(reply).is_answered
        assert contract.CONTRACT.name == "brief"
    finally:
        del sys.modules["brief"]


@pytest.mark.parametrize("number", range(len(_blocks(_PYTHON, "python"))))
def test_the_examples_of_the_python_page_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample_home: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(sample_home, tmp_path / ".bythebook")
    (tmp_path / "docs").symlink_to(SAMPLE_BOOK / "docs")
    exec(compile(_blocks(_PYTHON, "python")[number], "example.py", "exec"), {})


async def test_a_question_may_be_a_text() -> None:
    async with await fake_book() as book:
        assert (await book.ask(_QUESTION)).outcome == (await book.ask(Question(_QUESTION))).outcome
