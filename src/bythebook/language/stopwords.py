"""Function words by language, used as stop words and for language detection."""

from __future__ import annotations

import tomllib
from pathlib import Path

from bythebook.language.text import word_set

_TABLES: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

FUNCTION_WORDS = {language: word_set(words) for language, words in _TABLES.items()}

# Arabic letters for which Urdu and Persian keyboards have other code points.
FOLDED = str.maketrans({"ي": "ی", "ك": "ک", "ة": "ہ", "ه": "ہ", "أ": "ا", "إ": "ا", "ٱ": "ا"})


def is_stop_word(word: str, language: str) -> bool:
    lower = word.lower().translate(FOLDED)
    own = FUNCTION_WORDS.get(language, FUNCTION_WORDS["en"])
    return lower in own or lower in FUNCTION_WORDS["ur"]
