"""Build texts that are slow for a regular expression, from the pattern's own parts.

Each text has a prefix, a part to repeat and a suffix that does not match. The repeated part is a
word on which the pattern can continue in two ways, both without end: a backtracking engine then
needs at least quadratic time. Whether it does is measured; lookarounds and possessive parts are
ignored here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations, product
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CATEGORIES: dict[Any, Callable[[str], object]] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda sign: not sign.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda sign: not sign.isspace(),
    codes.CATEGORY_WORD: lambda sign: sign.isalnum() or sign == "_",
    codes.CATEGORY_NOT_WORD: lambda sign: not (sign.isalnum() or sign == "_"),
}
_BEGINNINGS, _SIGNS = 4, 12  # of each pattern, where it is tried blindly
_USUAL = "a Z0\n-_.é\0"
_FEW = 8  # a part that may come more often than this may as well come for ever
_BUDGET = 3_000  # steps of looking for one word
_ALL_BUDGET = 40_000  # … and for all of a pattern
_GAPS = 3


class Attack(NamedTuple):
    head: str
    pump: str
    tail: str

    def text(self, size: int) -> str:
        return self.head + self.pump * (size // len(self.pump) + 1) + self.tail


def attacks(pattern: re.Pattern[str], *, anywhere: bool) -> Iterator[Attack]:
    """Return texts for a pattern that is tried anywhere, or only at the start of the text."""
    yield from dict.fromkeys(_Machine.of(pattern, anywhere=anywhere).attacks())


def blind_attacks(pattern: re.Pattern[str]) -> Iterator[Attack]:
    """Return texts of the pattern's characters and pairs of them, after some of its prefixes."""
    machine = _Machine.of(pattern, anywhere=False)
    heads = list(dict.fromkeys(["", *machine.ways.values()]))
    some = heads[:: -(-len(heads) // _BEGINNINGS)]
    signs = machine.signs[:_SIGNS]
    words = [*signs, *map("".join, permutations(signs, 2))]
    yield from (Attack(*parts) for parts in product(some, words, ("\0", "a")))


@dataclass(slots=True)
class _Leaf:
    """One position of the pattern that consumes a character."""

    takes: Callable[[str], object]
    follows: int  # the knot behind it


@dataclass
class _Machine:
    """Automaton: leaves consume a character, knots join them without consuming any."""

    ignoring_case: bool
    leaves: list[_Leaf] = field(default_factory=list)
    knots: list[list[int]] = field(default_factory=list)  # to other knots
    at: list[list[int]] = field(default_factory=list)  # the leaves of a knot
    start: int = 0
    mentioned: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, pattern: re.Pattern[str], *, anywhere: bool) -> _Machine:
        machine = cls(bool(pattern.flags & re.IGNORECASE))
        first = machine.knot()
        machine.build(parser.parse(pattern.pattern, pattern.flags), first)
        if anywhere:
            machine.start = machine.knot(first)
            machine.leaf(lambda _: True, machine.start, machine.start)
        return machine

    def knot(self, *others: int) -> int:
        self.knots.append(list(others))
        self.at.append([])
        return len(self.knots) - 1

    def leaf(self, takes: Callable[[str], object], before: int, behind: int) -> None:
        self.at[before].append(len(self.leaves))
        self.leaves.append(_Leaf(takes, behind))

    # --- the pattern as places and knots

    def build(self, parts: Any, before: int) -> int:
        """Add these parts and return the knot behind them."""
        for code, value in parts:
            before = self._part(code, value, before)
        return before

    def _part(self, code: Any, value: Any, before: int) -> int:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            behind = self.knot()
            self.leaf(self._taking(code, value), before, behind)
            return behind
        if code in _REPEATS:
            return self._repeat(*value, before)
        if code in (codes.ASSERT, codes.ASSERT_NOT):
            if value[0] > 0:
                self.build(value[1], before)  # reads on, and leads nowhere
            return before
        branches = _branches(code, value)
        return self._either(branches, before) if branches else before

    def _either(self, branches: list[Any], before: int) -> int:
        behind = self.knot()
        for branch in branches:
            self.knots[self.build(branch, before)].append(behind)
        return behind

    def _repeat(self, least: int, most: int, parts: Any, before: int) -> int:
        for _ in range(min(least, _FEW)):
            before = self.build(parts, before)
        if most > _FEW:
            return self._loop(parts, before)
        behind = self.knot()
        for _ in range(min(most - least, 2)):
            self.knots[before].append(behind)
            before = self.build(parts, before)
        self.knots[before].append(behind)
        return behind

    def _loop(self, parts: Any, before: int) -> int:
        turn, behind = self.knot(), self.knot()
        self.knots[before].append(turn)
        self.knots[turn].append(behind)
        last = self.build(parts, turn)
        if _repeats_within(parts):  # one round of "(a*)*" or two are two ways
            self.knots[last].append(behind)
            last = self.build(parts, last)
        self.knots[last].append(turn)
        return behind

    def _taking(self, code: Any, value: Any) -> Callable[[str], object]:
        if code is codes.ANY:
            return lambda _: True
        members = value if code is codes.IN else [(codes.LITERAL, value)]
        negated = code is codes.NOT_LITERAL or members[0][0] is codes.NEGATE
        for kind, what in members:
            if kind is codes.LITERAL:
                self.mentioned.add(chr(what))
            elif kind is codes.RANGE:
                self.mentioned.update(map(chr, what))
        forms = str.swapcase if self.ignoring_case else str

        def takes(sign: str) -> object:
            return negated != any(_is_in(form, members) for form in (sign, forms(sign)))

        return takes

    # --- words that it can go on with in two ways

    @cached_property
    def signs(self) -> list[str]:
        """Return one character per class; characters that the same leaves accept are one class.

        Word characters come last, so that what is found first starts at a word boundary.
        """
        kinds: dict[tuple[bool, ...], str] = {}
        for sign in [*_USUAL, *sorted(self.mentioned)]:
            kind = tuple(bool(leaf.takes(sign)) for leaf in self.leaves)
            kinds.setdefault(kind, sign)
        return sorted(kinds.values(), key=str.isalnum)

    @cached_property
    def next(self) -> list[dict[str, frozenset[int]]]:
        """Return the leaves that a leaf reaches by a character."""
        return [
            {sign: self._joined[leaf.follows] for sign in self.signs if leaf.takes(sign)}
            for leaf in self.leaves
        ]

    @cached_property
    def _joined(self) -> list[frozenset[int]]:
        """Return the leaves that can follow each knot."""
        joined = []
        for knot in range(len(self.knots)):
            seen, todo = {knot}, [knot]
            while todo:
                new = set(self.knots[todo.pop()]) - seen
                seen |= new
                todo.extend(new)
            joined.append(frozenset(leaf for one in seen for leaf in self.at[one]))
        return joined

    @cached_property
    def ways(self) -> dict[int, str]:
        """Return the shortest prefix that leads to each leaf."""
        ways = dict.fromkeys(self._joined[self.start], "")
        todo = deque(ways)
        while todo:
            leaf = todo.popleft()
            for sign, others in self.next[leaf].items():
                for other in others - ways.keys():
                    ways[other] = ways[leaf] + sign
                    todo.append(other)
        return ways

    @cached_property
    def beyond(self) -> list[set[int]]:
        """Return the leaves that each leaf can reach."""
        onward = [set().union(*step.values()) for step in self.next]
        beyond = []
        for leaf in range(len(self.leaves)):
            seen: set[int] = set()
            todo = [leaf]
            while todo:
                new = onward[todo.pop()] - seen
                seen |= new
                todo.extend(new)
            beyond.append(seen)
        return beyond

    def attacks(self) -> Iterator[Attack]:
        endless = [leaf for leaf in self.ways if leaf in self.beyond[leaf]]
        left = _ALL_BUDGET
        for here, there, turn in product(endless, endless, (1, -1)):
            if left > 0 and here != there and there in self.beyond[here]:
                word, steps = self._word(here, there, turn)
                left -= steps
                if word:
                    parts = self._heads(here, there), self._pumps(here, there, word)
                    yield from (Attack(*each) for each in product(*parts, self._tails(there)))

    def _heads(self, here: int, there: int) -> list[str]:
        """Return prefixes that lead here.

        If the pattern is tried anywhere, also after a character that the other way rejects, so that
        the start of the text does not consume the rest.
        """
        refused = self._refused(there) if here in self._joined[self.start] else ()
        return [self.ways[here], *refused]

    def _pumps(self, here: int, there: int, word: str) -> list[str]:
        """Return the word, also after a character that changes neither way: a gap may be needed."""
        gaps = [
            sign
            for sign in reversed(self.signs)
            if all(leaf in self.next[leaf].get(sign, ()) for leaf in (here, there))
        ]
        return [word, *(gap + word for gap in gaps[:_GAPS])]

    def _tails(self, there: int) -> dict[str, None]:
        """Return suffixes: the end of the text, and characters that almost nothing accepts."""
        rarest = min(self.signs, key=lambda sign: sum(sign in step for step in self.next))
        return dict.fromkeys(["", *self._refused(there), rarest])

    def _refused(self, leaf: int) -> list[str]:
        """Return a character and a letter that the leaf does not accept."""
        refused = [sign for sign in self.signs if sign not in self.next[leaf]]
        return list(dict.fromkeys([*refused[:1], *refused[-1:]]))

    def _word(self, here: int, there: int, turn: int) -> tuple[str, int]:
        """Find a word that leads from the first leaf to itself, from it to the second, and from
        that to itself; also return the number of steps. Equivalent characters are taken from either
        end.
        """
        begin, end = (here, here, there), (here, there, there)
        words = {begin: ""}
        todo = deque(words)
        while todo and len(words) < _BUDGET:
            place = todo.popleft()
            for sign in [*self.next[place[0]]][::turn]:
                targets = [
                    [leaf for leaf in self.next[now].get(sign, ()) if goal in self.beyond[leaf]]
                    for now, goal in zip(place, end, strict=True)
                ]
                for others in product(*targets):
                    if others == end:
                        return words[place] + sign, len(words)
                    if others not in words:
                        words[others] = words[place] + sign
                        todo.append(others)
        return "", len(words)


def _branches(code: Any, value: Any) -> list[Any]:
    """Return the sub-patterns of a part, one list per alternative."""
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.GROUPREF_EXISTS:
        return [value[1], value[2] or []]
    return [value[2]] if code in _REPEATS else []


def _repeats_within(parts: Any) -> bool:
    return any(
        (code in _REPEATS and value[1] > _FEW) or any(map(_repeats_within, _branches(code, value)))
        for code, value in parts
    )


def _is_in(sign: str, members: Any) -> bool:
    for kind, what in members:
        if kind is codes.LITERAL and sign == chr(what):
            return True
        if kind is codes.RANGE and what[0] <= ord(sign) <= what[1]:
            return True
        if kind is codes.CATEGORY and _CATEGORIES[what](sign):
            return True
    return False
