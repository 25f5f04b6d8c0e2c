"""Visible text of inline tokens with its marks, and the text of a heading for github-slugger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

from markdown_it.token import Token

from bythebook.interfaces.blocks import marked, marks_of
from bythebook.sources.js_literals import UNKNOWN, evaluate, is_comment
from bythebook.sources.markdown.jsx import Expression, Tag
from bythebook.types import Mark, MarkKind

_SPACES = re.compile(r"[ \t]+")
_AROUND_BREAK = re.compile(" ?\n ?")  # expects runs of blanks already collapsed

_MAX_OPEN = 50  # elements within one another; deeper ones mark nothing

Values = Mapping[str, object]  # values of names in expressions: props, exported constants
_NO_VALUES: Values = {}


_MARKS = {
    "strong": MarkKind.STRONG,
    "b": MarkKind.STRONG,
    "em": MarkKind.EMPHASIS,
    "i": MarkKind.EMPHASIS,
    "s": MarkKind.STRUCK,
    "del": MarkKind.STRUCK,
    "code": MarkKind.CODE,
    "kbd": MarkKind.CODE,
    "samp": MarkKind.CODE,
    "tt": MarkKind.CODE,
    "link": MarkKind.LINK,
    "a": MarkKind.LINK,
    "Link": MarkKind.LINK,
}


class InlineText:
    """Builder of a text with marks, piece by piece."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._size = 0
        self._open: list[tuple[str, Mark | None]] = []
        self._marks: list[Mark] = []

    def add(self, text: str) -> None:
        self.parts.append(text)
        self._size += len(text)

    def open(self, name: str, target: str = "") -> None:
        """Begin what an element or a token of this name marks, if it marks something."""
        kind = _MARKS.get(name)
        if kind is not None and len(self._open) < _MAX_OPEN:
            in_code = any(mark and mark.kind is MarkKind.CODE for _, mark in self._open)
            mark = None if in_code else Mark(self._size, 0, kind, target.strip())
            self._open.append((name, mark))

    def close(self, name: str) -> None:
        if all(name != opened for opened, _ in self._open):
            return
        opened, mark = self._open.pop()
        while opened != name:  # an element that is never closed marks nothing
            opened, mark = self._open.pop()
        if mark is not None:
            self._marks.append(mark._replace(end=self._size))

    def add_marked(self, text: str, kind: MarkKind, target: str = "") -> None:
        self._marks.append(Mark(self._size, self._size + len(text), kind, target.strip()))
        self.add(text)

    def text(self, normalize: Callable[[str], str]) -> str:
        """Return the text after ``normalize``, which may change white space only."""
        raw = "".join(self.parts)
        text = normalize(raw)
        if not self._marks:
            return text
        if text == raw:  # the most common case
            bare = [(mark, raw[mark.start : mark.end]) for mark in reversed(self._marks)]
            marks = [
                mark._replace(
                    start=mark.end - len(piece.lstrip()), end=mark.start + len(piece.rstrip())
                )
                for mark, piece in bare
                if piece and not piece.isspace()
            ]
        else:
            counts = [0, *accumulate(not char.isspace() for char in raw)]
            places = [at for at, char in enumerate(text) if not char.isspace()]
            marks = [
                mark._replace(
                    start=places[counts[mark.start]], end=places[counts[mark.end] - 1] + 1
                )
                for mark in reversed(self._marks)
                if counts[mark.start] < counts[mark.end]
            ]
        return marked(text, sorted(marks, key=lambda mark: (mark.start, -mark.end)))


def visible(children: Sequence[Token], values: Values = _NO_VALUES) -> str:
    """Return the visible text with its marks: links as their text, images as their alt text."""
    if len(children) == 1 and children[0].type == "text":  # fast path: the most common case
        return tidy(children[0].content)
    made = InlineText()
    is_apart = False
    for before, child in pairwise((Token("", "", 0), *children)):
        name, _, edge = child.type.rpartition("_")
        if edge == "open":
            # "`a`[b]" is often meant as "[`a`][b]"
            is_apart |= name == "link" and before.type == "code_inline"
            made.open(name, str(child.attrGet("href") or ""))
        elif edge == "close":
            made.close(name)
        elif child.type == "tag" and not child.meta["tag"].is_literal:
            _mark_tag(made, child.meta["tag"])
        part = _visible_part(child, values)
        is_image = child.type == "image"
        if part and (is_image or is_apart) and _would_join(made.parts, part):
            made.add(" ")
        if part:
            _add_part(made, child, part)
            is_apart = is_image
    return made.text(tidy)


def _mark_tag(made: InlineText, tag: Tag) -> None:
    if tag.closing:
        made.close(tag.name)
    elif not tag.alone:
        made.open(tag.name, tag.text_of("href") or tag.text_of("to"))


def _add_part(made: InlineText, token: Token, part: str) -> None:
    if token.type == "image":
        made.add_marked(part, MarkKind.IMAGE, str(token.attrGet("src") or ""))
    elif token.type == "code_inline":
        made.add_marked(part, MarkKind.CODE)
    elif token.type == "tag" and token.meta["tag"].name == "img":
        made.add_marked(part, MarkKind.IMAGE, token.meta["tag"].text_of("src"))
    else:
        made.add(part)


def _would_join(parts: list[str], part: str) -> bool:
    """Return whether a text would run into the word before it."""
    return bool(parts) and parts[-1][-1].isalnum() and part[0].isalnum()


def on_one_line(text: str) -> str:
    return marked(text.replace("\n", " "), marks_of(text))


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
