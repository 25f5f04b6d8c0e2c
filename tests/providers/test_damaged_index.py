"""Whatever happens to a file of the embedded index: an error with its cure, or no harm at all."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bythebook.errors import IndexDamaged
from bythebook.index.ingest import whole
from bythebook.model import Question
from tests.index.killing import Bench, write_edition
from tests.samples import read

_QUESTION = Question("What does part 1 of page 3 say?")


def _flip(path: Path) -> None:
    """One bit, in the middle of what was written."""
    content = bytearray(path.read_bytes())
    content[len(content.rstrip(b"\0")) // 2] ^= 0x10
    path.write_bytes(content)


_DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": _flip,
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
}


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("damage"))
    write_edition(bench.docs, 0)
    asyncio.run(bench.library().ingest(read(bench.docs)))
    return bench


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
async def test_damage_to_any_file_is_named_or_harmless(
    ingested: Bench, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    expected = (await ingested.library().search(_QUESTION)).hits
    intact = _generation(ingested)
    files = [path.relative_to(intact) for path in intact.rglob("*") if path.is_file()]
    named = []
    for file in files:
        bench = _copy(ingested, tmp_path / "copy")
        damage(bench.home / "generations" / intact.name / file)
        try:
            assert (await bench.library().search(_QUESTION)).hits == expected, file
        except IndexDamaged as error:
            assert "Run the ingest again" in error.cure
            named.append(file)
    assert len(named) > 20


def _generation(bench: Bench) -> Path:
    """The served one: the one of words alone, which comes first, may still be there."""
    current = bench.catalog().current()
    assert current is not None
    return bench.home / "generations" / current.name


def _copy(bench: Bench, folder: Path) -> Bench:
    shutil.rmtree(folder, ignore_errors=True)
    # The engine reserves far more room than it fills: holes stay holes.
    subprocess.run(["cp", "-r", "--sparse=always", str(bench.folder), str(folder)], check=True)
    return Bench(folder)


async def test_an_ingest_replaces_what_is_damaged_and_embeds_nothing(
    ingested: Bench, tmp_path: Path
) -> None:
    bench = _copy(ingested, tmp_path / "copy")
    _flip(max(_generation(bench).rglob("*.mmap"), key=lambda path: path.stat().st_size))
    current = bench.catalog().current()
    assert current is not None
    assert not await whole(bench.shelf(), current)
    assert (await bench.library().ingest(read(bench.docs))).embedded == 0
    assert (await bench.library().search(_QUESTION)).hits
