"""Any notebook file can be read: as a page, or as a problem that names the reason."""

from __future__ import annotations

import copy
import json
import random
import time
from pathlib import Path
from typing import Any

from tests.sources.jupyter import sample_notebook

from bythebook.ingestion.pages import split_page
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import Files
from bythebook_formats.notebook.source import NotebookSource
from reliability.rows import Rows

_WRONG: list[Any] = [
    None, True, -1, 1e308, 10**30, "", "text", "\ud83d", "\0", "\x1b[31m", [], {}, [[]], [None],
    {"text/plain": 1}, {"data": {"text/html": [1]}}, ["a", 5], [{"cell_type": "markdown"}], "# a\n",
]  # fmt: skip
_DEEP = [opening * 100_000 for opening in ("[", '{"a":', '[{"cells":', '{"cells":[')]
_SECONDS, _CELLS = 60, 12


def test_any_notebook(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R29",
        "Mutate notebooks: bytes, JSON values, nesting, encodings",
        requirement=(
            "each is a page without lost words or a problem; "
            f"2,000 in < {_SECONDS} s of a processor"
        ),
    )
    dice, files = random.Random(27), rows.count(2_000, 20_000)
    seeds = _seeds()
    pages, failed, start = 0, list[str](), time.process_time()
    for number in range(files):
        content = _mutated(dice.choice(seeds), dice, number)
        try:
            pages += _read(tmp_path / "book.ipynb", content)
        except Exception as error:
            failed.append(f"{error!r}: {content[:2000]!r}")
    seconds = (time.process_time() - start) * 2_000 / files
    print("\n".join(failed[:20]))
    row.record(
        f"{files:,} mutated notebooks",
        f"{pages:,} pages, {files - pages - len(failed):,} problems, {len(failed)} failures; "
        f"{seconds:.0f} s of a processor for 2,000",
        passed=not failed and seconds < _SECONDS,
    )


def _seeds() -> list[dict[str, Any]]:
    """Return short notebooks in both formats."""
    value = json.loads(sample_notebook())
    cells = value["cells"]
    short = [{**value, "cells": cells[at : at + _CELLS]} for at in range(0, len(cells), _CELLS)]
    old = [
        {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [_old(cell) for cell in one]}]}
        for one in (notebook["cells"] for notebook in short[:5])
    ]
    return [*short, *old]


def _old(cell: dict[str, Any]) -> dict[str, Any]:
    outputs = [{"output_type": "pyout", "text": "1", "png": "aa"}]
    return {**cell, "input": cell["source"], "language": "python", "outputs": outputs}


def _read(file: Path, content: bytes) -> bool:
    """Return whether the file is a page; raise if it is neither that nor a problem."""
    file.write_bytes(content)
    problems: list[Problem] = []
    pages = list(NotebookSource().read(file, Files(Path("/")), SiteOptions(), problems.append))
    for page in pages:
        parsed = split_page(page)
        assert not parsed.missing, parsed.missing
        for passage in parsed.passages:
            passage.text.encode()
    assert pages or any(problem.fatal for problem in problems)
    return bool(pages)


def _mutated(seed: dict[str, Any], dice: random.Random, number: int) -> bytes:
    if number % 400 == 0:
        return dice.choice(_DEEP).encode()
    value = json.loads(json.dumps(seed))
    for _ in range(dice.randrange(4)):
        _swap(value, dice)
    content = bytearray(json.dumps(value, ensure_ascii=dice.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    ))  # fmt: skip
    match dice.randrange(8):
        case 0:
            for _ in range(dice.randrange(1, 6)):
                content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        case 1:
            del content[dice.randrange(len(content)) :]
        case 2:
            return bytes(content).decode("utf-8", "replace").encode(
                dice.choice(["utf-16", "latin-1", "utf-8-sig", "utf-32"]), "replace"
            )  # fmt: skip
        case 3:
            return bytes(content).replace(b'"nbformat": 4', b'"nbformat": 4' + b"0" * 9000, 1)
        case 4:
            at = dice.randrange(len(content))
            content[at:at] = content[: dice.randrange(200)]
        case _:
            pass
    return bytes(content)


def _swap(value: Any, dice: random.Random) -> None:
    """Replace one value somewhere in the notebook, mostly in its cells, by one of another type."""
    value = value.get("cells", value) if dice.random() < 0.8 else value
    while isinstance(value, (dict, list)) and value:
        key: Any = (
            dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        )
        inner = value[key]
        if not (isinstance(inner, (dict, list)) and inner) or dice.random() < 0.02:
            value[key] = copy.deepcopy(dice.choice(_WRONG))
            return
        value = inner
