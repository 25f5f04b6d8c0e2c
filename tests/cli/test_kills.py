"""The true command line, killed while it ingests with the real model."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.test_cli import run
from tests.samples import small_book

_KILLS = 10


def test_ingests_killed_at_random_instants_leave_a_book_that_answers(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance, docs, home = random.Random(seed), small_book(tmp_path / "docs"), tmp_path / "home"
    command = [
        *(str(Path(sys.executable).with_name("bythebook")), "ingest", str(docs)),
        *("--home", str(home)),
    ]
    began = time.monotonic()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    duration = time.monotonic() - began
    degrees = [100]
    for number in range(_KILLS):
        _say_degrees(docs, 200 + number)
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, duration))
        killed.kill()
        killed.wait(60)
        found = run("search", "At how many degrees does a kettle boil?", "--home", str(home))
        assert found.returncode == 0, found.stderr
        said = [value for value in [*degrees, 200 + number] if f"{value} degrees" in found.stdout]
        assert len(said) == 1, "the old book or the new one, and nothing of any other"
        degrees = said
    assert run("ingest", str(docs), "--home", str(home)).returncode == 0
    again = json.loads(run("ingest", str(docs), "--home", str(home), "--json").stdout)
    assert (again["embedded"], again["changed"], again["removed"]) == (0, 0, 0)
    found = run("search", "At how many degrees does a kettle boil?", "--home", str(home))
    assert f"{200 + _KILLS - 1} degrees" in found.stdout
    assert not list(home.rglob("*.unfinished*"))


def _say_degrees(docs: Path, degrees: int) -> None:
    (docs / "kettles.md").write_text(f"# Kettles\n\nThis kettle boils at {degrees} degrees.\n")
    intro = docs / "intro.md"
    intro.write_text(intro.read_text().replace("at 100 degrees Celsius", "when it is hot"))
