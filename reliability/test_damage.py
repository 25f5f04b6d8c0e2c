"""Damage to any file of a home, or a full disk, gives an error with a hint or does no harm."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.command import ask, run
from tests.support.samples import read, small_book

from bythebook.book import Book
from bythebook.errors import BookError, IndexDamaged, StoreFailed
from bythebook.ingestion.ingest import find_manifest
from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.flat_index import FlatGenerationStore
from bythebook.providers.testing import FakeEmbedder, MemoryThreads
from bythebook.types import Passage, Question
from reliability.crash import ORIGIN, Bench, write_edition
from reliability.rows import FULL, Row

_QUESTION = Question("What does part 1 of page 3 say?")
_KETTLE = "At how many degrees does a kettle boil water?"

Damage = Callable[[Path], object]
Hits = tuple[tuple[Passage, float], ...]


def _flip(path: Path) -> None:
    """Flip one bit in the middle of the file."""
    content = bytearray(path.read_bytes())
    if content:
        content[len(content.rstrip(b"\0")) // 2] ^= 0x10
    path.write_bytes(content)


_DAMAGE: dict[str, Damage] = {
    "deleted": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "flipped": _flip,
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"more"),
}


@dataclass
class Count:
    cases: int = 0
    named: int = 0  # with a typed error
    silent: list[str] = field(default_factory=list)  # another book, or an error that is not ours
    mended: int = 0
    unmended: list[str] = field(default_factory=list)

    def mend(self, what: str, whole: bool) -> None:
        self.mended += whole
        self.unmended += [] if whole else [what]


@pytest.mark.real  # a disk of its own, to be full
@pytest.mark.row(
    "R3",
    "Damage or delete files; fill or break the disk",
    "a typed error or no effect, never another book; repaired by `check --repair` or by an "
    "ingest that embeds nothing",
)
def test_damage(row: Row, tmp_path: Path) -> None:
    count, bench = Count(), Bench(tmp_path / "whole")
    bench.folder.mkdir()
    write_edition(bench.docs, 0)
    bench.ingest()
    expected = asyncio.run(_hits(bench))
    _damage_the_index(bench, expected, row.count(1, 100), count)
    _damage_the_manifest(bench, count)
    _damage_the_database(bench, expected, row.count(20, 100), count)
    _fail_while_writing(bench, row.count(3, 30), count)
    full = _fill_the_disk(tmp_path / "disk", count)
    _damage_under_the_command(tmp_path / "command", row.count(1, len(_COMMAND_DAMAGE)), count)
    row.record(
        f"{count.cases} times a file of index, manifest or database was {', '.join(_DAMAGE)}, or a "
        f"disk failed; {full} full disks",
        f"{count.named} named, {len(count.silent)} silent; {count.mended} mended, "
        f"{len(count.unmended)} not {' '.join((*count.silent, *count.unmended))}".rstrip(),
        passed=not (count.silent or count.unmended) and count.named > 20,
    )


async def _hits(bench: Bench) -> Hits:
    library = bench.library()
    try:
        found = await library.search(_QUESTION)
        return tuple((hit.passage, hit.score) for hit in found.hits)
    finally:
        await library.close()


def _copy(bench: Bench, folder: Path) -> Bench:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bench.folder, folder)
    return Bench(folder)


def _generation(bench: Bench) -> Path:
    """Return the served generation; the keyword-only one that precedes it may still exist."""
    current = bench.catalog().current()
    assert current is not None
    return bench.home / "generations" / current.name


# --- the index -------------------------------------------------------------------------------


def _damage_the_index(bench: Bench, expected: Hits, mendings: int, count: Count) -> None:
    """Damage every file in every way (or every other way) and repair some of each."""
    intact = _generation(bench)
    files = [path.relative_to(intact) for path in intact.rglob("*") if path.is_file()]
    for turn, (way, damage) in enumerate(_DAMAGE.items()):
        named: list[Path] = []
        for file in files if FULL else files[turn % 2 :: 2]:
            copy = _copy(bench, bench.folder.with_name("copy"))
            damage(copy.home / "generations" / intact.name / file)
            count.cases += 1
            try:
                if asyncio.run(_hits(copy)) != expected:
                    count.silent.append(f"{way} {file}")
            except IndexDamaged as error:
                assert "Run the ingest again" in error.hint
                count.named += 1
                named.append(file)
                if len(named) <= mendings:
                    count.mend(
                        f"{way} {file}", asyncio.run(_mends(copy, expected, turn + len(named)))
                    )


async def _mends(bench: Bench, expected: Hits, turn: int) -> bool:
    """Return whether a repair or an ingest, in turn, repairs it without embedding anything."""
    library, before = bench.library(), bench.embedded.read()
    if turn % 2:
        await library.ingesting().repair_index()
    else:
        await library.ingest(read(bench.docs), origin=ORIGIN)
    report = await library.ingesting().check_index(read(bench.docs))
    await library.close()
    return (
        report.index_is_right
        and report.is_current
        and await _hits(bench) == expected
        and bench.embedded.read() == before
    )


# --- the manifest, the database ---------------------------------------------------------------


def _damage_the_manifest(bench: Bench, count: Count) -> None:
    """The source manifest may be lost but must never be wrong."""
    file = bench.home / "sources.json"
    whole, intact = file.read_bytes(), find_manifest(bench.home, ORIGIN)
    assert intact is not None
    for way, damage in _DAMAGE.items():
        damage(file)
        _note_manifest(bench, way, intact, count)
        file.write_bytes(whole)
    for bit in random.Random(7).sample(range(8 * len(whole)), 200):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
        _note_manifest(bench, f"bit {bit}", intact, count)
    file.write_bytes(whole)


def _note_manifest(bench: Bench, what: str, intact: object, count: Count) -> None:
    count.cases += 1
    found = find_manifest(bench.home, ORIGIN)
    count.named += found is None
    if found not in (None, intact):
        count.silent.append(f"manifest: {what}")


def _damage_the_database(bench: Bench, expected: Hits, flips: int, count: Count) -> None:
    """Only a typed error or the right answer may result."""
    chance = random.Random(7)
    ways: list[tuple[str, Damage]] = list(_DAMAGE.items())
    ways += [
        (f"flipped at random {n}", lambda path: _flip_some(path, chance)) for n in range(flips)
    ]
    for way, damage in ways:
        copy = _copy(bench, bench.folder.with_name("copy"))
        for name in ("bythebook.db-wal", "bythebook.db-shm"):
            (copy.home / name).unlink(missing_ok=True)
        damage(copy.home / "bythebook.db")
        count.cases += 1
        try:
            if asyncio.run(_hits(copy)) != expected:
                count.silent.append(f"database: {way}")
            asyncio.run(copy.library().ingesting().check_index(None))
        except BookError:
            count.named += 1
        except Exception as error:
            count.silent.append(f"database: {way}: {error!r}")


def _flip_some(path: Path, chance: random.Random) -> None:
    """Flip a few bits in a page, like a bad sector."""
    content = bytearray(path.read_bytes())
    page = chance.randrange(len(content) // 4096)
    for _ in range(8):
        content[4096 * page + chance.randrange(4096)] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


# --- a disk that fails or is full ------------------------------------------------------------


class _FailingStore(FlatGenerationStore):
    """Store whose disk fails with an I/O error at the n-th entry."""

    def fail_at(self, entry: int) -> _FailingStore:
        self._entry = entry
        return self

    async def publish(self, generation: str, entries: Iterable[IndexedPassage]) -> int:
        return await super().publish(generation, self._until_it_fails(entries))

    def _until_it_fails(self, entries: Iterable[IndexedPassage]) -> Iterator[IndexedPassage]:
        for number, entry in enumerate(entries):
            if number == self._entry:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            yield entry


def _fail_while_writing(bench: Bench, times: int, count: Count) -> None:
    for number in range(times):
        copy = _copy(bench, bench.folder.with_name("copy"))
        before = asyncio.run(_hits(copy))
        write_edition(copy.docs, 14)
        shelf = _FailingStore(copy.home / "generations", dimension=64).fail_at(number * 2)
        library = Book(
            embedder=FakeEmbedder(),
            store=shelf,
            catalog=copy.catalog(),
            threads=MemoryThreads(),
        )
        count.cases += 1
        try:
            asyncio.run(library.ingest(read(copy.docs), origin=ORIGIN))
            count.silent.append(f"entry {number} failed")
        except StoreFailed:
            count.named += 1
        if asyncio.run(_hits(copy)) != before:
            count.silent.append(f"another book after entry {number} failed")
        copy.ingest()
        report = asyncio.run(copy.library().ingesting().check_index(read(copy.docs)))
        left = list(copy.home.rglob("*.unfinished"))
        count.mend("failed disk", report.index_is_right and report.is_current and not left)


def _fill_the_disk(folder: Path, count: Count) -> int:
    """Fill the disk while the database stores vectors and while the index is written."""
    docs, sizes = small_book(folder / "docs"), ("100k", "500k", "1m")
    for number in range(10):
        words = " ".join(f"Sentence {number} {n} of a long page." for n in range(30))
        (docs / f"extra{number}.md").write_text(f"# Extra {number}\n\n{words}\n")
    disk = folder / "disk"
    disk.mkdir()
    for size in sizes:
        script = (
            f"mount -t tmpfs -o size={size} none {disk} && "
            f"exec {Path(sys.executable).with_name('bythebook')} ingest {docs} --home {disk}/home"
        )
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False
        )
        said = done.stderr.splitlines()
        one_sentence = "bythebook: The disk is full. Free space where the home folder is."
        if done.returncode == 3 and said[-1] == one_sentence and "Traceback" not in done.stderr:
            count.named += 1
        else:
            count.silent.append(f"disk of {size}: {done.stderr}")
    return len(sizes)


# --- the command -----------------------------------------------------------------------------


def _truncate_vectors(home: Path) -> None:
    for path in home.glob("generations/*/passages"):
        os.truncate(path, 100)


_COMMAND_DAMAGE: tuple[Damage, ...] = (
    _truncate_vectors,
    lambda home: shutil.rmtree(home / "generations"),
    lambda home: [path.unlink() for path in home.glob("generations/*/records")],
    lambda home: [path.write_text("") for path in home.glob("generations/*/**/*.json")],
    lambda home: os.truncate(home / "bythebook.db", 8192),
    lambda home: (home / "bythebook.db").unlink(),
)


def _damage_under_the_command(folder: Path, ways: int, count: Count) -> None:
    """The command reports it in one sentence with a hint, and the hint works."""
    docs, made = small_book(folder / "docs"), folder / "made"
    assert run("ingest", str(docs), "--home", str(made)).returncode == 0
    for number, damage in enumerate(_COMMAND_DAMAGE[:ways]):
        home = folder / str(number)
        shutil.copytree(made, home)
        damage(home)
        count.cases += 1
        broken = ask(home, _KETTLE)
        named = broken.returncode in (2, 3) and len(broken.stderr.splitlines()) == 1
        count.named += named
        count.silent += [] if named else [f"command {number}: {broken.stdout}{broken.stderr}"]
        if "home" in broken.stderr:
            home.rename(home.with_name(f"{number} away"))
            cured = run("ingest", str(docs), "--home", str(home))
        elif number % 2:
            cured = run("ingest", str(docs), "--home", str(home))
        else:
            cured = run("check", "index", "--repair", "--home", str(home))
        again = ask(home, _KETTLE)
        count.mend(
            f"command {number}: {cured.stdout}{cured.stderr}",
            (cured.returncode, again.returncode) == (0, 0) and "100 degrees" in again.stdout,
        )


_KETTLE = "At how many degrees does a kettle boil water?"
# Asks a server that starts on the full disk, in one process, and prints its health.
_SERVER = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from bythebook.config.settings import load_settings
from bythebook.server.access import open_access
from bythebook.server.app import create_app
from bythebook.book import Book
settings = load_settings({"home": Path(sys.argv[1])}, environ={})
with TestClient(create_app(Book(settings), settings, open_access(settings))) as client:
    print(client.post("/ask", json={"text": sys.argv[2]}).text)
    for _ in range(2):
        print(client.get("/health").text)
"""
_COMMAND = "from bythebook.cli.main import run; run()"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which fills the holes of files that are read."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if not made or made.returncode:
        pytest.skip("no file system can be mounted here: it needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _fill(disk: Path, free: int) -> None:
    (disk / "filling").unlink(missing_ok=True)
    size = shutil.disk_usage(disk).free - free
    with (disk / "filling").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def _run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)},
    )


