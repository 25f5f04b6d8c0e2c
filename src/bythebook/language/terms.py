"""Extract and weight the terms for keyword search (BM25), in every script.

Words are stemmed by language and accents are removed; identifiers are indexed both whole and
split into their parts; scripts without spaces become character bigrams; vowel signs stay with
their letters.
"""

from __future__ import annotations

import json
import math
import re
import threading
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from Stemmer import Stemmer

from bythebook.language.code_terms import code_terms, keywords, prose_code_terms
from bythebook.language.detection import likeliest
from bythebook.language.english.lexicon import ASKING_WORDS
from bythebook.language.stopwords import FOLDED, is_stop_word
from bythebook.language.text import word_set, words
from bythebook.types import MarkKind, Passage, UnitKind

# BM25's usual saturation and length normalisation (Robertson and Zaragoza, 2009).
_K1 = 1.2
_B = 0.75
_HEADING_WEIGHT = 2

# Words with their vowel signs: Python's \w does not match combining marks.
_MARKS = (
    "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"  # accents; Arabic
    "\u0900-\u0963\u0966-\u0dff\u200c\u200d"  # Indic without the danda; joiners
)
_WORD = re.compile(rf"[\w{_MARKS}]+(?:[+#]+(?![\w]))?")
_APOSTROPHE = re.compile(r"(?<=[a-zA-Z])['’](?=(?:s|t|re|ve|ll|m)(?![\w'’]))")
_UNSPACED = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+)")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Languages with a Snowball stemmer.
_STEMMED = word_set("ar da de el en es fi fr hi hu id it nl no pt ro ru sv ta tr")
_ENGLISH = "en"
_LONGEST_KEPT = 64  # characters: the terms of longer words are not cached, to save memory
# A question is not about a word in more passages: 45 to 79 % have the book's programming language.
_USUAL = 1 / 3
_OFTEN = 0.05  # of the passages: rarer languages are not considered for questions


def terms_of(text: str, language: str = _ENGLISH) -> list[str]:
    """Return the terms of a text's words in order, without stop words."""
    terms: list[str] = []
    for word in _WORD.findall(_normalise(text)):
        split = _terms_of_word if len(word) <= _LONGEST_KEPT else _terms_of_word.__wrapped__
        terms += split(word, language)
    return terms


def term_ids(text: str, language: str = _ENGLISH) -> list[int]:
    """Return the terms as ids, for comparisons: those of words, then those of code."""
    return list(map(term_id, (*terms_of(text, language), *prose_code_terms(text, language))))


def _normalise(text: str) -> str:
    """Normalise Unicode and remove apostrophes in words, so that "what's" equals "whats"."""
    return _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text).replace("\u200b", ""))


@lru_cache(maxsize=65536)
def _terms_of_word(word: str, language: str) -> tuple[str, ...]:
    return tuple(filter(None, _parts_of_word(word, language)))


def _parts_of_word(word: str, language: str) -> tuple[str, ...]:
    if _UNSPACED.search(word):
        return _pairs(word, language)
    if is_stop_word(word, language):
        return ()
    parts = _CAMEL.findall(word) if word.isascii() else []
    whole = stem(word.strip("_") or word, language)
    if len(parts) < 2:
        return (whole,)
    return (whole, *(stem(part, language) for part in parts if not is_stop_word(part, language)))


def _pairs(word: str, language: str) -> tuple[str, ...]:
    terms: list[str] = []
    for n, run in enumerate(_UNSPACED.split(word)):
        if n % 2:
            terms.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        elif run:
            terms.extend(_terms_of_word(run, language))
    return tuple(terms)


def stem(word: str, language: str = _ENGLISH) -> str:
    """Return the stem of a word, in lower case and without accents."""
    lower = word.lower()
    if language in _STEMMED and language != _ENGLISH:
        # Before accents are removed: the stemming rules of most languages use them.
        return _fold(_stemmed(lower, language))
    folded = _fold(lower)
    return _stemmed(folded, _ENGLISH) if folded.isascii() else folded


def _fold(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.translate(FOLDED))
    return "".join(char for char in letters if not _is_accent(char))


def _is_accent(char: str) -> bool:
    return "\u0300" <= char <= "\u036f" or "\u064b" <= char <= "\u065f" or char == "\u0670"


@cache
def _stemmer(language: str) -> Any:
    return Stemmer(language)


_stemming = threading.Lock()  # stemmers are not thread-safe: they keep the current word as state


def _stemmed(word: str, language: str) -> str:
    with _stemming:
        return str(_stemmer(language).stemWord(word))


