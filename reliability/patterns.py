"""List the regular expressions of a package with their uses, and make texts that are hard for each.

A hard text repeats a part of a text that matches, or a pair of the pattern's own signs, and ends so
that nothing matches: a pattern that can split the repeated part in several ways tries them all.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

_USES = ("search", "sub", "subn", "split", "findall", "finditer", "match", "fullmatch")
_STRICTEST = ("fullmatch", "sub")  # where it is not written what becomes of it

# By the function that makes them when it runs: examples, each with its use.
Made = Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]


@dataclass(frozen=True, slots=True)
class Expression:
    where: str
    pattern: re.Pattern[str]
    uses: tuple[str, ...]


# --- the patterns of a package -------------------------------------------------------------------


_DISGUISES = re.compile(
    r"import re as .*|import regex|from re import (?!Pattern\b|Match\b).*|re\.Scanner"
)


class _Call(NamedTuple):
    node: ast.Call
    method: str
    place: str  # the function it stands in, or the name it is given
    name: str | None


def expressions(package: Path, made: Made) -> tuple[list[Expression], list[str]]:
    """Return all patterns, and complaints about those that are not seen."""
    found: list[Expression] = []
    hidden: list[str] = []
    texts = {_module(file, package): file.read_text("utf-8") for file in package.rglob("*.py")}
    for module, text in texts.items():
        hidden += [f"{module}: {each}" for each in _DISGUISES.findall(text)]
        for call in _calls(ast.parse(text), module):
            if ast.unparse(call.node.args[0]).startswith("re.escape("):
                continue
            if pattern := _written(call, vars(importlib.import_module(module))):
                found.append(Expression(call.place, pattern, _uses(call, module, texts)))
            elif call.place in made:
                found += [Expression(call.place, each, (use,)) for use, each in made[call.place]]
            else:
                hidden.append(f"{call.place}: makes a pattern when it runs, and is not listed")
    gone = made.keys() - {each.where for each in found}
    return found, hidden + [f"{place}: is listed, and makes no pattern" for place in sorted(gone)]


def _module(file: Path, package: Path) -> str:
    name = ".".join(file.relative_to(package.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _calls(node: ast.AST, place: str, name: str | None = None) -> Iterator[_Call]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _calls(child, f"{place}.{child.name}")
            case ast.Assign(targets=[ast.Name(id=target)]):
                yield from _calls(child, f"{place}.{target}", target)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if method in (
                *_USES,
                "compile",
            ):
                yield _Call(child, method, place, name)
                yield from _calls(child, place)
            case _:
                yield from _calls(child, place)


def _written(call: _Call, names: dict[str, Any]) -> re.Pattern[str] | None:
    """Return the pattern if the module's own names are enough to compute it."""
    words = {word.arg: word.value for word in call.node.keywords if word.arg}
    signature = inspect.signature(getattr(re, call.method))
    arguments = signature.bind(*call.node.args, **words).arguments
    try:
        pattern, flags = (
            eval(compile(ast.Expression(part), call.place, "eval"), names) if part else 0
            for part in (arguments["pattern"], arguments.get("flags"))
        )
    except NameError:
        return None
    return re.compile(pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern, flags)


