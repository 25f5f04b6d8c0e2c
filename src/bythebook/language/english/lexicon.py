"""English word tables, read from ``lexicon.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from bythebook.language.text import word_set

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

SAME: str = _TABLES["synonyms"]
SCALES: str = _TABLES["scales"]
UNITS: dict[str, str] = _TABLES["units"]
MEASURES = word_set(_TABLES["measures"])
# Spelling variants and irregular forms -> base form.
SPELLINGS = {form: base for base, forms in _TABLES["spellings"].items() for form in forms.split()}
NUMBERS = {word: value for value, word in enumerate(_TABLES["numbers"].split())}
TENS = {word: 10 * value for value, word in enumerate(_TABLES["tens"].split(), 2)}
ORDERS = word_set(_TABLES["orders"])
NEGATIONS = word_set(_TABLES["negations"] + " " + _TABLES["negations_of_claims"])
LIGHT = word_set(_TABLES["light"])
ABSOLUTE = word_set(_TABLES["absolute"])
LEANING = word_set(_TABLES["back_references"])
CONNECTIVES = tuple(line for line in _TABLES["connectives"].splitlines() if line)
FRAMING = word_set(_TABLES["framing"])
DETERMINERS = word_set(_TABLES["determiners"])
FOLLOW_UP_WORDS = {name: word_set(words) for name, words in _TABLES["follow_ups"].items()}
ASKING_WORDS = FOLLOW_UP_WORDS["interrogatives"] | FOLLOW_UP_WORDS["auxiliaries"]


def either(*tables: str) -> str:
    """Return a pattern of the words in tables of ``lexicon.toml``, for use in larger patterns."""
    return "|".join(word for table in tables for word in _TABLES[table].split())


LEANS_BACK = re.compile(rf"({either('back_references', 'weak_back_references')})\b", re.I)
