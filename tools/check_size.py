"""Measure how much there is to read, and fail where it is more than its limit.

Usage: python -m tools.check_size [--quick] [-v]
--quick: without asking a book; -v: name what was counted
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "bythebook"
SAMPLE_BOOK = ROOT / "examples" / "physical-ai-book"

_OF_INGEST = ("bythebook.ingestion", "bythebook.sources")

# Asks the sample book as the command does; prints the modules that it imports, and those that it
# enters before the pipeline.
_ASK = """
import json, sys, threading
from bythebook.cli.main import run

entered, sys.argv = {}, ["bythebook", "ask", "What is a topic?", "--home", sys.argv[1], "--json"]

def enter(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if name == "bythebook.answering.pipeline" and frame.f_code.co_name == "respond":
        entered["end"] = True
    if event == "call" and name.startswith("bythebook.") and "end" not in entered:
        entered[name] = True

def ask():
    try:
        run()
    except SystemExit:
        pass

ask()  # imports everything
threading.setprofile(enter)
sys.setprofile(enter)
ask()
sys.setprofile(None)
del entered["end"]
print(json.dumps([sorted(entered), sorted(name for name in sys.modules if "bythebook" in name)]))
"""


@dataclass(frozen=True, slots=True)
class Measure:
    what: str
    found: int
    limit: int  # of today: lower it with each step towards the goal
    goal: int
    which: Iterable[str] = ()

    @property
    def holds(self) -> bool:
        return self.found <= self.limit


def measured_files() -> list[Measure]:
    source = _modules(SOURCE)
    formats = [module for folder in ROOT.glob("packages/*/src") for module in _modules(folder)]
    tests = [
        module
        for folder in (ROOT / "tests", ROOT / "reliability", *ROOT.glob("packages/*/tests"))
        for module in _modules(folder)
    ]
    longest_module = max(source, key=_length)
    functions = {
        f"{module.relative_to(ROOT)}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for module in source
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }
    longest_function = max(functions, key=lambda name: functions[name])
    folders = Counter(str(module.parent.relative_to(ROOT)) for module in source)
    fullest = max(folders, key=lambda folder: folders[folder])
    twice = [name for name, times in Counter(_public_classes(source)).items() if times > 1]
    return [
        Measure("lines in src/", sum(map(_length, source)), 38_720, 30_000),
        Measure("modules in src/", len(source), 240, 215),
        Measure("lines in packages/", sum(map(_length, formats)), 6_260, 5_500),
        Measure("lines of tests and reliability", sum(map(_length, tests)), 42_300, 34_000),
        Measure("modules in one folder", folders[fullest], 19, 19, [fullest]),
        Measure("longest module", _length(longest_module), 450, 450, [longest_module.name]),
        Measure("longest function", functions[longest_function], 60, 60, [longest_function]),
        Measure("public class names used twice", len(twice), 0, 0, twice),
    ]


def measured_question() -> list[Measure]:
    entered, imported = _asked()
    foreign = [name for name in imported if name.startswith(_OF_INGEST)]
    return [
        Measure("modules of ingest loaded by a question", len(foreign), 0, 0, foreign),
        Measure("modules entered before pipeline.respond", len(entered), 25, 12, entered),
    ]


def _modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _length(module: Path) -> int:
    return module.read_bytes().count(b"\n")


def _public_classes(modules: Iterable[Path]) -> Iterable[str]:
    """Yield the names of classes, except of entities, which have the names of their data model."""
    for module in modules:
        if module.parent == SOURCE / "contracts":
            continue
        for node in ast.parse(module.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def _asked() -> tuple[list[str], list[str]]:
    with tempfile.TemporaryDirectory() as home:
        command = [
            str(Path(sys.executable).with_name("bythebook")),
            "ingest",
            str(SAMPLE_BOOK),
            "--home",
            home,
        ]
        subprocess.run(command, check=True, capture_output=True)
        asked = subprocess.run(
            [sys.executable, "-c", _ASK, home], check=True, capture_output=True, text=True
        )
    entered, imported = json.loads(asked.stdout.splitlines()[-1])
    return entered, imported


def main() -> None:
    found = measured_files() + ([] if "--quick" in sys.argv else measured_question())
    for measure in found:
        state = "" if measure.holds else "  <- too much"
        goal = f"; goal {measure.goal:,}" if measure.goal < measure.limit else ""
        print(f"{measure.what:<42}{measure.found:>7,} of {measure.limit:,}{goal}{state}")
        if measure.which and ("-v" in sys.argv or not measure.holds):
            print("    " + "\n    ".join(measure.which))
    sys.exit(any(not measure.holds for measure in found))


if __name__ == "__main__":
    main()
