"""Function words by language, used as stop words and for language detection."""

from __future__ import annotations

import tomllib
from pathlib import Path

from bythebook.language.text import word_set

_TABLES: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

FUNCTION_WORDS = {language: word_set(words) for language, words in _TABLES.items()}
