"""Conversion of tokens to the block tree."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from markdown_it.token import Token

from bythebook.interfaces.blocks import Block, Code, Maths, Paragraph
from bythebook.sources.markdown.block_builder import Builder
from bythebook.sources.markdown.elements import HIDDEN_NAMES, settle_rows, shown_properties
from bythebook.sources.markdown.inline import on_one_line, tidy, visible
from bythebook.sources.markdown.jsx import Expression, Tag

# Markdown containers: token type without "_open" or "_close" -> frame name.
_CONTAINERS = {
    "bullet_list": "list",
    "ordered_list": "list",
    "list_item": "item",
    "blockquote": "quote",
    "directive": "directive",
    "table": "table",
    "footnote_reference": "note",
}


# A chunk of R Markdown or Quarto, or Pandoc's attributes: ``{r, echo=FALSE}``, ``{.python}``.
_CHUNK = re.compile(r"\{\s*\.?([A-Za-z][\w+-]*+)[^{}]*+\}\Z")


def build(builder: Builder, tokens: Sequence[Token]) -> tuple[Block, ...]:
    before = Token("", "", 0)
    for token in tokens:
        if token.map:
            builder.line, builder.line_end = token.map
        _visit(builder, token, before)
        before = token
    while len(builder.frames) > 1:
        builder.close()
    settle_rows(builder.frames[0], builder.span)
    builder.add_notes()
    return tuple(builder.frames[0].blocks)


def _visit(builder: Builder, token: Token, before: Token) -> None:
    container, _, edge = token.type.rpartition("_")
    if container in _CONTAINERS and edge == "open":
        _open_container(builder, _CONTAINERS[container], token)
    elif container in _CONTAINERS and edge == "close":
        builder.close_markdown(_CONTAINERS[container])
    else:
        match token.type:
            case "inline":
                _add_inline(builder, token.children or [], before)
            case "fence" | "code_block":
                _add_code(builder, token)
            case "maths_block":
                builder.top.blocks.append(Maths(token.content.strip("\n"), builder.span))
            case "flow":
                _add_flow(builder, token)
            case "tr_open":
                builder.top.rows.append(())


def _open_container(builder: Builder, name: str, token: Token) -> None:
    frame = builder.open(name)
    if name == "list":
        frame.ordered = token.type == "ordered_list_open"
        frame.first = int(token.attrs.get("start", 1))
    elif name == "note":
        frame.title = token.meta.get("label", "")
    elif name == "directive":
        frame.title = token.info + "\n"
        if not token.meta["closed"]:
            builder.remark(f":::{token.info} is never closed; it takes in all that follows")


def _add_inline(builder: Builder, children: Sequence[Token], before: Token) -> None:
    if before.type == "heading_open":
        builder.add_heading(before, children)
    elif before.type == "directive_open":
        builder.refer(children)
        builder.top.title += visible(children, builder.around.values).replace("\n", " ")
    elif before.type in ("th_open", "td_open"):
        _add_cell(builder, children)
    else:
        builder.add_inline(children)


def _add_cell(builder: Builder, children: Sequence[Token]) -> None:
    text = on_one_line(visible(children, builder.around.values))
    builder.refer(children)
    table = next(frame for frame in reversed(builder.frames) if frame.name == "table")
    table.rows[-1] += (text,)


def _add_code(builder: Builder, token: Token) -> None:
    language, title = read_info(token.info)
    text = token.content.removesuffix("\n")
    if language == "math" and builder.around.maths:
        builder.top.blocks.append(Maths(text, builder.span))
    else:
        builder.top.blocks.append(Code(language, title, text, builder.span))


def read_info(info: str) -> tuple[str, str]:
    """Return language and title from the info string of a fence: ``py title="a.py" {1}``."""
    info = html.unescape(info).strip()
    if chunk := _CHUNK.match(info):
        return chunk[1], ""
    language = info.split(maxsplit=1)[0] if info and not info.startswith(("{", "title=")) else ""
    _, has_title, rest = info.partition("title=")
    title = ""
    if has_title and rest[:1] in ("'", '"'):
        title = rest[1:].partition(rest[0])[0]
    return language.partition("{")[0], title


def _add_flow(builder: Builder, token: Token) -> None:
    for part in token.meta["parts"]:
        if isinstance(part, Tag):
            builder.report_unclosed(part)
            builder.report_properties(part, shown_properties(part))
            builder.add_tag(part)
        elif isinstance(part, Expression):
            builder.add_expression(part)
        elif builder.top.name not in HIDDEN_NAMES and (text := tidy(part.replace("\n", " "))):
            builder.top.blocks.append(Paragraph(text, builder.span))
