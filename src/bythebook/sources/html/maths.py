"""Source of formulas: TeX beside MathML, MathJax and KaTeX, or made of MathML."""

from __future__ import annotations

import re

from bythebook.sources.html.content import classes
from bythebook.sources.html.mathml import tex_of
from bythebook.sources.html.tree import Element, all_text

_HOLDERS = frozenset(("katex", "katex-display", "math", "arithmatex", "mathjax", "MathJax"))
_DELIMITERS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))
_TEX_ENCODING = re.compile(r"tex(?![a-z])", re.I)
# A command, a script, or nothing longer than two letters.
_TEX = re.compile(r"\\[a-zA-Z]|\w[\^_]|\A(?:[^\W\d_]{1,2}+(?![^\W\d_])|[\W\d_])++\Z")
_FILE = re.compile(r"\w\.[a-z]{3,4}\Z")
_STARMATH = re.compile(r"\bsize \d+\s*\{|\} over \{|\br?[Ss](?:ub|up) \{")
_PLACEHOLDER = re.compile(
    r"(?:alternat\w+ text\b.*|(?:image|math\w*|formula|equation|figure|graphic)\W*\d*)?", re.I
)


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
    """Return TeX that the author or a converter has left, or else make it of the elements."""
    for annotation in element.iterfind(".//annotation"):
        text = (annotation.text or "").strip()
        if _TEX_ENCODING.search(annotation.get("encoding", "")) and not _STARMATH.search(text):
            return text
    alternative = " ".join(element.get("alttext", "").split())
    is_tex = _TEX.search(alternative) and not _FILE.search(alternative)
    if is_tex and not _STARMATH.search(alternative):
        return alternative
    return tex_of(element) or ("" if _PLACEHOLDER.fullmatch(alternative) else alternative)


def _without_delimiters(text: str) -> tuple[str, bool] | None:
    for opening, closing in _DELIMITERS:
        start, end = text.find(opening), text.rfind(closing)
        if start >= 0 and end >= start + len(opening):
            inner = text[start + len(opening) : end].strip()  # outside is an equation's number
            return inner, opening in ("\\[", "$$")
    return None
