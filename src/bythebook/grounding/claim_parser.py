"""Parse a sentence into what it claims: ordered terms, numbers, names, negations and scales.

Sentences are compared in this normalised form: "doesn't" becomes "does not", "ten" 10, "12 km" 12
kilometres, and the passive "was built by" the active "built", with the builder first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

from bythebook.language.english.lexicon import (
    ABSOLUTE,
    LEANING,
    LIGHT,
    MEASURES,
    NEGATIONS,
    NUMBERS,
    ORDERS,
    SAME,
    SCALES,
    SPELLINGS,
    TENS,
    UNITS,
)
from bythebook.language.terms import terms_of

_SCOPE = 3  # terms in the scope of a negation
_SPOKEN = re.compile(
    r"\d+(?:[.,:]\d+)*|[^\W\d_](?:[\w]|[+#]+(?!\w))*(?:[_/.](?=\w)[\w]+)*|[%°][CF]?|[^\w\s]|_\w*"
)
_CONTRACTIONS = (
    (re.compile(r"\b([Cc])an['’]t\b|\b([Cc])annot\b"), r"\1\2an not"),
    (re.compile(r"\b([Ww])on['’]t\b"), r"\1ill not"),
    (re.compile(r"(\w)n['’]t\b"), r"\1 not"),
    (re.compile(r"['’](?:s|re|ll|ve|d|m)\b"), " "),
    (re.compile(r"\bnot (?:only|just|merely)\b|\bno (?:doubt|matter)\b"), " "),
    (re.compile(r"\b(?:no|not) more than\b|\bup to\b"), "at most"),
    (re.compile(r"\b(?:no|not) (?:less|fewer) than\b"), "at least"),
    (re.compile(r"\bno longer\b"), "not"),
    (re.compile(r"\bin front of\b"), "ahead of"),
    (re.compile(r"\b[Ii]n (?:short|addition|fact|summary|other words)\b,?"), " "),
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"(?<=\d),(?=\d{3}\b)"), ""),
    (re.compile(r"[*`]+|(?<!\w)_++(?=\w)|(?<!\w)__++|(?<=[^\W_])_++(?!\w)"), ""),
    (re.compile(r"(?<=[^\W\d])[-–](?=[^\W\d])"), " "),
    (re.compile(r"(?<=\d)[-–—](?=\d)"), " to "),
    (re.compile(r"(?<=\d)-(?=[^\W\d])"), " "),
    (re.compile(r"(?<=\d)(?=[^\W\d])(?!(?:st|nd|rd|th|s)\b|[eE]\d|[DdKk]\b)"), " "),
)
_IS = frozenset(["is", "are", "was", "were", "be", "been", "being"])
_CLAUSE_ENDS = frozenset(".,;:()!?—–")
_ORDER = re.compile(  # at the start of a sentence, line, item, quotation or chat turn
    rf"(?:^|[\n.:;!?\"“(>{{]|[-–—]\s|\|>\s*\w+)[^\S\n]*+(?:(?:please|now|then)\s+)?"
    rf"({'|'.join(sorted(ORDERS))})\b",
    re.IGNORECASE,
)
_OWN = frozenset(["my", "me", "mine", "myself"])


class TermKind(Enum):
    WORD = "word"
    NAME = "name"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Term:
    key: str  # normalised form for comparison
    text: str
    kind: TermKind
    is_light: bool = False

    @property
    def is_measure(self) -> bool:
        return self.key in _families().measures


@dataclass(frozen=True, slots=True)
class ParsedClaim:
    terms: tuple[Term, ...]
    denials: tuple[tuple[str, ...], ...]  # for each negation, the keys in its scope
    scales: tuple[tuple[int, int], ...]  # (scale, position on it), with repetitions
    leans: bool  # its first word refers to an earlier sentence
    orders: frozenset[str] = frozenset()  # its imperative verbs of saying or supposing
    is_own: bool = False  # it is in the first person

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(term.key for term in self.terms)

    def times_said(self, key: str) -> int:
        return sum(term.key == key for term in self.terms)

    def times_denied(self, key: str) -> int:
        return sum(key in reached for reached in self.denials)


@lru_cache(maxsize=4096)
def parse_claim(text: str) -> ParsedClaim:
    tokens = _actively(_tokens(text))
    terms: list[Term] = []
    clauses: list[int] = []  # clause number of each term
    denied: list[tuple[int, int]] = []  # (index into the terms, clause) of each negation
    scales: list[tuple[int, int]] = []
    clause = 0
    for index, token in enumerate(tokens):
        clause += token in _CLAUSE_ENDS
        if token.lower() in NEGATIONS:
            denied.append((len(terms), clause))
            continue
        word = _unit_after_number(tokens, index) or token
        scales.extend(_scales_of(word))
        terms.extend(_terms(tokens, index, word))
        clauses.extend([clause] * (len(terms) - len(clauses)))
    first = next((token.lower() for token in tokens if token[0].isalnum()), "")
    return ParsedClaim(
        terms=tuple(terms),
        denials=tuple(
            tuple(
                term.key
                for term, its_clause in zip(terms[at:], clauses[at:], strict=True)
                if its_clause == clause
            )[:_SCOPE]
            for at, clause in denied
        ),
        scales=tuple(scales),
        leans=first in LEANING,
        orders=frozenset(verb.lower() for verb in _ORDER.findall(text)),
        is_own="I" in tokens or not _OWN.isdisjoint(token.lower() for token in tokens),
    )


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text)
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return list(_with_numbers(_SPOKEN.findall(text)))


def _with_numbers(tokens: Iterable[str]) -> Iterator[str]:
    """Replace number words with digits ("twenty five": 25); a lone "one" is rarely a number."""
    pending: int | None = None
    for token in tokens:
        lower = token.lower()
        if lower in TENS:
            if pending is not None:
                yield str(pending)
            pending = TENS[lower]
            continue
        if pending is not None and pending >= 20 and 0 < NUMBERS.get(lower, 0) < 10:
            yield str(pending + NUMBERS[lower])
            pending = None
            continue
        if pending is not None:
            yield str(pending)
            pending = None
        yield str(NUMBERS[lower]) if NUMBERS.get(lower, 1) != 1 else token
    if pending is not None:
        yield str(pending)


def _actively(tokens: list[str]) -> list[str]:
    """Rewrite "A is moved by B" as "B moved A", clause by clause."""
    for index, token in enumerate(tokens):
        if token.lower() != "by":
            continue
        verb = _participle_before(tokens, index)
        if verb is None:
            continue
        start, end = _clause(tokens, verb, index)
        doer, done_to = tokens[index + 1 : end], tokens[start : verb - 1]
        if doer and done_to:
            denials = [word for word in done_to if word.lower() in NEGATIONS]
            done_to = [word for word in done_to if word.lower() not in NEGATIONS]
            active = [*doer, *denials, *tokens[verb:index], *done_to]
            return [*tokens[:start], *active, *_actively(tokens[end:])]
    return tokens


def _participle_before(tokens: list[str], by: int) -> int | None:
    """Return the index of a passive's participle, which directly follows a form of "be"."""
    for index in range(by - 1, max(0, by - 4), -1):
        word = tokens[index].lower()
        if word in _CLAUSE_ENDS:
            return None
        if tokens[index - 1].lower() in _IS and (word.endswith(("ed", "en")) or word in SPELLINGS):
            return index
    return None


