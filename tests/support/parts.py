"""Which tests run: the default part needs nothing but Python, the rest is named in the summary.

``sh test.sh`` passes ``--part default``; ``--all`` and ``--rest`` are the other two. Without
``--part``, pytest runs what it is asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

PARTS = ("default", "rest", "all")
RELIABILITY = Path(__file__).parents[2] / "reliability"
# The first one that a test has says why it is left out of the default run.
REASONS = {
    "reliability": "rows of the fault, load and attack suite",
    "real": "need a component from outside Python",
    "slow": "are slow",
}
_LEFT_OUT = pytest.StashKey[dict[str, dict[str, int]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=PARTS, help="which tests run: default, rest or all")
    parser.addoption("--rows", metavar="IDS", help="run only these rows of reliability: R1,S4")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LEFT_OUT] = {}
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_FromWorkers(config), "parts from workers")


def reason_of(item: pytest.Item) -> str | None:
    """Why a test is not in the default part."""
    return next((name for name in REASONS if item.get_closest_marker(name)), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if RELIABILITY in item.path.parents and not item.get_closest_marker("smoke"):
            item.add_marker("reliability")
    part = config.getoption("--part")
    if part not in ("default", "rest"):
        return
    dropped = [item for item in items if (reason_of(item) is None) == (part == "rest")]
    items[:] = [item for item in items if (reason_of(item) is None) != (part == "rest")]
    config.hook.pytest_deselected(items=dropped)
    if part == "default":
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for item in dropped:
            counts[str(reason_of(item))][item.nodeid.partition("::")[0]] += 1
        config.stash[_LEFT_OUT] = {name: dict(files) for name, files in counts.items()}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells the process that prints the summary what it left out."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[_LEFT_OUT]


class _FromWorkers:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_testnodedown(self, node: Any) -> None:
        found = getattr(node, "workeroutput", {}).get("left_out")
        if found:
            self._config.stash[_LEFT_OUT] = found


def write_summary(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was run, what was skipped and why, and which command runs everything."""
    part = config.getoption("--part")
    if part is None:
        return
    reporter.section("what was run")
    counts = {name: len(reporter.getreports(name)) for name in ("passed", "failed", "error")}
    told = ", ".join(
        f"{count} {name}" for name, count in counts.items() if count or name == "passed"
    )
    reporter.write_line(f"Run: the part {part!r}: {told}.")
    skipped = Counter(_reason(report) for report in reporter.getreports("skipped"))
    for reason, count in skipped.most_common():
        reporter.write_line(f"Skipped: {count}: {reason}")
    if part == "default":
        for name, files in sorted(config.stash[_LEFT_OUT].items()):
            reporter.write_line(f"Not run: {sum(files.values())} tests ({REASONS[name]}):")
            for file, count in sorted(files.items()):
                reporter.write_line(f"    {count:>4} {file}")
    if part != "all":
        reporter.write_line("Everything, with the real components: sh test.sh --all")


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr
    return (told[2] if isinstance(told, tuple) else str(told)).removeprefix("Skipped: ")
