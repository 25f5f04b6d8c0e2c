"""An ingest killed at a random moment loses, duplicates and leaves behind nothing."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.test_cli import run
from tests.support.samples import small_book

from reliability.crash import Bench, survived, write_edition
from reliability.crash_check import Witness, manifest, never_killed
from reliability.rows import Rows

_BAR = "0 lost, 0 torn, 0 duplicates, 0 orphans; the manifest of one that was never killed"
_QUESTION = "At how many degrees does a kettle boil?"


def test_kills_at_random_instants(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R1",
        "Kill an ingest at a random moment",
        requirement=(
            "0 acknowledged passages lost, 0 mixed books, 0 duplicates, 0 orphans; the "
            "same manifest as an ingest that was never killed"
        ),
    )
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, bench = random.Random(seed), Bench(tmp_path / "killed")
    bench.folder.mkdir()
    edition = kills = 0
    write_edition(bench.docs, edition)
    duration = _seconds_of(bench)
    witness = Witness(bench)
    while kills < rows.count(22, 90):
        # A whole new book, a new edition of it, or the killed one once more.
        edition += chance.choice((14, 1, 0))
        write_edition(bench.docs, edition)
        process = bench.start()
        process.join(chance.uniform(0, 1.1 * duration))
        process.kill()
        process.join(60)
        kills += process.exitcode != 0
        witness.look(finished=process.exitcode == 0)
    write_edition(bench.docs, edition + 1)
    assert bench.run()
    witness.look(finished=True)
    witness.look_around()
    equal = manifest(bench) == manifest(never_killed(bench, tmp_path / "in peace"))
    commands, wrong = _kill_commands(rows.count(3, 10), chance, tmp_path)
    row.record(
        f"{kills} SIGKILLs of the ingest and {commands} of the command line with its real model, "
        "most times with another edition",
        f"{witness.tally}, {wrong} wrong books from the command line; "
        f"{'an equal' if equal else 'another'} manifest",
        passed=witness.tally.clean and equal and not wrong,
    )


def _seconds_of(bench: Bench) -> float:
    process = bench.start()
    began = time.monotonic()
    assert survived(process)
    return time.monotonic() - began


def _kill_commands(kills: int, chance: random.Random, folder: Path) -> tuple[int, int]:
    """Kill the real command; return how often, and how often it left a wrong book."""
    docs, home = small_book(folder / "docs"), folder / "home"
    command = [
        *(str(Path(sys.executable).with_name("bythebook")), "ingest", str(docs)),
        *("--home", str(home)),
    ]
    began = time.monotonic()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    duration = time.monotonic() - began
    degrees, wrong = [100], 0
    for number in range(kills):
        _say_degrees(docs, 200 + number)
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, duration))
        killed.kill()
        killed.wait(60)
        found = run("search", _QUESTION, "--home", str(home))
        assert found.returncode == 0, found.stderr
        said = [value for value in [*degrees, 200 + number] if f"{value} degrees" in found.stdout]
        wrong += len(said) != 1  # the old book or the new one, and nothing of any other
        degrees = said
    assert run("ingest", str(docs), "--home", str(home)).returncode == 0
    again = json.loads(run("ingest", str(docs), "--home", str(home), "--json").stdout)
    wrong += (again["embedded"], again["changed"], again["removed"]) != (0, 0, 0)
    found = run("search", _QUESTION, "--home", str(home))
    wrong += f"{200 + kills - 1} degrees" not in found.stdout
    wrong += bool(list(home.rglob("*.unfinished*")))
    return kills, wrong


def _say_degrees(docs: Path, degrees: int) -> None:
    (docs / "kettles.md").write_text(f"# Kettles\n\nThis kettle boils at {degrees} degrees.\n")
    intro = docs / "intro.md"
    intro.write_text(intro.read_text().replace("at 100 degrees Celsius", "when it is hot"))
