"""Run the reliability suite and write its figures into ``docs/operators/reliability.md``.

python reliability/report.py [--full] [--processes N] [R1 S4 …]

Without row ids all rows run; without ``--full`` with few repetitions. Rows that do not run keep the
figures of their last run. Rows that require a time should run alone: parallel rows slow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "reliability"
FIGURES = ROOT / "docs" / "operators" / "reliability.json"
PAGE = ROOT / "docs" / "operators" / "reliability.md"

HEAD = """# Reliability

The suite in [`reliability/`](../../reliability) breaks the product on purpose: crashes, damaged
files, failing servers, load (rows R), and attacks (rows S; the threat model is in
[SECURITY.md](../../SECURITY.md)). Each row is a test that fails if its requirement is not met. CI
runs every row with few repetitions. The figures on this page come from

```sh
sh reliability.sh --full     # all rows, with all repetitions
sh reliability.sh R12 S10    # some rows, with few repetitions
```

on two cores, with every component on one machine and no network.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run, such as R1 S4; default: all")
    parser.add_argument("--full", action="store_true", help="run with all repetitions")
    parser.add_argument("--processes", type=int, metavar="N", help="run rows on N processes")
    options = parser.parse_args()
    files = [str(file) for row in options.rows for file in _files_of(row)] or [str(TESTS)]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows"
        environment = {**os.environ, "BYTHEBOOK_RELIABILITY_ROWS": str(output)}
        if options.full:
            environment["BYTHEBOOK_RELIABILITY"] = "full"
        parallel = ["-n", str(options.processes), "--dist", "loadfile"] if options.processes else []
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", *parallel, *files],
            cwd=ROOT,
            env=environment,
            check=False,
        )
        lines = output.read_text("utf-8").splitlines() if output.exists() else []
    rows = _last_figures()
    today = datetime.now(UTC).date().isoformat()
    for row in map(json.loads, lines):
        rows[row["id"]] = {**row, "date": today}
    ordered = sorted(rows.values(), key=lambda row: (row["id"][0], int(row["id"][1:])))
    FIGURES.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page_of(ordered), "utf-8")
    return finished.returncode


def _files_of(row_id: str) -> list[Path]:
    kind, number = row_id[0].lower(), int(row_id[1:])
    files = sorted(TESTS.glob(f"test_{kind}{number:02}_*.py"))
    if not files:
        raise SystemExit(f"There is no row {row_id}.")
    return files


def _last_figures() -> dict[str, dict[str, Any]]:
    rows = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else []
    existing = {
        re.sub(r"^test_([rs])0*(\d+)_.*", r"\1\2", f.stem).upper() for f in TESTS.glob("test_*")
    }
    return {row["id"]: row for row in rows if row["id"] in existing}


def page_of(rows: list[dict[str, Any]]) -> str:
    """Return the page: one short table row per test, then the details of each."""
    lines = [HEAD, "| row | what is tried | passed |", "|---|---|---|"]
    lines += [
        f"| [{row['id']}](#{row['id'].lower()}) | {row['title']} | "
        f"{'yes' if row['passed'] else '**no**'} |"
        for row in rows
    ]
    for row in rows:
        (file,) = _files_of(row["id"])
        repetitions = "" if row["full"] else " (few repetitions)"
        lines += [
            f"\n### {row['id']}",
            f"\n{row['title']}. Test: [`{file.name}`](../../reliability/{file.name})\n",
            f"- Tried{repetitions}: {row['procedure']}",
            f"- Result: {row['result']}",
            f"- Required: {row['requirement']}",
            f"- Run on {row['date']}, {row['seconds']:.0f} s",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
