"""Visible text of inline tokens, and the text of a heading for github-slugger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from markdown_it.token import Token

from bythebook.sources.js_literals import UNKNOWN, evaluate, is_comment
from bythebook.sources.markdown.jsx import Expression, Tag

_SPACES = re.compile(r"[ \t]+")
_AROUND_BREAK = re.compile(" ?\n ?")  # expects runs of blanks already collapsed

Values = Mapping[str, object]  # values of names in expressions: props, exported constants
_NO_VALUES: Values = {}


def visible(children: Sequence[Token], values: Values = _NO_VALUES) -> str:
    """Return plain text without markup: links as their text, images as their alt text."""
    if len(children) == 1 and children[0].type == "text":  # fast path: the most common case
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
    """Return whether an image's alt text would run into the adjacent word."""
    return bool(parts) and parts[-1][-1].isalnum() and part[0].isalnum()


def tidy(text: str) -> str:
    """Collapse blanks as the rendered page does; keep line ends, which are explicit breaks."""
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
    return "…" if value is None else value  # visible text that only the running site can compute


def shown_value(expression: Expression, values: Values = _NO_VALUES) -> str | None:
    """Return what React renders for an expression, or None if it is not a literal."""
    if is_comment(expression.code):
        return ""
    value = evaluate(expression.code, values)
    if value is UNKNOWN:
        return None
    if isinstance(value, (bool, dict)) or value is None:
        return ""
    if isinstance(value, list):
        return None if UNKNOWN in value else "".join(str(item) for item in value)
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


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
    """Return a heading's text as mdast-util-to-string passes it to the slugger."""
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
