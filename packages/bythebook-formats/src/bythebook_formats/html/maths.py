"""Source of formulas: TeX beside MathML, MathJax and KaTeX, or made of MathML."""

from __future__ import annotations

from typing import cast
from xml.etree import ElementTree

from bythebook.sources.mathml import tex_of
from bythebook_formats.html.content import classes
from bythebook_formats.html.tree import Element, all_text

_HOLDERS = frozenset(("katex", "katex-display", "math", "arithmatex", "mathjax", "MathJax"))
_DELIMITERS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


def maths_of(element: Element) -> tuple[str, bool] | None:
    """Return the source of a formula and whether it is displayed, or None if it is no formula."""
    if element.tag == "math":
        return _mathml(element), element.get("display") == "block" or element.get(
            "mode"
        ) == "display"
    if element.tag == "script" and element.get("type", "").startswith("math/tex"):
        return (element.text or "").strip(), "display" in element.get("type", "")
    if element.tag != "mjx-container" and "class" not in element.attrib:
        return None
    names = classes(element)
    if element.tag != "mjx-container" and _HOLDERS.isdisjoint(names):
        return None
    inner = element.find(".//math")
    is_display = "katex-display" in names or "display" in names or element.tag == "div"
    if inner is not None:
        return _mathml(inner), is_display or inner.get("display") == "block"
    text = all_text(element).strip()
    return _without_delimiters(text)


def _mathml(element: Element) -> str:
    return tex_of(cast("ElementTree.Element", element))  # has the same methods


def _without_delimiters(text: str) -> tuple[str, bool] | None:
    for opening, closing in _DELIMITERS:
        start, end = text.find(opening), text.rfind(closing)
        if start >= 0 and end >= start + len(opening):
            inner = text[start + len(opening) : end].strip()  # outside is an equation's number
            return inner, opening in ("\\[", "$$")
    return None
