"""Words of a page, taken from its element tree before anything is removed from it.

The count shares nothing with the block builder, so that what the builder loses shows as missing
words. What is removed on purpose is counted as left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from bythebook.interfaces.blocks import LeftOut
from bythebook.language.text import word_set, words
from bythebook_formats.html.content import is_tab
from bythebook_formats.html.text import BLOCKS, UNSEEN, description
from bythebook_formats.html.tree import Element

_NOT_SHOWN = word_set("head script style template noscript")
# Blanks stand around these.
_APART = BLOCKS | word_set("body br button label nav option sup")
_LEAVES = ("mi", "mn", "mo", "ms", "mtext")  # of MathML
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_OUTSIDE = "outside of the page's main part"
_DRAWN = "text in drawings, media and fields of forms"
_OTHER = "navigation, headers, footers and controls"
# By tag, role, type, id and class names of what is removed.
_REASONS = (
    (re.compile(r"\A(?:iframe|object|embed|audio|video|canvas|svg|select|textarea)\b"), _DRAWN),
    (re.compile(r"katex|mathjax", re.I), "second copies of formulas"),
    (re.compile(r"line-?n|gutter|hljs-ln|prompt", re.I), "line numbers and prompts"),
    (re.compile(r"foot|fn-?(?:ref|back)|noteref|backlink|pagebreak"), "marks of notes and pages"),
    (re.compile(r"anchor|link|\Aa\b"), "links to headings"),
    (re.compile(r"toc|contents"), "tables of contents"),
    (re.compile(r"secn|(?:section|chapter)-number"), "numbers of sections"),
    (re.compile(r"author|\bdate|meta|byline"), "authors and dates"),
    (re.compile(r"hidden|sr-only|screen-reader|boring"), "hidden text"),
)


def page_words(
    body: Element, content: Element, removed: Sequence[Element]
) -> tuple[list[str], list[LeftOut]]:
    """Return the words in ``content``, and what of ``body`` is outside of it or will be removed."""
    chrome = set(removed)
    left_out: list[LeftOut] = []
    outside: list[str] = []
    parts: list[str] = []
    into = parts if content is body else outside
    walker = etree.iterwalk(body, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            into.append("\n" if element.tag in _APART else "")
            into = outside if element is content and content is not body else into
            into.append("" if element is body else element.tail or "")
        elif element in chrome:
            walker.skip_subtree()
            if not _is_unseen(element):
                left_out.append(LeftOut(_reason(element), _text(element)))
        elif _is_unseen(element) and element is not content:
            walker.skip_subtree()
        else:
            into = parts if element is content else into
            into.append(_opening(element))
            if element.tag == "math":
                walker.skip_subtree()
    left_out.append(LeftOut(_OUTSIDE, " ".join("".join(outside).split())))
    found = words("".join(parts).translate(UNSEEN))
    return found, [each for each in left_out if each.text]


def _is_unseen(element: Element) -> bool:
    if element.tag == "script" and element.get("type", "").startswith("math/"):
        return False  # MathJax shows it
    is_hidden = "hidden" in element.attrib and element.get("role") != "tabpanel"
    return is_hidden or element.tag in _NOT_SHOWN


def _opening(element: Element) -> str:
    if element.tag == "math":
        return _formula(element)
    if element.tag == "img":
        return description(element)
    is_apart = element.tag in _APART or is_tab(element)
    return f"\n{element.text or ''}" if is_apart else element.text or ""


def _formula(element: Element) -> str:
    """Return the signs of a formula; if there is TeX as well, only those that it may have, too."""
    text = " ".join(["", *(each.text or "" for each in element.iter(*_LEAVES)), ""])
    has_source = element.get("alttext") or element.find(".//annotation") is not None
    return _NOT_ASCII.sub(" ", text) if has_source else text


def _reason(element: Element) -> str:
    names = " ".join(
        [str(element.tag), *(element.get(name, "") for name in ("role", "type", "id", "class"))]
    )
    return next((reason for mark, reason in _REASONS if mark.search(names)), _OTHER)


def _text(element: Element) -> str:
    return " ".join(" ".join(map(str, element.itertext())).translate(UNSEEN).split())