def _uses(call: _Call, module: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the uses in its own module and wherever its name is imported."""
    if call.method != "compile":
        return (call.method,)
    users = [
        text
        for name, text in texts.items()
        if name == module or re.search(rf"from {module} import [^#]*?\b{call.name}\b", text)
    ]
    used = re.compile(rf"\b{call.name}\.({'|'.join(_USES)})\b")
    return tuple(sorted({found for text in users for found in used.findall(text)})) or _STRICTEST


# --- hard texts ----------------------------------------------------------------------------------

_EXAMPLES = 6  # of what a pattern matches
_PARTS = 5  # signs that are repeated, at most
_SMALL = (*range(12, 64, 2), 100, 150, 225, 350, 500, 1_000)  # signs
_MEDIUM, _LARGE = (2_000, 8_000), (8_000, 16_000, 32_000)
_TOO_LONG_S = 1.0  # for any: a longer one may never end
_STEEPEST = 1.5  # the power of the size that the time grows with; a square's is 2
_MOMENTS = 3


class Attack(NamedTuple):
    head: str
    part: str
    tail: str

    def text(self, size: int) -> str:
        return self.head + self.part * (size // len(self.part) + 1) + self.tail


def attacks(pattern: re.Pattern[str], most: int) -> list[Attack]:
    """Return at most this many texts, chosen from all that there are."""
    known: dict[str, Attack] = {}
    for head, part in [*_parts(_matching(pattern)), *_pairs(pattern.pattern)]:
        for one in Attack(head, part, "\0"), Attack(head, part, ""), Attack(head, part, "a"):
            known.setdefault(_kind(one), one)
    return random.Random(14).sample(list(known.values()), min(most, len(known)))


def _parts(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for text, start, size in product(texts, range(30), range(1, _PARTS + 1)):
        if start + size <= len(text):
            yield from ((head, text[start : start + size]) for head in ("", text[:start], "a"))


def _pairs(pattern: str) -> Iterator[tuple[str, str]]:
    signs = dict.fromkeys(["a", " ", "1", "\n", *re.findall(r"[^\w\\?]", pattern)])
    yield from product(("", "a"), map("".join, permutations(list(signs)[:12], 2)))


def _kind(attack: Attack) -> str:
    """Return the same for texts that differ in letters, digits or spaces of one kind alone."""
    kind = re.sub(r"[^\W\d_]", "a", "\1".join(attack))
    return re.sub(r"\d", "0", kind)


def _matching(pattern: re.Pattern[str]) -> list[str]:
    """Return texts that match."""
    found: list[str] = []
    ascii_signs = st.characters(min_codepoint=9, max_codepoint=126)

    @settings(
        max_examples=_EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(pattern, fullmatch=True, alphabet=ascii_signs))
    def collect(text: str) -> None:
        found.append(text)

    try:
        collect()
    except HypothesisException:  # nothing in ASCII matches
        found += [" a0.-", "a, b"]
    return list(dict.fromkeys(found))


# --- measuring -----------------------------------------------------------------------------------


def fault(each: Expression, most: int) -> str | None:
    """Return the use and the text for which the time grows faster than the size."""
    for use, attack in product(each.uses, attacks(each.pattern, most)):
        steepness = _steepness(_work(each.pattern, use), attack)
        if steepness > _STEEPEST:
            said = f"{attack.head!r}, {attack.part!r} again and again, {attack.tail!r}"
            return f"{each.where}.{use}: power {steepness:.1f} by {said}"
    return None


def _work(pattern: re.Pattern[str], use: str) -> Callable[[str], object]:
    if use in ("sub", "subn"):
        return lambda text: pattern.sub("", text)
    if use == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    work: Callable[[str], object] = getattr(pattern, use)
    return work


def _steepness(work: Callable[[str], object], attack: Attack) -> float:
    """Return the exponent of time over size, the best of a few runs."""
    for size in _SMALL:  # a text may cost twice as much with each sign
        if _seconds(work, attack.text(size)) > _TOO_LONG_S:
            return math.inf
    steepness = _power(work, attack, *_MEDIUM)
    if steepness <= _STEEPEST:
        return steepness
    for size in _LARGE:
        if _seconds(work, attack.text(size)) > _TOO_LONG_S:
            return math.inf
    return min(_power(work, attack, _MEDIUM[0], _LARGE[-1]) for _ in range(_MOMENTS))


def _power(work: Callable[[str], object], attack: Attack, small: int, large: int) -> float:
    short, long = attack.text(small), attack.text(large)
    growth = _seconds(work, long, runs=2) / _seconds(work, short, runs=4)
    return math.log(growth, len(long) / len(short))


def _seconds(work: Callable[[str], object], text: str, runs: int = 1) -> float:
    """Return the CPU time of the best run.

    `tests.support.clock` would run the garbage collector for each of thousands of calls; a pattern
    leaves nothing to collect.
    """
    best = math.inf
    for _ in range(runs):
        start = time.process_time()
        work(text)
        best = min(best, time.process_time() - start)
    return max(best, 1e-6)
