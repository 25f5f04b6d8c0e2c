"""Make a passage of the text that a reader selected."""

from __future__ import annotations

import hashlib
import re

from bythebook.language.text import clean
from bythebook.language.tokens import estimate_tokens
from bythebook.text.units import split_units
from bythebook.types import Passage, Place

_LONGEST_SELECTION = 10_000  # characters, the same limit as for other passages
_BLANK_LINES = re.compile(r"\n{3,}")


def content_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


SELECTION = "selected_text"  # id of the passage made of a selection, from envelope


def passage_of_selection(text: str, *, url: str | None) -> Passage:
    """Make a passage of the text a reader selected, truncated to the maximum length."""
    text = text[:_LONGEST_SELECTION]
    text = _BLANK_LINES.sub("\n\n", clean(text.replace("\r\n", "\n"))).strip()
    place = Place(
        file="",
        title="Selected text",
        url=url or "",
        module="",
        chapter="",
        section=("Selected text",),
    )
    return Passage(
        id=SELECTION,
        text=text,
        place=place,
        position=0,
        content_hash=content_hash(text),
        units=split_units(text),
        source=(0, len(text)),
        tokens=estimate_tokens(text),
    )