def _clause(tokens: list[str], verb: int, by: int) -> tuple[int, int]:
    start, end = verb - 1, by + 1
    while start > 0 and tokens[start - 1] not in _CLAUSE_ENDS:
        start -= 1
    while end < len(tokens) and tokens[end] not in _CLAUSE_ENDS:
        end += 1
    return start, end


def _unit_after_number(tokens: list[str], index: int) -> str | None:
    after_number = index > 0 and tokens[index - 1][0].isdigit()
    return UNITS.get(tokens[index].lower()) if after_number else None


def _terms(tokens: list[str], index: int, word: str) -> Iterator[Term]:
    token = tokens[index]
    if token[0].isdigit():
        yield Term(_number_key(token), token, TermKind.NUMBER)
        return
    opens = index == 0 or tokens[index - 1] in ".!?:"
    is_name = token == word and not opens and _is_name(token)
    lower = token.lower()
    is_light = lower in LIGHT or (lower in _families().on_scales and lower not in ABSOLUTE)
    for key in _keys(word):
        yield Term(key, token, TermKind.NAME if is_name else TermKind.WORD, is_light)


def _number_key(token: str) -> str:
    """Return the same key for "1,000" and "1000", "0.50" and ".5"."""
    try:
        return f"#{float(token.replace(',', '')):g}"
    except ValueError:
        return f"#{token}"


def _is_name(token: str) -> bool:
    return token[0].isupper() or any(char.isdigit() or char in "_/." for char in token)


@lru_cache(maxsize=65536)
def _keys(word: str) -> tuple[str, ...]:
    if not word[0].isalnum():
        return ()
    lower = SPELLINGS.get(word.lower(), word.lower())
    keys = terms_of(lower if lower != word.lower() else word)
    if not keys:
        return (_families().same.get(lower, lower),) if lower in _families().on_scales else ()
    if word.isascii() and word.isalnum():
        return (_families().same.get(keys[0], keys[0]),)
    return tuple(keys)  # an identifier with its parts, or a script without spaces


def _stem(word: str) -> str:
    keys = terms_of(SPELLINGS.get(word, word))
    return keys[0] if keys else word


def _groups(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


@dataclass(frozen=True, slots=True)
class _Families:
    """The tables of ``lexicon``, keyed by stems."""

    same: dict[str, str]
    measures: frozenset[str]
    places: dict[str, list[tuple[int, int]]]  # for each word, its scales and its position on them
    on_scales: frozenset[str]  # stop words, which have no stem


@cache
def _families() -> _Families:
    places: dict[str, list[tuple[int, int]]] = {}
    for scale, line in enumerate(SCALES.strip().splitlines()):
        for position, words in enumerate(line.split("|")):
            for word in words.split():
                places.setdefault(_stem(word), []).append((scale, position))
    return _Families(
        # A word in several groups gets the key of the first group that lists it.
        same={_stem(word): _stem(group[0]) for group in reversed(_groups(SAME)) for word in group},
        measures=frozenset(map(_stem, MEASURES)),
        places=places,
        on_scales=frozenset(w for line in _groups(SCALES) for w in line if not terms_of(w)),
    )


@lru_cache(maxsize=65536)
def _scales_of(token: str) -> tuple[tuple[int, int], ...]:
    return tuple(_families().places.get(_stem(token.lower()), ())) if token[0].isalpha() else ()


_UN = ("un", "in", "im", "il", "ir", "non", "dis", "de", "anti")


def are_opposite(words: Iterable[str], others: frozenset[str] | set[str]) -> int:
    """Count the words that negate one of the others by a prefix: impossible, possible."""
    return sum(
        any(
            prefix + word in others or word.removeprefix(prefix) in others - {word}
            for prefix in _UN
        )
        for word in words
    )
