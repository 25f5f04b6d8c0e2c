"""Run the reliability suite and write its figures into ``docs/operators/reliability.md``.

python reliability/report.py [--full] [--processes N] [R1 S4 …]

Without row ids all rows run; without ``--full`` with few repetitions. Rows that do not run keep the
figures of their last run. Rows that require a time should run alone: parallel rows slow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "operators" / "reliability.json"
PAGE = FIGURES.with_suffix(".md")

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
    rows = _last_figures()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows"
        environment = {**os.environ, "BYTHEBOOK_RELIABILITY_ROWS": str(output)}
        if options.full:
            environment["BYTHEBOOK_RELIABILITY"] = "full"
        command = [sys.executable, "-m", "pytest", "reliability"]
        command += ["-n", str(options.processes), "--dist", "load"] if options.processes else []
        command += ["--rows", ",".join(options.rows)] if options.rows else []
        finished = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        lines = output.read_text("utf-8").splitlines() if output.exists() else []
    if finished.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise SystemExit(f"There is no row {' '.join(options.rows)}.")
    today = datetime.now(UTC).date().isoformat()
    for row in map(json.loads, lines):
        rows[row["id"]] = {**row, "date": today}
    if not finished.returncode and not options.rows:  # all rows that there are have run
        rows = {name: row for name, row in rows.items() if row["date"] == today}
    ordered = sorted(rows.values(), key=lambda row: (row["id"][0], int(row["id"][1:])))
    FIGURES.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page_of(ordered), "utf-8")
    return finished.returncode


def _last_figures() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads(FIGURES.read_text("utf-8"))}


def page_of(rows: list[dict[str, Any]]) -> str:
    """Return the page: one short table row per test, then the details of each."""
    lines = [HEAD, "| row | what is tried | passed |", "|---|---|---|"]
    lines += [
        f"| [{row['id']}](#{row['id'].lower()}) | {row['title']} | "
        f"{'yes' if row['passed'] else '**no**'} |"
        for row in rows
    ]
    for row in rows:
        file, _, test = row["test"].partition("::")
        repetitions = "" if row["full"] else " (few repetitions)"
        lines += [
            f"\n### {row['id']}",
            f"\n{row['title']}. Test: `{test}` in [`{file}`](../../{file})\n",
            f"- Tried{repetitions}: {row['procedure']}",
            f"- Result: {row['result']}",
            f"- Required: {row['requirement']}",
            f"- Run on {row['date']}, {row['seconds']:.0f} s",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
