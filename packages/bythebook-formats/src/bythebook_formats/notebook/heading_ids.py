"""Ids of headings by the rules of nbconvert, docutils (Sphinx, Jupyter Book 1) and mystmd.

Each rule sees all tokens of a page in order, because ids depend on earlier headings and labels. One
object is used for one page; the Markdown cells of a notebook are given to it one after the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from bythebook.sources.markdown.jsx import Tag

_NOT_IN_ID = re.compile(r"[^a-z0-9]+")
_NOT_IN_HTML_ID = re.compile(r"[^a-z0-9-]")
_HYPHENS = re.compile(r"--+")
_QUOTES = re.compile("['‘’\"“”]+")
_NBCONVERT_SAFE = "?/:@!$&'()*+,;="

# docutils' table of letters that Unicode does not decompose.
_LETTERS = str.maketrans(
    {
        **{"ß": "sz", "æ": "ae", "œ": "oe", "ȸ": "db", "ȹ": "qp", "ø": "o", "đ": "d", "ħ": "h"},
        **{"ı": "i", "ł": "l", "ŧ": "t", "ƀ": "b", "ƃ": "b", "ƈ": "c", "ƌ": "d", "ƒ": "f"},
        **{"ƙ": "k", "ƚ": "l", "ƞ": "n", "ƥ": "p", "ƫ": "t", "ƭ": "t", "ƴ": "y", "ƶ": "z"},
        **{"ǥ": "g", "ȥ": "z", "ȴ": "l", "ȵ": "n", "ȶ": "t", "ȷ": "j", "ȼ": "c", "ȿ": "s"},
        **{"ɀ": "z", "ɇ": "e", "ɉ": "j", "ɋ": "q", "ɍ": "r", "ɏ": "y"},
    }
)


class HeadingIds(Protocol):
    """Rule that sets ``meta["anchor"]`` of the headings that have an id in the built page."""

    def assign(self, tokens: Sequence[Token]) -> None: ...


def add_heading_ids(parser: MarkdownIt) -> None:
    """Give headings the ids of the rule in ``env["heading_ids"]``, or none."""
    parser.core.ruler.disable("heading_ids")
    parser.core.ruler.push("built_ids", _assign)


def _assign(state: StateCore) -> None:
    for opening, _ in _headings(state.tokens):
        opening.meta["anchor"] = ""
    ids: HeadingIds | None = state.env.get("heading_ids")
    if ids is not None:
        ids.assign(state.tokens)


class NbconvertIds:
    """Rule of nbconvert: the text with hyphens for spaces, quoted as in a URL.

    Equal headings have equal ids; links go to the first, so that only that one gets it here.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def assign(self, tokens: Sequence[Token]) -> None:
        for opening, inline in _headings(tokens):
            children = inline.children or []
            name = quote(_text(children, maths="$").replace(" ", "-"), safe=_NBCONVERT_SAFE)
            if name and name not in self._seen and _is_xml(children):
                opening.meta["anchor"] = name
            self._seen.add(name)


