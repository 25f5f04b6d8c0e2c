"""Recognise pieces of Markdown that are no text for readers."""

from __future__ import annotations

import re

_DIAGRAM = re.compile(r"[`~]{3,}\s*(?:mermaid|plantuml|dot|graphviz)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(  # "{{#include ../main.rs}}", perhaps fenced: a template fills it
    r"(?:[`~]{3,}+[^\n]*+\n)?+\s*+(?:\{\{[^{}]*+\}\}\s*+)++(?:[`~]{3,}+)?+\s*+"
)


def is_readable(text: str) -> bool:
    """Return whether a piece is text for readers: not blank, no diagram, no placeholder."""
    return bool(text.strip()) and not (_DIAGRAM.match(text) or _PLACEHOLDER.fullmatch(text))
