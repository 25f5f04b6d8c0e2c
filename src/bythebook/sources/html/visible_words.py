"""Visible words of a page, counted without its blocks, so that losses show as missing words."""

from __future__ import annotations

from lxml import etree

from bythebook.language.text import words
from bythebook.sources.html.content import is_tab
from bythebook.sources.html.maths import maths_of
from bythebook.sources.html.text import BLOCKS, UNSEEN, is_power
from bythebook.sources.html.tree import Element

_ON_OWN_LINES = BLOCKS | {"label", "br", "option"}


def visible_words(content: Element) -> tuple[str, ...]:
    """Return the words that a reader sees, in page order. Chrome has been removed."""
    parts: list[str] = []
    walker = etree.iterwalk(content, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            if element.tag in _ON_OWN_LINES:
                parts.append("\n")
            parts.append("" if element is content else element.tail or "")
            continue
        formula = maths_of(element)
        if formula is not None:
            parts.append(f" {formula[0]} ")
            walker.skip_subtree()
            continue
        if element.tag in _ON_OWN_LINES or is_tab(element):
            parts.append("\n")
        if element.tag == "img":
            parts.append(f" {element.get('alt', '')} ")
        text = element.text or ""
        parts.append(f"^{text}" if element.tag == "sup" and is_power(text) else text)
    return tuple(words("".join(parts).translate(UNSEEN)))