def term_id(term: str) -> int:
    """Return the term's index in sparse vectors, the same on every machine."""
    return zlib.crc32(term.encode())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Document frequencies of the book's terms, for BM25 and IDF."""

    passages: int = 0
    average_length: float = 1.0
    frequencies: Mapping[int, int] = field(default_factory=dict)
    languages: tuple[str, ...] = (_ENGLISH,)  # of the book, most frequent first

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> Vocabulary:
        frequencies: Counter[int] = Counter()
        languages: Counter[str] = Counter()
        count = length = 0
        for passage in passages:
            counts, length_of_words = _counts(passage)
            languages[language_of_passage(passage)] += 1
            frequencies.update(counts.keys())
            count, length = count + 1, length + length_of_words
        average = max(1.0, length / max(1, count))
        return cls(count, average, dict(frequencies), _often(languages))

    def idf(self, term: int) -> float:
        frequency = self.frequencies.get(term, 0)
        return math.log(1 + (self.passages - frequency + 0.5) / (frequency + 0.5))

    def weigh(self, passage: Passage) -> dict[int, float]:
        """Return the BM25 weights of the passage's terms, without IDF (applied by the store)."""
        counts, length = _counts(passage)
        norm = _K1 * (1 - _B + _B * length / self.average_length)
        return {term: n * (_K1 + 1) / (n + norm) for term, n in counts.items()}

    def ask(self, question: str) -> dict[int, float]:
        """Return the IDF of the question's words, and of its code terms that the book has."""
        language = likeliest(words(question), self.languages)
        terms = set(map(term_id, terms_of(question, language)))
        code = prose_code_terms(question, language, asks=True)
        if all(self.frequencies.get(term, 0) > _USUAL * self.passages for term in terms):
            code += keywords(
                (w for w in words(question) if w.lower() not in ASKING_WORDS), language
            )
        terms.update(filter(self.frequencies.__contains__, map(term_id, code)))
        return {term: self.idf(term) for term in sorted(terms)}

    def to_bytes(self) -> bytes:
        frequencies = {str(term): n for term, n in sorted(self.frequencies.items())}
        document = [self.passages, self.average_length, frequencies, self.languages]
        return zlib.compress(json.dumps(document, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, packed: bytes) -> Vocabulary:
        try:
            passages, average_length, frequencies, languages = json.loads(zlib.decompress(packed))
        except (zlib.error, json.JSONDecodeError) as error:
            raise ValueError("not a vocabulary") from error
        frequencies = {int(term): n for term, n in frequencies.items()}
        return cls(passages, average_length, frequencies, tuple(languages))


def language_of_passage(passage: Passage) -> str:
    """Return the two-letter code: authors also write "pt-BR" or "English"."""
    return passage.metadata.language.lower()[:2]


def _often(languages: Counter[str]) -> tuple[str, ...]:
    enough = _OFTEN * languages.total()
    often = sorted((-n, language) for language, n in languages.items() if n >= enough)
    return tuple(language for _, language in often) or (_ENGLISH,)


def _counts(passage: Passage) -> tuple[Counter[int], int]:
    """Return the counts of the passage's terms, and its length, to which code terms do not add.

    A block of code counts a term once: it uses an operator, prose explains it.
    """
    language, text, heading = language_of_passage(passage), passage.text, passage.place.path
    counts = Counter(terms_of(text, language))
    counts.update(_HEADING_WEIGHT * list(set(terms_of(heading, language))))
    length = counts.total()
    counts.update(_HEADING_WEIGHT * list(set(prose_code_terms(heading, language))))
    inline = (mark[:2] for mark in passage.marks or () if mark.kind is MarkKind.CODE)
    blocks = ((unit.start, unit.end) for unit in passage.units if unit.kind is UnitKind.CODE)
    prose, end = "", 0
    for start, stop in sorted((*inline, *blocks)):
        counts.update(set(code_terms(text[start:stop], language)))
        prose, end = f"{prose}{text[end:start]} ", max(end, stop)
    counts.update(prose_code_terms(prose + text[end:], language))
    return Counter({term_id(term): count for term, count in counts.items()}), length


MOST_WEIGHT = _K1 + 1  # upper limit of one term's BM25 weight


def term_evidence(asked: Mapping[int, float], weights: Mapping[int, float]) -> tuple[float, float]:
    """Return (BM25 relative to its maximum, IDF-weighted share of query terms present)."""
    total = sum(asked.values())
    if total == 0:
        return 0.0, 0.0
    weight = sum([idf * weights.get(term, 0.0) for term, idf in asked.items()])
    return weight / (total * MOST_WEIGHT), covered(asked, weights.keys())


def covered(asked: Mapping[int, float], terms: Set[int]) -> float:
    """Return the IDF-weighted share of the query terms that are present."""
    total = sum(asked.values())
    there = sum([idf for term, idf in asked.items() if term in terms])
    return there / total if total else 0.0
