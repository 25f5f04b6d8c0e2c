"""A directive of MyST, and the tokens that directives are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from markdown_it.rules_block import StateBlock

_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class Directive:
    """Directive with the lines that it covers."""

    name: str
    argument: str
    options: Mapping[str, object]
    start: int  # line of the opening fence
    first: int  # first line of the content
    last: int  # line after the content
    following: int  # line after the closing fence

    def option(self, name: str) -> str:
        value = self.options.get(name)
        return str(value) if isinstance(value, (str, int, float)) else ""

    @property
    def closed(self) -> bool:
        return self.following > self.last


def write_box(state: StateBlock, found: Directive, title: str) -> None:
    open_box(state, found, title)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def open_box(state: StateBlock, found: Directive, title: str, *, kind: str = "myst") -> None:
    token = state.push("directive_open", "", 1)
    token.info, token.map = kind, [found.start, found.following]
    token.meta = {"closed": True}
    push_inline(state, title, found.start)


def push_inline(state: StateBlock, text: str, line: int) -> None:
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = text, [line, line + 1], []


def push_paragraph(state: StateBlock, text: str, line: int) -> None:
    state.push("paragraph_open", "p", 1).map = [line, line + 1]
    push_inline(state, text, line)
    state.push("paragraph_close", "p", -1)


def tokenize_inside(state: StateBlock, start: int, end: int, indent: int | None = None) -> None:
    outer = state.lineMax, state.parentType, state.blkIndent
    state.lineMax, state.parentType = end, "container"
    state.blkIndent = state.blkIndent if indent is None else indent
    state.md.block.tokenize(state, start, end)
    state.lineMax, state.parentType, state.blkIndent = outer


def escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def content_of(state: StateBlock, found: Directive) -> str:
    return state.getLines(found.first, found.last, state.sCount[found.start], True)


def without_blank_start(state: StateBlock, found: Directive) -> Directive:
    first = found.first
    while first < found.last and state.isEmpty(first):
        first += 1
    return replace(found, first=first)
