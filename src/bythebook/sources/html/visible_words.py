"""Visible words of a page, counted without its blocks, so that losses show as missing words."""

from __future__ import annotations

from lxml import etree

from bythebook.language.text import words
from bythebook.sources.html.content import is_chrome
from bythebook.sources.html.maths import maths_of
from bythebook.sources.html.text import BLOCKS
from bythebook.sources.html.tree import Element

_ON_OWN_LINES = BLOCKS | {"label", "br", "option"}


def visible_words(content: Element) -> tuple[str, ...]:
    """Return the words that a reader sees, in page order."""
    parts: list[str] = []
    walker = etree.iterwalk(content, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            if element.tag in _ON_OWN_LINES:
                parts.append("\n")
            parts.append("" if element is content else element.tail or "")
            continue
        formula = maths_of(element)
        hidden = element is not content and is_chrome(element) and element.get("role") != "tab"
        if formula is not None and not hidden:
            parts.append(f" {formula[0]} ")
        elif hidden:
            pass
        else:
            parts.append("\n" if element.tag in _ON_OWN_LINES else "")
            parts.append(f" {element.get('alt', '')} " if element.tag == "img" else "")
            parts.append(element.text or "")
            continue
        walker.skip_subtree()
    return tuple(words("".join(parts)))
