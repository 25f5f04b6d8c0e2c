"""Rules of the layout: unique class names, modules and folders of a readable size."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.support.samples import ROOT

PACKAGE = ROOT / "src" / "bythebook"
_MODULES = sorted(PACKAGE.rglob("*.py"))


def _public_classes(module: Path) -> list[str]:
    tree = ast.parse(module.read_text("utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for module in _MODULES:
        for name in _public_classes(module):
            places[name].append(str(module.relative_to(PACKAGE)))
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_module_has_more_than_450_lines() -> None:
    lengths = {
        str(module.relative_to(PACKAGE)): len(module.read_text("utf-8").splitlines())
        for module in _MODULES
    }
    assert {name: length for name, length in lengths.items() if length > 450} == {}


def test_no_folder_has_more_than_18_modules() -> None:
    folders = defaultdict(list)
    for module in _MODULES:
        if module.name != "__init__.py":
            folders[str(module.parent.relative_to(PACKAGE))].append(module.name)
    assert {name: len(modules) for name, modules in folders.items() if len(modules) > 18} == {}
