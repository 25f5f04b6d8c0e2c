"""English word tables, read from ``lexicon.toml``."""

from __future__ import annotations

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
NEGATIONS = word_set(_TABLES["negations"])
LIGHT = word_set(_TABLES["light"])
ABSOLUTE = word_set(_TABLES["absolute"])
LEANING = word_set(_TABLES["back_references"])
