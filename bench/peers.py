"""Measures By the Book and the systems one would use instead of it, side by side.

    python bench/peers.py --work DIR [--only a,b] [--quick] [--fresh] [--data DIR]

The work folder keeps environments, the model and every measure: what is there is not made again.
Writes ``bench/peers/{table.md,results.json,plot.svg}`` and the section *Peers* of ``RESULTS.md``;
``--quick`` takes a few pages and questions, and writes below the work folder only.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

from peers import table
from peers.run import Bench, Figures, quick_material, whole_material
from peers.setting import CHECKOUT, PEERS, CannotRun, Peer, Workshop


def main() -> None:
    options = _options()
    workshop = Workshop(options.work)
    chosen = _chosen(options.only)
    workshop.prepare()
    results = workshop.folder / ("quick" if options.quick else "results")
    if options.fresh:
        shutil.rmtree(results, ignore_errors=True)
    material = (
        quick_material(options.data, workshop.folder / "quick-material")
        if options.quick
        else whole_material(options.data)
    )
    taken = _measure(chosen, workshop, Bench(workshop, material, results))
    lines = table.lines_of(PEERS, taken)
    target = results if options.quick or options.only else CHECKOUT / "bench/peers"
    _write(target, lines)
    if target != results:
        _write_section(CHECKOUT / "bench/RESULTS.md", table.markdown(lines))
    print(f"{target / 'table.md'} is written.", file=sys.stderr)
    sys.exit(len(taken) < len(chosen))


def _measure(chosen: list[Peer], workshop: Workshop, bench: Bench) -> dict[str, Figures]:
    """A system that fails is named and left out; the next run tries it again."""
    taken = {}
    for peer in chosen:
        try:
            workshop.install(peer)
            taken[peer.name] = bench.measure(peer)
        except CannotRun as reason:
            print(f"\n{peer.title} is left out. {reason}", file=sys.stderr)
    return taken


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--data", type=Path, default=CHECKOUT / "bench/data")
    return parser.parse_args()


def _chosen(only: str) -> list[Peer]:
    names = set(filter(None, only.split(",")))
    if unknown := names - {peer.name for peer in PEERS}:
        raise SystemExit(f"There is no system {', '.join(sorted(unknown))}.")
    return [peer for peer in PEERS if not names or peer.name in names]


def _write(target: Path, lines: list[table.Line]) -> None:
    (target / "table.md").write_text(
        "# Peers\n\n" + table.markdown(lines).replace("(peers/", "("), "utf-8"
    )
    (target / "results.json").write_text(json.dumps(table.summary(lines), indent=1) + "\n", "utf-8")
    (target / "plot.svg").write_text(table.svg(lines), "utf-8")


def _write_section(path: Path, text: str) -> None:
    before = re.sub(r"(?ms)^## Peers\n.*?(?=^## |\Z)", "", path.read_text("utf-8")).rstrip()
    path.write_text(f"{before}\n\n## Peers\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
