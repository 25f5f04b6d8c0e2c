"""Real Jupyter Book and nbconvert, as oracles: build pages and read the ids that came out."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.samples import SAMPLE_BOOK

HOME = Path(os.environ.get("BYTHEBOOK_JUPYTER", Path.home() / ".cache" / "bythebook" / "jupyter"))


def cell(kind: str, source: str, name: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"tags": fields.pop("tags", []), **fields.pop("metadata", {})}
    own: dict[str, Any] = {"cell_type": kind, "metadata": metadata, "source": source}
    if kind == "code":
        own |= {"outputs": fields.pop("outputs", []), "execution_count": 1}
    return {**own, **({"id": name} if name else {}), **fields}


def notebook(cells: Sequence[Mapping[str, Any]], *, minor: int = 5) -> str:
    metadata = {"language_info": {"name": "python"}, "kernelspec": KERNEL}
    value = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(value, ensure_ascii=False)


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def build_book(folder: Path) -> Path:
    """Build a Jupyter Book and return the folder of its pages."""
    _run("jupyter-book", "build", str(folder))
    return folder / "_build" / "html"


def convert(file: Path) -> Path:
    """Make a page of a notebook with nbconvert."""
    _run("jupyter-nbconvert", "--to", "html", str(file))
    return file.with_suffix(".html")


def _run(tool: str, *arguments: str) -> None:
    if not (HOME / "installed.txt").exists():
        pytest.skip("needs Jupyter Book and nbconvert from PyPI: run sh .ci/install")
    path = f"{HOME / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [str(HOME / "bin" / tool), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def ids_of(page: Path) -> set[str]:
    """Return all ids of a page."""
    return set(map(unescape, re.findall(r'\sid="([^"]+)"', page.read_text(encoding="utf-8"))))


def stream(text: str | list[str], name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def sample_notebook() -> str:
    """Make a notebook of the sample book: its code blocks are code cells with outputs."""
    cells: list[dict[str, Any]] = []
    for file in sorted((SAMPLE_BOOK / "docs").rglob("*.md*")):
        pieces = file.read_text(encoding="utf-8").split("\n```")
        for number, piece in enumerate(pieces):
            if number % 2:
                code = piece.partition("\n")[2]
                cells.append(cell("code", code, f"c{len(cells)}", outputs=[stream(code[:80])]))
            else:
                cells.append(cell("markdown", piece, f"c{len(cells)}"))
    return notebook(cells)
