"""Readers of one very long page do not keep others from asking."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.support.samples import small_book

from bythebook.ingestion.read_book import read_book
from reliability.client import Reader, library_on, open_for_readers
from reliability.rows import Rows

pytestmark = pytest.mark.real

_READERS = 8
_ASKED_S, _SHOWN_S = 5.0, 60.0


async def test_one_long_page_and_eight_readers(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R31",
        "Read one very long page at once",
        requirement="questions asked meanwhile are answered within 5 s, the pages within 60 s",
    )
    items = rows.count(60_000, 120_000)
    folder = small_book(tmp_path / "docs")
    lines = "\n".join(f"- screw {n}" for n in range(items))
    (folder / "crate.md").write_text(f"# Crate\n\n{lines}\n", "utf-8")
    library = library_on(f"sqlite:///{tmp_path}/book.db", tmp_path, deadline_s=30)
    await library.ingest(read_book(folder))
    async with open_for_readers(library) as client:
        asking = Reader(client)
        await asking.query()  # the first one warms up
        began = time.monotonic()
        pages = [
            asyncio.create_task(client.get("/reader/page?path=docs/crate")) for _ in range(_READERS)
        ]
        spent = []
        while not all(page.done() for page in pages) or not spent:
            asked = time.monotonic()
            await asking.query()
            spent.append(time.monotonic() - asked)
        shown = [(await page).json()["html"].count("<li") for page in pages]
        seconds = time.monotonic() - began
    await library.close()
    row.record(
        f"{_READERS} readers of a page with {items} items, beside one who asks",
        f"{shown.count(items)} of {_READERS} pages complete after {seconds:.1f} s; {asking.asked} "
        f"questions, {asking.failed + asking.wrong} wrong, the slowest took {max(spent):.1f} s",
        passed=shown.count(items) == _READERS
        and not asking.failed + asking.wrong
        and seconds < _SHOWN_S
        and max(spent) < _ASKED_S,
    )
