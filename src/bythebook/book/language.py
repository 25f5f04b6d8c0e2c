"""Which language a page is in, as far as its letters tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

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
_SOME = 0.1  # of a page's letters: Japanese is half Chinese characters
_ENOUGH = 0.3  # of a page's letters: code and names in Latin stand in every technical book


def language_of(words: Iterable[str]) -> str:
    """A language code; "en" for everything in Latin letters."""
    sample = "".join(islice(words, _SAMPLE))[:_SAMPLE]
    foreign = len(sample) - len(sample.encode("ascii", "ignore"))
    if foreign <= _SOME * len(sample):
        return "en"
    for language, letters in _SCRIPTS:
        share = len(letters.findall(sample)) / len(sample)
        if share > (_SOME if language == "ja" else _ENOUGH):
            return _arabic(sample) if language == "ar" else language
    return "en"


def _arabic(sample: str) -> str:
    if _URDU.search(sample):
        return "ur"
    return "fa" if _PERSIAN.search(sample) else "ar"
