"""No file of the repository refers to anything outside of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.samples import ROOT

_IGNORED = {".git", ".venv", ".bythebook", ".hypothesis", "node_modules", "data"}
_OUTSIDE = re.compile(
    r"(?:\.\./)+shared\b"  # a folder beside the checkout
    r"|\bshared[/\\]data\b"
    r"|[\"']shared[\"'] */"
    r"|\b(?:ROOT|CHECKOUT)\.parent\b"
    r"|(?<![\w.~}-])/(?:work|root|home|Users)/(?!author\b)\w"  # homes of one machine
    r"|/tmp/bash_jobs"
)
_PARENTS = re.compile(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]")
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")


def _files() -> list[Path]:
    """Every tracked file; without git, every file that is not made by a command of ours."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        return [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not _IGNORED.intersection(path.relative_to(ROOT).parts)
        and not any(part.endswith("cache__") or part.endswith("_cache") for part in path.parts)
    ]


def _texts() -> Iterator[tuple[Path, str]]:
    for path in _files():
        if path.exists() and path != Path(__file__):
            try:
                yield path.relative_to(ROOT), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue  # a picture


def _outside(name: Path, text: str) -> list[str]:
    """What leads outside, by line."""
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for number, line in enumerate(text.splitlines(), 1)
        if _OUTSIDE.search(line)
    ]
    for levels in _PARENTS.findall(text):
        if int(levels) >= len(name.parts):
            found.append(f"{name}: parents[{levels}] is above the root")
    return found


def test_nothing_leads_outside() -> None:
    assert [told for name, text in _texts() for told in _outside(name, text)] == []


def _links(name: Path, text: str) -> Iterator[str]:
    for target in _LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if not target.startswith("/"):
            place = (ROOT / name).parent / target
            inside = place.resolve().is_relative_to(ROOT.resolve())
            if not (inside and place.exists()):
                yield f"{name} links to {target}"


def test_every_link_of_a_markdown_file_leads_to_a_file_of_the_repository() -> None:
    pages = [
        (name, text)
        for name, text in _texts()
        if name.suffix == ".md" and name.parts[0] != "examples"
    ]
    assert len(pages) > 10
    assert [told for name, text in pages for told in _links(name, text)] == []
