"""Text in, weighted terms out: the words by which a passage is found, in every script.

Latin words are folded and stemmed, identifiers are kept whole and split at their joints,
scripts without spaces become pairs of characters, vowel signs stay with their letters.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from snowballstemmer import stemmer

from bythebook.model import Passage

# BM25's usual saturation and length normalisation (Robertson and Zaragoza, 2009).
_K1 = 1.2
_B = 0.75
_HEADING_WEIGHT = 2

# Words with their vowel signs: Python's \w leaves combining marks out.
_MARKS = (
    "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"  # accents; Arabic
    "\u0900-\u0963\u0966-\u0dff\u200c\u200d"  # Indic without the danda; joiners
)
_WORD = re.compile(rf"[\w{_MARKS}]+(?:[+#]+(?![\w]))?")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_COMMON = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each few for from further had has have
having he her here hers him his how i if in into is it its itself just me more most my no nor not
of off on once only or other our out over own same she should so some such than that the their them
then there these they this those through to too under until up very was we were what when where
which while who whom whose why will with would you your many much used use using called tell
explain describe please mean show give
کا کی کے کو میں سے پر ہے ہیں اور یہ وہ کیا ایک نے تو بھی ہو
"""
_STOP_WORDS = frozenset(_COMMON.split())

# Arabic letters that Urdu and Persian keyboards write differently.
_FOLDED = str.maketrans({"ي": "ی", "ك": "ک", "ة": "ہ", "ه": "ہ", "أ": "ا", "إ": "ا", "ٱ": "ا"})


def terms_of(text: str) -> list[str]:
    """Every term of a text, in order, stop words left out."""
    terms: list[str] = []
    for match in _WORD.finditer(_normalise(text)):
        terms.extend(term for term in _terms_of_word(match[0]) if term)
    return terms


def _normalise(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u200b", "").translate(_FOLDED)


@lru_cache(maxsize=65536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    if _UNSPACED.search(word):
        return _pairs(word)
    if word.lower() in _STOP_WORDS:
        return ()
    parts = _CAMEL.findall(word) if word.isascii() else []
    whole = _stem(word.strip("_") or word)
    if len(parts) < 2:
        return (whole,)
    return (whole, *(_stem(part) for part in parts if part.lower() not in _STOP_WORDS))


def _pairs(word: str) -> tuple[str, ...]:
    terms: list[str] = []
    position = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > position:
            terms.extend(_terms_of_word(word[position : run.start()]))
        text = run[0]
        terms.extend(text[i : i + 2] for i in range(max(1, len(text) - 1)))
        position = run.end()
    if position < len(word):
        terms.extend(_terms_of_word(word[position:]))
    return tuple(terms)


_english = stemmer("english")


def _stem(word: str) -> str:
    lower = "".join(
        char for char in unicodedata.normalize("NFD", word.lower()) if not _is_accent(char)
    )
    return str(_english.stemWord(lower)) if lower.isascii() else lower


def _is_accent(char: str) -> bool:
    return "\u0300" <= char <= "\u036f" or "\u064b" <= char <= "\u065f" or char == "\u0670"


def number_of(term: str) -> int:
    """The term's place in a sparse vector, the same on every machine."""
    return zlib.crc32(term.encode())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """In how many passages each term stands: the book's own sense of what is rare."""

    passages: int = 0
    average_length: float = 1.0
    frequencies: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> Vocabulary:
        frequencies: Counter[int] = Counter()
        count = length = 0
        for passage in passages:
            counts = _counts(passage)
            frequencies.update(counts.keys())
            count, length = count + 1, length + counts.total()
        return cls(count, max(1.0, length / max(1, count)), dict(frequencies))

    def idf(self, term: int) -> float:
        frequency = self.frequencies.get(term, 0)
        return math.log(1 + (self.passages - frequency + 0.5) / (frequency + 0.5))

    def weigh(self, passage: Passage) -> dict[int, float]:
        """BM25 weights of the passage's terms, without IDF (which the store applies)."""
        counts = _counts(passage)
        norm = _K1 * (1 - _B + _B * counts.total() / self.average_length)
        return {term: n * (_K1 + 1) / (n + norm) for term, n in counts.items()}

    def ask(self, question: str) -> dict[int, float]:
        """The question's terms with their IDF."""
        return {term: self.idf(term) for term in sorted({*map(number_of, terms_of(question))})}

    def to_bytes(self) -> bytes:
        frequencies = {str(term): n for term, n in sorted(self.frequencies.items())}
        document = [self.passages, self.average_length, frequencies]
        return zlib.compress(json.dumps(document, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, packed: bytes) -> Vocabulary:
        try:
            passages, average_length, frequencies = json.loads(zlib.decompress(packed))
        except (zlib.error, json.JSONDecodeError) as error:
            raise ValueError("not a vocabulary") from error
        return cls(passages, average_length, {int(term): n for term, n in frequencies.items()})


def _counts(passage: Passage) -> Counter[int]:
    counts = Counter(map(number_of, terms_of(passage.text)))
    for term in set(terms_of(passage.place.path)):
        counts[number_of(term)] += _HEADING_WEIGHT
    return counts


MOST_WEIGHT = _K1 + 1  # what one term's BM25 weight tends to


def term_evidence(asked: Mapping[int, float], weights: Mapping[int, float]) -> tuple[float, float]:
    """(BM25 as a share of the most it could be, share of the asked terms that are there)."""
    total = sum(asked.values())
    if total == 0:
        return 0.0, 0.0
    weight = sum(idf * weights.get(term, 0.0) for term, idf in asked.items())
    covered = sum(idf for term, idf in asked.items() if term in weights)
    return weight / (total * MOST_WEIGHT), covered / total
