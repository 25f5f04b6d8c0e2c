"""Every regular expression of the package takes time in proportion to what it reads.

They are listed from the code itself, so that a new one is tried with its first run. Each is driven
by texts made of its own letters: repeated alone, in pairs, after each of its beginnings and before
something that it cannot end with.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import bythebook
from tests.proof.ledger import Ledger

_USES = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_SHORT, _LONG = 4_000, 16_000
_QUICK_S = 0.002  # of the short text: what is quicker than this there is quick enough to go on
_GROWTH = 8  # times the time for four times the text; a square would be sixteen


@dataclass(frozen=True)
class Pattern:
    where: str
    pattern: re.Pattern[str]
    uses: frozenset[str]


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(bythebook.__path__, "bythebook."):
        if ".migrations" not in found.name:
            yield importlib.import_module(found.name)


def _patterns() -> Iterator[Pattern]:
    uses = _uses()
    for module in _modules():
        for name, value in vars(module).items():
            for place, pattern in _within(name, value):
                if isinstance(pattern.pattern, str):
                    used = uses.get(name, frozenset(["match"]))  # a table's, one by one
                    yield Pattern(f"{module.__name__}.{place}", pattern, used)
        yield from _written_in(module)


def _within(name: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, dict):
        yield from (each for key, part in value.items() for each in _within(f"{name}[{key}]", part))
    elif isinstance(value, (tuple, list)):
        yield from (
            each for at, part in enumerate(value) for each in _within(f"{name}[{at}]", part)
        )


def _tree(module: ModuleType) -> ast.Module:
    with open(str(module.__file__), encoding="utf-8") as source:  # noqa: PTH123
        return ast.parse(source.read())


def _uses() -> dict[str, frozenset[str]]:
    """How the patterns of each name are used, wherever they are imported to."""
    seen: dict[str, set[str]] = {}
    for module in _modules():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and node.attr in _USES:
                name = ast.unparse(node.value).partition("[")[0].rpartition(".")[2]
                seen.setdefault(name, set()).add(node.attr)
    return {name: frozenset(used) for name, used in seen.items()}


def _written_in(module: ModuleType) -> Iterator[Pattern]:
    """Those that are written where they are used: ``re.sub("…", …)``."""
    for node in ast.walk(_tree(module)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) == "re" and node.func.attr in _USES:
            written = node.args[0]
            if isinstance(written, ast.Constant) and isinstance(written.value, str):
                pattern = re.compile(written.value)
                where = f"{module.__name__}:{node.lineno}"
                yield Pattern(where, pattern, frozenset([node.func.attr]))


# --- texts that would be hard for it --------------------------------------------------------------


def _letters(pattern: str, flags: int) -> list[str]:
    """A sign for each that the pattern names, and its words."""
    found: dict[str, None] = {}

    def walk(items: Any) -> None:
        word = ""
        for code, value in items:
            if code is codes.LITERAL:
                word += chr(value)
                continue
            _keep(word)
            word = ""
            if code in (codes.IN, codes.NOT_LITERAL):
                _keep_set(value if code is codes.IN else [])
            elif code is codes.BRANCH:
                for branch in value[1]:
                    walk(branch)
            elif code is codes.SUBPATTERN:
                walk(value[3])
            elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
                walk(value[2])
            elif code in (codes.ASSERT, codes.ASSERT_NOT):
                walk(value[1])
            elif code is codes.ATOMIC_GROUP:
                walk(value)
        _keep(word)

    def _keep(word: str) -> None:
        for part in {word, word[:1], word[-1:]} - {""}:
            found.setdefault(part)

    def _keep_set(members: Any) -> None:
        for code, value in members[:6]:
            if code is codes.LITERAL:
                found.setdefault(chr(value))
            elif code is codes.RANGE:
                found.setdefault(chr(value[0]))

    walk(parser.parse(pattern, flags))
    for usual in ("a", " ", "0", "\n", "-"):
        found.setdefault(usual)
    return list(found)


_SIGNS = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_SPACE: "a",
}


def _beginnings(pattern: str, flags: int, most: int) -> list[str]:
    """Texts that the pattern takes for its own so far: nothing, its first part, its first two …"""

    def example(code: Any, value: Any) -> str:  # noqa: PLR0911 - a case for each
        if code is codes.LITERAL:
            return chr(value)
        if code is codes.ANY:
            return "a"
        if code is codes.IN:
            first = value[0]
            if first[0] is codes.RANGE:
                return chr(first[1][0])
            return chr(first[1]) if first[0] is codes.LITERAL else _SIGNS.get(first[1], "a")
        if code is codes.BRANCH:
            return whole(value[1][0])
        if code is codes.SUBPATTERN:
            return whole(value[3])
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            return whole(value[2]) * value[0]
        return whole(value) if code is codes.ATOMIC_GROUP else ""

    def whole(items: Any) -> str:
        return "".join(example(code, value) for code, value in items)

    found = {"": None}
    so_far = ""
    for code, value in parser.parse(pattern, flags):
        so_far += example(code, value)
        found.setdefault(so_far)
    every = list(found)
    return every[:: -(-len(every) // most)]


def _pumps(letters: list[str], most: int) -> list[str]:
    """Letters alone, then pairs of them: as many as there is time for."""
    pairs = [one + two for one, two in product(letters, letters) if one != two]
    step = max(1, len(pairs) // max(1, most - len(letters)))
    return [*letters, *pairs[::step]][:most]


def _seconds(work: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        work(text)
        best = min(best, time.process_time() - began)
        if best < _QUICK_S:
            break
    return best


def _work(pattern: re.Pattern[str], use: str) -> Callable[[str], object]:
    if use in ("sub", "subn"):
        return lambda text: pattern.sub("", text)
    if use == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    work: Callable[[str], object] = getattr(pattern, use)
    return work


def _grows(work: Callable[[str], object], head: str, pump: str, tail: str) -> str | None:
    """What is wrong with how its time grows; short texts first, in case it explodes."""
    for signs in (24, 100):
        if _seconds(work, head + pump * (signs // len(pump) + 1) + tail) > 0.05:
            return f"{signs} signs of {pump!r} take more than 50 ms"
    short = _seconds(work, head + pump * (_SHORT // len(pump)) + tail)
    if short < _QUICK_S:
        return None
    for _ in range(3):  # the calmest of three moments
        long = _seconds(work, head + pump * (_LONG // len(pump)) + tail)
        if long <= _GROWTH * short:
            return None
    return f"{_LONG // _SHORT} times {pump!r} take {long / short:.0f} times as long"


def _faults(each: Pattern, most: int, tails: Sequence[str]) -> Iterator[str]:
    letters = _letters(each.pattern.pattern, each.pattern.flags)
    heads = _beginnings(each.pattern.pattern, each.pattern.flags, 4)
    works = [_work(each.pattern, use) for use in sorted(each.uses)]
    for work, head, pump, tail in product(works, heads, _pumps(letters, most), tails):
        wrong = _grows(work, head, pump, tail)
        if wrong:
            yield f"{each.where}: {wrong}"
            return


def test_every_pattern_is_linear(proof: Ledger) -> None:
    row = proof("S14", "A text makes a pattern run for ever (ReDoS)", bar="0 patterns above linear")
    known = {(each.pattern.pattern, each.pattern.flags): each for each in _patterns()}
    most, tails = proof.times(30, 80), ("\0", "\n!", "")[: proof.times(1, 3)]
    faults = [fault for each in known.values() for fault in _faults(each, most, tails)]
    row.enter(
        f"{len(known)} regular expressions, as the code lists them, each by up to "
        f"{most * 4 * len(tails)} texts of its own letters, after its own beginnings, of "
        f"{_SHORT:,} and {_LONG:,} signs, in each of the ways it is used",
        "; ".join(faults) or "0 above linear",
        held=not faults and len(known) > 50,
    )
