"""Several books are open in one process, and are asked and ingested at the same time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bythebook
from bythebook.errors import NotIngested

_FACTS = {
    "tea": ("How long is green tea steeped?", "Green tea is steeped for two minutes."),
    "kites": ("Why does a kite fly?", "A kite flies because the wind pushes it upwards."),
}


def _docs(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"# On {name}\n\n{_FACTS[name][1]}\n")
    return folder


@pytest.fixture
def homes(tmp_path: Path) -> dict[str, Path]:
    homes = {name: tmp_path / name for name in _FACTS}
    for name, home in homes.items():
        bythebook.ingest(_docs(tmp_path / "docs" / name, name), home=home)
    return homes


def _check(name: str, reply: bythebook.Reply) -> None:
    assert isinstance(reply.outcome, bythebook.Answer), name
    assert reply.outcome.text == f"{_FACTS[name][1]} [1]"


def test_two_books_are_asked_at_once_by_several_threads(homes: dict[str, Path]) -> None:
    with (
        bythebook.open_book(homes["tea"]) as tea,
        bythebook.open_book(homes["kites"]) as kites,
        ThreadPoolExecutor(4) as pool,
    ):
        books = {"tea": tea, "kites": kites}
        asked = [(name, pool.submit(books[name].ask, _FACTS[name][0])) for name in [*books] * 4]
        for name, reply in asked:
            _check(name, reply.result())
        found = {name: book.search(_FACTS[name][0]).hits for name, book in books.items()}
    assert [len(hits) for hits in found.values()] == [1, 1]


async def test_two_books_are_asked_at_once_on_one_event_loop(homes: dict[str, Path]) -> None:
    async with (
        bythebook.open_book(homes["tea"]) as tea,
        bythebook.open_book(homes["kites"]) as kites,
    ):
        books = {"tea": tea, "kites": kites}
        names = [*books] * 4

        async def ask(name: str) -> bythebook.Reply:
            return await books[name].ask(_FACTS[name][0])

        replies = await asyncio.gather(*map(ask, names))
    for name, reply in zip(names, replies, strict=True):
        _check(name, reply)


async def test_books_are_asked_while_one_of_them_is_ingested(
    homes: dict[str, Path], tmp_path: Path
) -> None:
    docs = tmp_path / "docs" / "tea"
    (docs / "more.md").write_text("# On pots\n\nA teapot holds one litre of water.\n")
    async with (
        bythebook.open_book(homes["tea"]) as tea,
        bythebook.open_book(homes["kites"]) as kites,
    ):
        ingest = asyncio.create_task(tea.ingest(docs))
        while not ingest.done():
            _check("tea", await tea.ask(_FACTS["tea"][0]))
            _check("kites", await kites.ask(_FACTS["kites"][0]))
        assert (await ingest).embedded == 1
        reply = await tea.ask("How much water does a teapot hold?")
    assert reply.outcome.text == "A teapot holds one litre of water. [1]"


def test_books_with_different_settings_do_not_affect_each_other(homes: dict[str, Path]) -> None:
    tea = bythebook.open_book(homes["tea"], index_fallback="none")
    with tea as one, bythebook.open_book(homes["kites"], model={"cache": False}) as other:
        _check("tea", one.ask(_FACTS["tea"][0]))
        _check("kites", other.ask(_FACTS["kites"][0]))
        with pytest.raises(NotIngested), bythebook.open_book(homes["tea"].parent / "none"):
            pass
        _check("tea", one.ask(_FACTS["tea"][0]))