class DocutilsIds:
    """Rule of docutils: an id made of the text, or ``id1``, ``id2`` … if that is taken or empty.

    The numbers are shared with labels, footnote references and, if the book has a bibliography,
    citations of the page. After content whose ids are not known here (reStructuredText, lists of
    references), a heading with a number gets no id.
    """

    def __init__(self, *, citations: bool = False) -> None:
        self._citations = citations
        self._taken: set[str] = set()
        self._count = 0
        self._is_sure = True

    def assign(self, tokens: Sequence[Token]) -> None:
        in_notes, labels = 0, list[str]()
        for before, token in pairwise((Token("", "", 0), *tokens)):
            if token.type.startswith("footnote_reference_"):
                in_notes += token.nesting
            if in_notes:
                continue  # footnotes are at the end of the page
            self._is_sure = self._is_sure and not token.meta.get("unparsed")
            self._number_references(token.children or ())
            if before.type == "heading_open":
                self._assign(before, token, labels)
                labels = []
            elif token.type == "myst_target":
                labels.append(token.content)
            elif token.type != "heading_open":
                self._take(labels)
                labels = []
            if token.meta.get("name"):
                self._take([token.meta["name"]])

    def _number_references(self, children: Sequence[Token]) -> None:
        for child in children:
            is_citation = self._citations and child.meta.get("role") == "cite"
            if is_citation or child.type == "footnote_ref":
                self._next()

    def _assign(self, opening: Token, inline: Token, labels: Sequence[str]) -> None:
        """Set the id of a heading. The ids of labels before it are made after its own."""
        own = self._id_of(_text(inline.children or []))
        opening.meta["anchor"] = next(filter(None, (own, *self._take(labels))), "")

    def _take(self, labels: Sequence[str]) -> list[str]:
        return [self._id_of(label) for label in labels]

    def _id_of(self, text: str) -> str:
        """Return an id that is not taken, or "" if it is a number that is not known for sure."""
        name = docutils_id(text)
        if name and name not in self._taken:
            self._taken.add(name)
            return name
        number = self._next()
        return number if self._is_sure else ""

    def _next(self) -> str:
        while True:
            self._count += 1
            name = f"id{self._count}"
            if name not in self._taken:
                self._taken.add(name)
                return name


class MystIds:
    """Rule of mystmd: the label before the heading or else its text; copies are numbered.

    The first heading of a page is its title, which has no id.
    """

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}  # with the number of copies so far
        self._is_first = True

    def assign(self, tokens: Sequence[Token]) -> None:
        label = ""
        for before, token in pairwise((Token("", "", 0), *tokens)):
            if token.type == "myst_target":
                label = myst_id(token.content)
            elif token.meta.get("name"):
                self._unique(myst_id(token.meta["name"]))
            elif before.type == "heading_open":
                name = label or myst_id(_text(token.children or []))
                is_title = self._is_first and before.tag == "h1"
                before.meta["anchor"] = "" if is_title or not name else self._unique(name)
                self._is_first, label = False, ""
            elif token.type != "heading_open":
                if label:
                    self._unique(label)
                label, self._is_first = "", False

    def _unique(self, name: str) -> str:
        result = name
        while result in self._taken:
            self._taken[name] += 1
            result = f"{name}-{self._taken[name]}"
        self._taken[result] = 0
        return result


def docutils_id(text: str) -> str:
    """Return ``docutils.nodes.make_id(text)``."""
    letters = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    plain = letters.encode("ascii", "ignore").decode("ascii")
    return _NOT_IN_ID.sub("-", " ".join(plain.split())).lstrip("-0123456789").rstrip("-")


def myst_id(text: str) -> str:
    """Return the ``html_id`` that mystmd makes of a label or heading."""
    identifier = _QUOTES.sub("", " ".join(text.split())).strip().lower()
    name = _NOT_IN_HTML_ID.sub("-", identifier)
    name = f"id-{name}" if name[:1].isdigit() or name[:1] == "-" else name
    return _HYPHENS.sub("-", name).strip("-")


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    return (pair for pair in pairwise(tokens) if pair[0].type == "heading_open")


def _text(children: Sequence[Token], *, maths: str = "") -> str:
    """Return the text of a heading without images. ``maths``: the sign around formulas."""
    return "".join(_part(child, maths) for child in children)


def _part(child: Token, maths: str) -> str:
    if child.type in ("softbreak", "hardbreak"):
        return "\n"
    if child.type == "maths_inline":
        return maths + child.content + maths
    return child.content if child.type in ("text", "text_special", "code_inline") else ""


def _is_xml(children: Sequence[Token]) -> bool:
    """Return whether the tags of a heading are well formed; nbconvert leaves out the id if not."""
    opened: list[str] = []
    for child in children:
        if child.type != "tag":
            continue
        tag: Tag = child.meta["tag"]
        if tag.closing:
            if not opened or opened.pop() != tag.name:
                return False
        elif not tag.raw.endswith("/>"):
            opened.append(tag.name)
    return not opened
