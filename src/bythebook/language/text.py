"""Repair text, remove invisible characters from it, and split it into words."""

from __future__ import annotations

import re

# Tag block, BOM, bidi embeddings and isolates, zero-width space, word joiner: they can hide text
# from the reader. ZWJ and ZWNJ are part of the spelling in Urdu, Persian and Indic scripts, and
# join emoji; anywhere else they only split words. A second consecutive variation selector has no
# effect.
_HIDDEN = re.compile("[\U000e0000-\U000e007f\ufeff\u202a-\u202e\u2066-\u2069\u200b\u2060]")
_SELECTORS = re.compile(
    "(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_JOINERS = re.compile(
    "(?<![\u0590-\u08ff\u0900-\u0fff\u1000-\u109f\u1780-\u18af\ufb1d-\ufdff\ufe70-\ufefc"
    "\u2190-\u2bff\u3030\ufe0f\U0001f000-\U0001faff])[\u200c\u200d]"
)
_SUSPECT = re.compile(
    "[\u200b-\u200d\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_WORD = re.compile(r"\w+")
_WORDS_APART = (
    "".join(chr(code) if _WORD.match(chr(code)) else " " for code in range(128)).ljust(256).encode()
)


def clean(text: str) -> str:
    if text.isascii() or not _SUSPECT.search(text):
        return text
    return _JOINERS.sub("", _SELECTORS.sub("", _HIDDEN.sub("", text)))


def one_line(text: str) -> str:
    """Return the text with line ends and other control characters as escapes."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def well_formed(text: str) -> str:
    """Join halves of surrogate pairs; replace a lone half, or NUL, by U+FFFD.

    JSON and file names can have them, and no tokenizer, database or response accepts them.
    """
    if not _NO_TEXT.search(text):
        return text
    pairs = text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
    return pairs.decode("utf-16-le", "replace")


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def words(text: str) -> list[str]:
    if text.isascii():  # several times faster than the regular expression
        return text.encode().translate(_WORDS_APART).decode().split()
    return _WORD.findall(text)
