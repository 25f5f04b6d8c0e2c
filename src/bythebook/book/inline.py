"""What a reader sees of one line of tokens, and what github-slugger is given of a heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from markdown_it.token import Token

from bythebook.book.js import UNKNOWN, is_comment, read_literal
from bythebook.book.jsx import Expression, Tag

_SPACES = re.compile(r"[ \t]+")
_AROUND_BREAK = re.compile(" ?\n ?")  # where blanks stand alone

Values = Mapping[str, object]  # what names in expressions stand for: props, exported constants
_NO_VALUES: Values = {}


def visible(children: Sequence[Token], values: Values = _NO_VALUES) -> str:
    """Plain text: markers gone, links as their words, images as their alternative text."""
    if len(children) == 1 and children[0].type == "text":  # most lines of most books
        return tidy(children[0].content)
    parts: list[str] = []
    beside_image = False
    for child in children:
        part = _visible_part(child, values)
        is_image = child.type == "image"
        if part and (is_image or beside_image) and _would_join(parts, part):
            parts.append(" ")
        if part:
            parts.append(part)
            beside_image = is_image
    return tidy("".join(parts))


def _would_join(parts: list[str], part: str) -> bool:
    """Whether an image's words would run into the words beside it."""
    return bool(parts) and parts[-1][-1].isalnum() and part[0].isalnum()


def tidy(text: str) -> str:
    """One space where the page shows one; line ends only where the page breaks the line."""
    if "  " in text or "\t" in text:
        text = _SPACES.sub(" ", text)
    if "\n" in text:
        text = _AROUND_BREAK.sub("\n", text)
    return text.strip(" \n")


def _visible_part(token: Token, values: Values) -> str:
    read = _PARTS.get(token.type)
    return read(token, values) if read else ""


def _tag_part(token: Token, values: Values) -> str:
    tag: Tag = token.meta["tag"]
    if tag.is_literal:
        return tag.raw
    return "\n" if tag.name == "br" else tag.text_of("alt")


def _expression_part(token: Token, values: Values) -> str:
    value = shown_value(token.meta["expression"], values)
    return "…" if value is None else value  # something stands there, and only the site knows what


def shown_value(expression: Expression, values: Values = _NO_VALUES) -> str | None:
    """What React draws for an expression: None if only the running site could know."""
    if is_comment(expression.code):
        return ""
    code = expression.code.strip()
    value = values[code] if code in values else read_literal(code)
    if value is UNKNOWN:
        return None
    if isinstance(value, (bool, dict)) or value is None:
        return ""
    if isinstance(value, list):
        return None if UNKNOWN in value else "".join(str(item) for item in value)
    return str(value)


_PARTS: Mapping[str, Callable[[Token, Values], str]] = {
    "text": lambda token, _: token.content,
    "text_special": lambda token, _: token.content,
    "code_inline": lambda token, _: token.content,
    "maths_inline": lambda token, _: token.markup + token.content + token.markup,
    "softbreak": lambda token, _: " ",
    "hardbreak": lambda token, _: "\n",
    "image": lambda token, values: visible(token.children or (), values),
    "tag": _tag_part,
    "expression": _expression_part,
}


def slug_text(children: Iterable[Token]) -> str:
    """A heading's text as mdast-util-to-string gives it to the slugger."""
    return "".join(_slug_part(child) for child in children)


def _slug_part(token: Token) -> str:
    if token.type == "image":
        return slug_text(token.children or ())
    if token.type == "expression":
        expression: Expression = token.meta["expression"]
        return expression.code
    if token.type == "tag":
        tag: Tag = token.meta["tag"]
        return tag.raw if tag.is_literal else ""
    if token.type == "softbreak":
        return "\n"
    return token.content if token.type in ("text", "code_inline", "maths_inline") else ""
