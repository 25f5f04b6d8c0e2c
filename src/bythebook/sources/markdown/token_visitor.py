"""Conversion of tokens to the block tree, with one handler per token type."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

from markdown_it.token import Token

from bythebook.interfaces.blocks import (
    Block,
    Code,
    Maths,
    Paragraph,
)
from bythebook.sources.markdown.block_builder import Builder
from bythebook.sources.markdown.elements import HIDDEN_NAMES, settle_rows
from bythebook.sources.markdown.inline import tidy, visible
from bythebook.sources.markdown.jsx import Expression, Tag

Handler = Callable[[Builder, Token, Token], None]  # builder, token, previous token


def build(builder: Builder, tokens: Sequence[Token]) -> tuple[Block, ...]:
    before = Token("", "", 0)
    for token in tokens:
        if token.map:
            builder.line, builder.line_end = token.map
        handle = _HANDLERS.get(token.type)
        if handle is not None:
            handle(builder, token, before)
        before = token
    while len(builder.frames) > 1:
        builder.close()
    settle_rows(builder.frames[0], builder.span)
    builder.add_notes()
    return tuple(builder.frames[0].blocks)


def _on_inline(builder: Builder, token: Token, before: Token) -> None:
    children = token.children or []
    if before.type == "heading_open":
        builder.add_heading(int(before.tag[1]), children, before.meta.get("id", ""))
    elif before.type == "directive_open":
        builder.refer(children)
        builder.top.title += visible(children, builder.around.values).replace("\n", " ")
    elif before.type in ("th_open", "td_open"):
        _add_cell(builder, children)
    else:
        builder.add_inline(children)


def _add_cell(builder: Builder, children: Sequence[Token]) -> None:
    text = visible(children, builder.around.values).replace("\n", " ")
    builder.refer(children)
    table = next(frame for frame in reversed(builder.frames) if frame.name == "table")
    table.rows[-1] += (text,)


def _on_row(builder: Builder, token: Token, before: Token) -> None:
    builder.top.rows.append(())


def _on_list(builder: Builder, token: Token, before: Token) -> None:
    frame = builder.open("list")
    frame.ordered = token.type == "ordered_list_open"
    frame.first = int(token.attrs.get("start", 1))


def _on_directive(builder: Builder, token: Token, before: Token) -> None:
    builder.open("directive").title = token.info + "\n"
    if not token.meta["closed"]:
        builder.remark(f":::{token.info} is never closed; it takes in all that follows")


def _on_note(builder: Builder, token: Token, before: Token) -> None:
    builder.open("note").title = token.meta.get("label", "")


def _on_code(builder: Builder, token: Token, before: Token) -> None:
    language, title = read_info(token.info)
    text = token.content.removesuffix("\n")
    if language == "math" and builder.around.maths:
        builder.top.blocks.append(Maths(text, builder.span))
    else:
        builder.top.blocks.append(Code(language, title, text, builder.span))


def read_info(info: str) -> tuple[str, str]:
    """Return language and title from the info string of a fence: ``py title="a.py" {1}``."""
    info = html.unescape(info).strip()
    language = info.split(maxsplit=1)[0] if info and not info.startswith(("{", "title=")) else ""
    _, found, rest = info.partition("title=")
    title = ""
    if found and rest[:1] in ("'", '"'):
        title = rest[1:].partition(rest[0])[0]
    return language.partition("{")[0], title


def _on_maths(builder: Builder, token: Token, before: Token) -> None:
    builder.top.blocks.append(Maths(token.content.strip("\n"), builder.span))


def _on_flow(builder: Builder, token: Token, before: Token) -> None:
    for part in token.meta["parts"]:
        if isinstance(part, Tag):
            builder.report_unclosed(part)
            builder.report_properties(part)
            builder.add_tag(part)
        elif isinstance(part, Expression):
            builder.add_expression(part)
        elif builder.top.name not in HIDDEN_NAMES and (text := tidy(part.replace("\n", " "))):
            builder.top.blocks.append(Paragraph(text, builder.span))


def _opens(name: str) -> Handler:
    def open_frame(builder: Builder, token: Token, before: Token) -> None:
        builder.open(name)

    return open_frame


def _closes(name: str) -> Handler:
    def close_frame(builder: Builder, token: Token, before: Token) -> None:
        builder.close_markdown(name)

    return close_frame


_HANDLERS: Mapping[str, Handler] = {
    "inline": _on_inline,
    "fence": _on_code,
    "code_block": _on_code,
    "maths_block": _on_maths,
    "flow": _on_flow,
    "bullet_list_open": _on_list,
    "ordered_list_open": _on_list,
    "bullet_list_close": _closes("list"),
    "ordered_list_close": _closes("list"),
    "list_item_open": _opens("item"),
    "list_item_close": _closes("item"),
    "blockquote_open": _opens("quote"),
    "blockquote_close": _closes("quote"),
    "directive_open": _on_directive,
    "directive_close": _closes("directive"),
    "table_open": _opens("table"),
    "table_close": _closes("table"),
    "tr_open": _on_row,
    "footnote_reference_open": _on_note,
    "footnote_reference_close": _closes("note"),
}
