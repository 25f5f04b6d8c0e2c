"""Text of a book, of a reader or of a model in; what a terminal may be given of it, out."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text without what would steer the terminal: escape sequences, bells, backspaces."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


def shortened(text: str, most: int) -> str:
    """The text on one line, of at most so many characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
