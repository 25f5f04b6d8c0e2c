"""Correct misspelt words of a question to words of the book: "calibraton", "schizofrenia".

There is no dictionary: a word is corrected only if the book does not have it and has exactly one
word that a usual slip turns into it. Most letters replaced by others make another real word
("planning", "planting"), so only letters that are often confused are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from string import ascii_lowercase

from bythebook.language.terms import term_ids

_WORD = re.compile(r"(?<![\w'’.-])[A-Za-z][a-z]{6,23}(?![\w'’-]|\.\w)")
_FEWEST_PASSAGES = 2  # that have the right word: a rare one may be misspelt itself
_MOST_WORDS = 8  # of a question that are examined
_CONFUSED = {
    **{vowel: "aeiou".replace(vowel, "") for vowel in "aeiou"},
    "s": "zc",
    "z": "s",
    "c": "ks",
    "k": "c",
    "y": "i",
}
_SOUNDS = (("f", "ph"), ("ph", "f"), ("y", "ie"), ("k", "ch"))


def correct_spelling(
    text: str, frequencies: Mapping[int, int], also: Set[int] = frozenset()
) -> str:
    """Return the text with words of the book instead of misspelt ones.

    ``frequencies`` has for each term of the book the number of passages with it; ``also`` are terms
    that are right in any book.
    """
    left = _MOST_WORDS

    def is_right(term: int) -> bool:
        return term in also or frequencies.get(term, 0) >= _FEWEST_PASSAGES

    def replace(found: re.Match[str]) -> str:
        nonlocal left
        terms = term_ids(found[0])
        if not terms or left == 0 or any(term in also or term in frequencies for term in terms):
            return found[0]
        left -= 1
        return _correct(found[0].lower(), is_right) or found[0]

    return _WORD.sub(replace, text)


def _correct(word: str, is_right: Callable[[int], bool]) -> str | None:
    """Return the only right word that is one slip away, if there is one."""
    known: dict[int, str] = {}
    for slip in _slips(word):
        for term in filter(is_right, term_ids(slip)[:1]):
            known.setdefault(term, slip)
    return next(iter(known.values())) if len(known) == 1 else None


def _slips(word: str) -> Iterator[str]:
    """Yield words that may have been meant: one typing error away, with the same first letter."""
    for at in range(1, len(word)):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        yield before + after
        if after:
            yield before + after[0] + letter + after[1:]
        for other in _CONFUSED.get(letter, ""):
            yield before + other + after
        for written, meant in _SOUNDS:
            if word.startswith(written, at):
                yield before + meant + word[at + len(written) :]
    for at in range(1, len(word) + 1):
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at:]
