"""Sanitise untrusted text of books, readers or models for output on a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Remove what would control the terminal: escape sequences, bells, backspaces."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


def shortened(text: str, most: int) -> str:
    """Return the text on one line, shortened to at most ``most`` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
