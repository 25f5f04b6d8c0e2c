"""Detect the language of a text by its script and its function words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from bythebook.language.stopwords import FUNCTION_WORDS

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ar", re.compile("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("bn", re.compile("[\u0980-\u09ff]")),
    ("ta", re.compile("[\u0b80-\u0bff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
_URDU = re.compile("[\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2]")  # ٹ ڈ ڑ ں ھ ہ ے
_PERSIAN = re.compile("[\u067e\u0686\u0698\u06af\u06cc\u06a9]")  # پ چ ژ گ ی ک
_SAMPLE = 20_000  # characters
_SAMPLE_WORDS = 4_000
_SOME = 0.1  # of a page's letters: half of Japanese text is Chinese characters
_ENOUGH = 0.3  # of a page's letters: every technical book has code and names in Latin script
_ENOUGH_WORDS = 0.08  # of a page's words; in prose, function words are a third or more
_LEAST_WORDS = 3


_COMMON_IN: dict[str, list[str]] = {}  # word -> languages in which it is a function word
for _language, _common in FUNCTION_WORDS.items():
    for _word in _common:
        _COMMON_IN.setdefault(_word, []).append(_language)


def language_of(words: Iterable[str]) -> str:
    """Return a language code; "en" if the evidence for another language is weak."""
    sample = list(islice(words, _SAMPLE_WORDS))
    script = _by_letters("".join(sample)[:_SAMPLE])
    if script is not None:
        return script
    votes = _votes(sample)
    language, most = max(votes.items(), key=lambda item: item[1], default=("en", 0))
    clear = most > votes["en"] and most >= max(_LEAST_WORDS, _ENOUGH_WORDS * len(sample))
    return language if clear else "en"


def likeliest(words: Sequence[str], languages: Sequence[str]) -> str:
    """Return the most likely of the given languages for a few words; the first on a tie."""
    if len(languages) == 1:
        return languages[0]
    script = _by_letters("".join(words))
    if script in languages:
        return str(script)
    votes = _votes(words)
    return max(languages, key=lambda language: votes[language])


def _by_letters(sample: str) -> str | None:
    foreign = len(sample) - len(sample.encode("ascii", "ignore"))
    if foreign <= _SOME * len(sample):
        return None
    for language, letters in _SCRIPTS:
        share = len(letters.findall(sample)) / len(sample)
        if share > (_SOME if language == "ja" else _ENOUGH):
            return _arabic(sample) if language == "ar" else language
    return None


def _arabic(sample: str) -> str:
    if _URDU.search(sample):
        return "ur"
    return "fa" if _PERSIAN.search(sample) else "ar"


def _votes(words: Iterable[str]) -> Counter[str]:
    """Count the function words of each language."""
    votes: Counter[str] = Counter()
    counts = Counter(words)
    for word, count in counts.items():
        for language in _COMMON_IN.get(word.lower(), ()):
            votes[language] += count
    return votes
