"""Correct misspelt words of a question to words of the book: "calibraton", "schizofrenia", "kalmn".

A word is misspelt if neither the book nor ``common_words.txt`` has it: the words and names that the
embedding model all-MiniLM-L6-v2 knows. A common one may still be American and the book British.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from string import ascii_lowercase

from bythebook.language.terms import stem, term_id, term_ids
from bythebook.language.text import word_set

_WORD = re.compile(r"(?<![\w'’.`/@#$-])(?:[a-z]{4,24}|[A-Z][a-z]{5,23})(?![\w'’`/(-]|\.\w)")
_FEWEST_PASSAGES = 2  # that have the right word: a rare one may be misspelt itself
_MOST_WORDS = 12  # of a question that are examined: 2 ms each
_SURE_LENGTH = 6  # letters: one edit makes another word of many shorter ones
# Times the passages of the next candidate; so 2.5 % of 1,700 random slips become another word.
_CLEARLY = 3
_VARIANTS = (("or", "our"), ("our", "or"), ("is", "iz"), ("iz", "is"), ("er", "re"), ("re", "er"))
_SOUNDS = (("f", "ph"), ("ph", "f"), ("y", "ie"), ("k", "ch"), ("al", "le"), ("le", "al"))


@dataclass(frozen=True, slots=True)
class Spelling:
    """A question with its misspelt words corrected."""

    text: str
    corrections: Mapping[str, tuple[str, ...]]  # written -> may be meant, in most passages first
    is_sure: bool  # False: ask the reader whether these words are meant


def correct_spelling(
    text: str, frequencies: Mapping[int, int], also: Set[int] = frozenset()
) -> Spelling:
    """Correct misspelt words if one word of the book is clearly meant.

    ``frequencies`` has for each term of the book the number of passages with it; ``also`` are terms
    that are right in any book.
    """
    corrections: dict[str, tuple[str, ...]] = {}
    clear: dict[str, str] = {}
    unknown = (
        word
        for word in dict.fromkeys(_WORD.findall(text))
        if (terms := term_ids(word)) and not any(t in also or t in frequencies for t in terms)
    )
    for word in islice(unknown, _MOST_WORDS):
        counts = _candidates(word.lower(), frequencies, also)
        if meant := sorted(counts, key=lambda slip: -counts[slip]):
            corrections[word] = tuple(meant)
            if len(meant) == 1 or counts[meant[0]] >= _CLEARLY * counts[meant[1]]:
                clear[word] = meant[0]
    is_sure = all(len(meant) == 1 and len(w) >= _SURE_LENGTH for w, meant in corrections.items())
    text = _WORD.sub(lambda found: clear.get(found[0], found[0]), text)
    return Spelling(text, corrections, is_sure)


def _candidates(word: str, frequencies: Mapping[int, int], also: Set[int]) -> dict[str, int]:
    """Return the right words that may be meant, with the number of passages that have each."""
    known: dict[int, tuple[str, int]] = {}
    common, stems = _common()
    for slip in _replaced(word, _VARIANTS) if stem(word) in stems else _slips(word):
        root = stem(slip)
        term, count = term_id(root), frequencies.get(term_id(root), 0)
        # Of a common stem, most forms are known: "domin" is none.
        is_word = root not in stems or slip in common or slip.removesuffix("s") in common
        if is_word and (term in also or count >= _FEWEST_PASSAGES):
            known.setdefault(term, (slip, count))
    return dict(known.values())


def _slips(word: str) -> Iterator[str]:
    """Yield words that may have been meant: one typing error away, with the same first letter.

    With another last letter, or without it, it is rather another form: "helper", "pointy".
    """
    for at in range(1, len(word) - 1):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        yield before + after[0] + letter + after[1:]
        yield before + after
    yield from _replaced(word, _SOUNDS)
    for at in range(1, len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in ascii_lowercase)
    for at in range(1, len(word) - 1):
        yield from (word[:at] + letter + word[at + 1 :] for letter in ascii_lowercase)


def _replaced(word: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the word with each occurrence of the first of a pair replaced by the second."""
    for written, meant in pairs:
        at = word.find(written, 1)
        while at > 0:
            yield word[:at] + meant + word[at + len(written) :]
            at = word.find(written, at + len(written))


@cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    """Return the common words and their stems."""
    common = word_set(Path(__file__).with_name("common_words.txt").read_text("utf-8"))
    return common, frozenset(map(stem, common))
