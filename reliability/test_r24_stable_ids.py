"""The same bytes give the same passages on every machine."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.samples import SAMPLE_BOOK

from reliability.rows import Rows

_READ = """
import json, sys
from pathlib import Path
from bythebook.ingestion.read_book import read_book
from bythebook.text.passage_records import to_record
book = read_book(Path(sys.argv[1]))
print(json.dumps([to_record(passage) for passage in book.passages], sort_keys=True))
"""


def _copy(docs: Path, to: Path, *, ending: bytes) -> Path:
    for file in docs.rglob("*"):
        if file.is_file():
            copy = to / file.relative_to(docs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", ending)
            copy.write_bytes(content if file.suffix in (".md", ".mdx") else file.read_bytes())
    return to


def _records(docs: Path, seed: int) -> list[dict[str, object]]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(docs)], capture_output=True, check=True, env=environment
    )
    records: list[dict[str, object]] = json.loads(done.stdout)
    # Offsets into the source move with its line ends; nothing that is searched or shown does.
    return [{name: value for name, value in r.items() if name != "source"} for r in records]


@pytest.mark.smoke
def test_same_bytes_same_ids(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "R24",
        "Compute the ids of one book in different processes and places",
        requirement="0 differences",
    )
    prints = set()
    seeds = range(rows.count(2, 10))
    for ending, name in ((b"\n", "unix"), (b"\r\n", "windows")):
        docs = _copy(SAMPLE_BOOK / "docs", tmp_path / name / "docs", ending=ending)
        for seed in seeds:
            records = _records(docs, seed)
            prints.add(hashlib.sha256(json.dumps(records).encode()).hexdigest())
    row.record(
        f"{len(records)} passages read in {2 * len(seeds)} processes, with other hash seeds, "
        "checkouts and line ends",
        f"{len(prints) - 1} differences",
        passed=len(prints) == 1,
    )
