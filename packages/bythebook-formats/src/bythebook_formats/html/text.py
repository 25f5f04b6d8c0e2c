"""Visible text of inline content and of code."""

from __future__ import annotations

import re

from lxml import etree

from bythebook.sources.markdown.inline import InlineText, tidy
from bythebook.types import MarkKind
from bythebook_formats.html.maths import maths_of
from bythebook_formats.html.tree import Element

_WHITE = re.compile(r"[ \t\r\n\f]+")
UNSEEN = {0xAD: None, 0x200B: None}  # soft hyphens, zero-width spaces
_FILE = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|pdf|eps|tiff?|bmp|avif)", re.I)
_POWER = re.compile(r"[-+−]?[0-9]{1,4}")
_CODE = frozenset(("code", "kbd", "samp", "tt", "pre"))
_LINES = frozenset(("div", "p", "li", "tr"))
# Elements that stand on lines of their own.
BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "caption", "center", "dd", "details"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "h1", "h2", "h3", "h4"),
        *("h5", "h6", "header", "hr", "legend", "li", "main", "ol", "p", "pre", "section"),
        *("summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    ]
)


def squeeze(text: str | None) -> str:
    """Return source text as a browser shows it: every run of white space is one blank."""
    return _WHITE.sub(" ", text).translate(UNSEEN) if text else ""


def prose(text: str | None) -> str:
    """Return text outside of code, with the delimiters of MathJax written as dollar signs."""
    text = squeeze(text)
    if "\\" in text:
        for opening, closing, sign in (("\\(", "\\)", "$"), ("\\[", "\\]", "$$")):
            if opening in text and closing in text:
                text = text.replace(opening, sign).replace(closing, sign)
    return text


def add_inline(made: InlineText, element: Element) -> None:
    """Add the text of an inline element: formulas as TeX, images as their description."""
    codes = 0  # open elements of code
    walker = etree.iterwalk(element, events=("start", "end"))
    for event, each in walker:
        if event == "end":
            codes -= each.tag in _CODE
            made.close(str(each.tag))
            if each is not element:
                tail = squeeze(each.tail) if codes else prose(each.tail)
                made.add(("\n" if each.tag in BLOCKS else "") + tail)
            continue
        codes += each.tag in _CODE
        formula = maths_of(each)
        if formula is not None:
            walker.skip_subtree()
            made.add(f"${formula[0]}$" if formula[0] else "")
        elif each.tag == "img":
            made.add_marked(description(each), MarkKind.IMAGE, each.get("src", ""))
        else:
            made.open(str(each.tag), each.get("href", ""))
            made.add(_opening(each, squeeze(each.text) if codes else prose(each.text)))


def _opening(element: Element, text: str) -> str:
    if element.tag == "br":
        return "\n"
    if element.tag == "sup" and is_power(text):
        return f"^{text}"
    return ("\n" if element.tag in BLOCKS else "") + text


def is_power(text: str) -> bool:
    """Return whether a superscript is a number, which changes the meaning of what it follows."""
    return _POWER.fullmatch(text) is not None


def description(image: Element) -> str:
    """Return an image's alternative text, separated from the words around it; no file name."""
    text = squeeze(image.get("alt")).strip()
    if _FILE.fullmatch(text) or (text and "/" in text and text in image.get("src", "")):
        return ""
    return f" {text} " if text else ""


def one_line(element: Element) -> str:
    """Return the text of a heading, a title or a cell."""
    made = InlineText()
    add_inline(made, element)
    return made.text(lambda text: " ".join(tidy(text).split()))


def code_text(pre: Element) -> str:
    """Return code byte for byte, without line numbers and the last line end."""
    parts: list[str] = []
    walker = etree.iterwalk(pre, events=("start", "end"))
    for event, each in walker:
        if event == "start" and each.tag == "math":
            walker.skip_subtree()
            parts.append((maths_of(each) or ("", False))[0])
        elif event == "start":
            parts.append("\n" if each.tag == "br" else each.text or "")
        elif each is not pre:
            if each.tag in _LINES and not "".join(parts[-2:]).endswith("\n"):
                parts.append("\n")
            parts.append(each.tail or "")
    text = "".join(parts).replace("\r\n", "\n")
    if (pre.text or "").startswith("\n"):
        text = text[1:]  # HTML ignores a line end after <pre>
    return text.removesuffix("\n")
