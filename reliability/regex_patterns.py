"""List the regular expressions of a package, with their uses, by reading its code.

Also report patterns that are written so that they cannot be found this way.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ANYWHERE = frozenset(["search", "sub", "subn", "split", "findall", "finditer"])
_USES = ANYWHERE | {"match", "fullmatch"}
_STRICTEST = frozenset(["fullmatch", "sub"])  # where it is not written what becomes of it
_TYPES = frozenset(["Pattern", "Match"])

# By the function that makes them when it runs: how they are used, and examples.
Made = Mapping[str, tuple[str, Sequence[re.Pattern[str]]]]


@dataclass(frozen=True, slots=True)
class Expression:
    where: str
    pattern: re.Pattern[str]
    uses: frozenset[str]


@dataclass(frozen=True)
class _Module:
    name: str
    tree: ast.Module

    @property
    def names(self) -> dict[str, Any]:
        return vars(importlib.import_module(self.name))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def uses(self) -> frozenset[tuple[str, str]]:
        """Return which methods are called on which name."""
        return frozenset(
            (node.value.id, node.attr)
            for node in self.nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in _USES
        )

    @cached_property
    def imports(self) -> frozenset[tuple[str | None, str]]:
        return frozenset(
            (node.module, alias.name)
            for node in self.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        )


@dataclass(frozen=True, slots=True)
class _Call:
    node: ast.Call
    method: str
    place: str  # the function it stands in, or the name it is given
    name: str | None


def expressions(package: Path, made: Made) -> tuple[list[Expression], list[str]]:
    """Return all patterns, and complaints about hidden ones."""
    modules = list(_modules(package))
    found: list[Expression] = []
    hidden = [f"{module.name}: {what}" for module in modules for what in _disguises(module)]
    for module in modules:
        for call in _calls(module.tree, module.name):
            if _is_a_mere_word(call.node.args[0]):
                continue
            patterns: Sequence[re.Pattern[str]] = _written(call, module.names)
            uses = _uses(call, module, modules)
            if not patterns and call.place in made:
                use, patterns = made[call.place]
                uses = frozenset([use])
            found += [Expression(call.place, pattern, uses) for pattern in patterns]
            if not patterns:
                hidden.append(f"{call.place}: makes a pattern when it runs, and is not listed")
    gone = made.keys() - {each.where for each in found}
    return found, hidden + [f"{place}: is listed, and makes no pattern" for place in sorted(gone)]


def _modules(package: Path) -> Iterator[_Module]:
    for file in sorted(package.rglob("*.py")):
        name = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        yield _Module(name.removesuffix(".__init__"), ast.parse(file.read_text("utf-8")))


def _disguises(module: _Module) -> Iterator[str]:
    """Return ways to compile a pattern other than ``re.compile`` and its like."""
    known = _USES | _TYPES | {"compile", "escape", "error"}
    for node in module.nodes:
        match node:
            case ast.ImportFrom(module="re" | "regex"):
                hides = not _TYPES.issuperset(alias.name for alias in node.names)
            case ast.Import():
                hides = any(
                    alias.name == "regex" or (alias.name == "re" and alias.asname)
                    for alias in node.names
                )
            case ast.Attribute(value=ast.Name(id="re"), attr=what):
                hides = what not in known and not what.isupper()
            case _:
                hides = False
        if hides:
            yield ast.unparse(node)


def _calls(node: ast.AST, place: str, name: str | None = None) -> Iterator[_Call]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _calls(child, f"{place}.{child.name}")
            case ast.Assign(targets=[ast.Name(id=target)]):
                yield from _calls(child, f"{place}.{target}", target)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if (
                method in _USES | {"compile"}
            ):
                yield _Call(child, method, place, name)
                yield from _calls(child, place)
            case _:
                yield from _calls(child, place)


def _is_a_mere_word(pattern: ast.expr) -> bool:
    match pattern:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="escape")):
            return True
    return False


def _written(call: _Call, names: dict[str, Any]) -> list[re.Pattern[str]]:
    """Return the pattern if the module's own names are enough to compute it."""
    signature = inspect.signature(getattr(re, call.method))
    words = {word.arg: word.value for word in call.node.keywords if word.arg}
    given = signature.bind(*call.node.args, **words).arguments
    try:
        pattern, flags = (
            eval(compile(ast.Expression(part), call.place, "eval"), names) if part else 0
            for part in (given["pattern"], given.get("flags"))
        )
    except NameError:
        return []
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    return [re.compile(pattern, flags)]


def _uses(call: _Call, home: _Module, modules: Sequence[_Module]) -> frozenset[str]:
    """Return the uses in its own module and wherever its name is imported."""
    if call.method != "compile":
        return frozenset([call.method])
    users = [each for each in modules if each is home or (home.name, call.name) in each.imports]
    seen = {use for each in users for name, use in each.uses if name == call.name}
    return frozenset(seen) or _STRICTEST