@pytest.mark.row(
    "R32",
    "Open a book on a full disk",
    "0 crashes; every question answered; the log or the health tells the reason",
)
def test_a_book_on_a_full_disk_is_read(row: Row, tmp_path: Path, small_disk: Path) -> None:
    docs, made = small_book(tmp_path / "docs"), tmp_path / "made"
    assert _run(_COMMAND, "ingest", str(docs), "--home", str(made)).returncode == 0
    left, wrong = (0, 4 << 10, 16 << 10), list[str]()
    for free in left:
        home = small_disk / "home"
        (small_disk / "filling").unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run(["cp", "-r", "--sparse=always", str(made), str(home)], check=True)
        _fill(small_disk, free)
        for done in (
            _run(_COMMAND, "ask", _KETTLE, "--home", str(home)),
            _run(_SERVER, str(home), _KETTLE),
        ):
            told = "disk is full" in done.stderr
            if done.returncode or "100 degrees" not in done.stdout or not told:
                wrong.append(f"{free} bytes: {done.returncode} {done.stderr[-300:]}")
    row.record(
        f"{len(left)} amounts of free space, from none to {max(left) >> 10} kB, on tmpfs; each "
        "with the command ask and with a server",
        f"{len(wrong)} of {2 * len(left)} without an answer or a reason"
        + "".join(f"; {text}" for text in wrong[:3]),
        passed=not wrong,
    )
