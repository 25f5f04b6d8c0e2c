"""Runs the proving ground and writes its figures into ``docs/proof.md`` (and ``docs/proof.json``).

python tools/prove.py [--full] [--at-once N] [R1 S4 …]    all rows, or these; without --full, the
                                                          quick counts

Rows that are not run keep the figures of their last run. Rows that are run at once take time from
one another: those whose bar is a time are better run alone.
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
KEPT = ROOT / "docs" / "proof.json"
PAGE = ROOT / "docs" / "proof.md"

HEAD = """# Proof

What was done to the product, how often, and what was lost. Each row is a test in
[`reliability/`](../reliability), which fails where its bar is not held. A quick count runs with
every change; the figures below come from

```sh
sh prove.sh --full     # all rows, at their full counts
sh prove.sh R12 S10    # some rows, quickly
```

on two cores, everything on one machine, no network. *R* rows are faults and load, *S* rows are
attacks; the threat model is in [SECURITY.md](../SECURITY.md). Rows marked *quick count* have not
been shown at their full counts by the runs that wrote this page. A row that is
not held says *no*.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run: R1, S4 …; all by default")
    parser.add_argument("--full", action="store_true", help="the full counts, for the page")
    parser.add_argument("--at-once", type=int, metavar="N", help="rows on N processes")
    given = parser.parse_args()
    files = [str(file) for row in given.rows for file in _files_of(row)] or [str(TESTS)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        environment = {**os.environ, "BYTHEBOOK_PROOF_LEDGER": str(ledger)}
        if given.full:
            environment["BYTHEBOOK_PROOF"] = "full"
        spread = ["-n", str(given.at_once), "--dist", "loadfile"] if given.at_once else []
        done = subprocess.run(  # noqa: S603 - our own tests
            [sys.executable, "-m", "pytest", *spread, *files],
            cwd=ROOT,
            env=environment,
            check=False,
        )
        lines = ledger.read_text("utf-8").splitlines() if ledger.exists() else []
    rows = _kept()
    today = datetime.now(UTC).date().isoformat()
    for row in map(json.loads, lines):
        rows[row["id"]] = {**row, "on": today}
    _write(rows)
    return done.returncode


def _files_of(row: str) -> list[Path]:
    kind, number = row[0].lower(), int(row[1:])
    found = sorted(TESTS.glob(f"test_{kind}{number:02}_*.py"))
    if not found:
        raise SystemExit(f"There is no row {row}.")
    return found


def _kept() -> dict[str, dict[str, Any]]:
    rows = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else []
    known = {
        re.sub(r"^test_([rs])0*(\d+)_.*", r"\1\2", f.stem).upper() for f in TESTS.glob("test_*")
    }
    return {row["id"]: row for row in rows if row["id"] in known}


def _write(rows: dict[str, dict[str, Any]]) -> None:
    ordered = sorted(rows.values(), key=lambda row: (row["id"][0], int(row["id"][1:])))
    KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    lines = [
        HEAD,
        "| row | what could fail | what was done | what was found | bar | held | took |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in ordered:
        held = "yes" if row["held"] else "**no**"
        count = "" if row["full"] else " (quick count)"
        cells = (row["id"], row["title"], row["done"] + count, row["found"], row["bar"], held)
        lines.append(f"| {' | '.join(cells)} | {row['seconds']:.0f} s, {row['on']} |")
    PAGE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
