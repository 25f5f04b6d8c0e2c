"""Tokens to the block tree: one pass with a stack of what is open."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from bythebook.book.blocks import (
    Block,
    Box,
    Code,
    Document,
    Heading,
    Listing,
    Maths,
    Paragraph,
    Quote,
    Remark,
    Span,
    Table,
)
from bythebook.book.elements import (
    ADMONITIONS,
    BLOCK_NAMES,
    HIDDEN_NAMES,
    Frame,
    admonition_title,
    finish_element,
)
from bythebook.book.inline import Values, shown_value, slug_text, tidy, visible
from bythebook.book.jsx import Expression, Tag
from bythebook.book.slugs import Slugger

_MAX_FRAMES = 80  # elements nested deeper are read for their text alone

Partial = Callable[[Tag, Span], Document | None]  # the file a tag stands for, if it is one


@dataclass(slots=True)
class Surroundings:
    """What a file needs to know beyond its own tokens."""

    span_of: Callable[[int, int], Span]  # lines -> offsets in the source file
    line_of: Callable[[int], int]  # line -> line of the source file, from 1
    partial: Partial
    values: Values
    maths: bool


@dataclass(slots=True)
class Builder:
    around: Surroundings
    frames: list[Frame] = field(default_factory=lambda: [Frame("page", 0)])
    headings: list[Heading] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    inlined: dict[int, Document] = field(default_factory=dict)  # id of a tag -> its file
    notes: dict[str, Frame] = field(default_factory=dict)
    note_order: dict[str, None] = field(default_factory=dict)
    slugger: Slugger = field(default_factory=Slugger)
    line: int = 0
    line_end: int = 0

    def build(self, tokens: Sequence[Token]) -> tuple[Block, ...]:
        for place, token in enumerate(tokens):
            if token.map:
                self.line, self.line_end = token.map
            handle = _HANDLERS.get(token.type)
            if handle is not None:
                handle(self, token, tokens[place - 1] if place else token)
        while len(self.frames) > 1:
            self.close()
        self._add_notes()
        return tuple(self.frames[0].blocks)

    # --- frames ---

    @property
    def top(self) -> Frame:
        return self.frames[-1]

    @property
    def span(self) -> Span:
        return self.around.span_of(self.line, self.line_end)

    def open(self, name: str, tag: Tag | None = None) -> Frame:
        self.frames.append(Frame(name, self.line, tag))
        return self.top

    def close(self) -> None:
        frame = self.frames.pop()
        span = self.around.span_of(frame.start, max(frame.start + 1, self.line_end))
        finish = _MARKDOWN.get(frame.name) if frame.tag is None else None
        if finish is not None:
            finish(self, frame, span)
            return
        if len(self.frames) > _MAX_FRAMES:
            self.top.blocks.extend(frame.blocks)
            return
        enclosing = next((f for f in reversed(self.frames) if f.name == "Tabs"), None)
        finish_element(frame, self.top, enclosing, span)

    def close_markdown(self, name: str) -> None:
        """Close a Markdown container and any element that was left open inside it."""
        while len(self.frames) > 1:
            done = self.top.name == name and self.top.tag is None
            self.close()
            if done:
                return

    # --- text ---

    def add_text(self, children: Sequence[Token]) -> None:
        text = visible(children, self.around.values)
        if text:
            self.top.blocks.append(Paragraph(text, self.span))

    def add_inline(self, children: Sequence[Token]) -> None:
        """A paragraph, cut where an element that stands on its own begins or ends."""
        start = 0
        for place, child in enumerate(children):
            if child.type == "footnote_ref":
                self.note_order.setdefault(child.meta.get("label", ""))
            elif child.type == "expression":
                self.report_expression(child.meta["expression"])
            elif child.type == "tag":
                self.report_properties(child.meta["tag"])
                if self.stands_alone(child.meta["tag"]):
                    self.add_text(children[start:place])
                    self.add_tag(child.meta["tag"])
                    start = place + 1
        self.add_text(children[start:])

    def stands_alone(self, tag: Tag) -> bool:
        if tag.is_literal:
            return False
        return tag.name in BLOCK_NAMES or self._partial(tag) is not None

    def _partial(self, tag: Tag) -> Document | None:
        if tag.closing or not tag.name[:1].isupper():
            return None
        if id(tag) not in self.inlined:
            document = self.around.partial(tag, self.span)
            if document is None:
                return None
            self.inlined[id(tag)] = document
        return self.inlined[id(tag)]

    # --- tags ---

    def add_tag(self, tag: Tag) -> None:
        if tag.is_literal:
            self.top.blocks.append(Paragraph(tag.raw, self.span))
        elif tag.closing:
            if tag.paired:
                self._close_tag(tag)
        elif (document := self._partial(tag)) is not None:
            self.top.blocks.extend(document.blocks)
            self.headings.extend(document.headings)
            self.remarks.extend(document.remarks)
        else:
            if tag.text_of("alt"):
                self.top.blocks.append(Paragraph(tidy(tag.text_of("alt")), self.span))
            if tag.paired or tag.alone:
                self.open(tag.name, tag)
            if tag.alone:
                self.close()

    def _close_tag(self, tag: Tag) -> None:
        for frame in reversed(self.frames):
            if frame.tag is None:
                return  # the element began outside this list, quote or box
            if frame.name == tag.name:
                break
        while self.top.name != tag.name:
            self.close()
        self.close()

    def add_expression(self, expression: Expression) -> None:
        text = shown_value(expression, self.around.values)
        self.report_expression(expression)
        if text and self.top.name in ("CodeBlock", "Code", "pre"):
            self.top.blocks.append(Paragraph(text.removesuffix("\n"), self.span))
        elif text and text.strip():
            self.top.blocks.append(Paragraph(tidy(text), self.span))

    def report_expression(self, expression: Expression) -> None:
        if shown_value(expression, self.around.values) is None:
            code = " ".join(expression.code.split())[:60]
            self.remark(f"{{{code}}} is computed by the site; its text is not in any passage")

    def report_properties(self, tag: Tag) -> None:
        """Name words that a component holds in its properties and perhaps shows."""
        if tag.closing or tag.name in BLOCK_NAMES or not tag.name[:1].isupper():
            return
        held = {name: _count_words(tag.value_of(name)) for name in tag.attributes if name != "alt"}
        named = [name for name, count in held.items() if count]
        if named and self._partial(tag) is None:
            count = sum(held.values())
            self.remark(
                f"<{tag.name}> holds {count} words in its properties ({', '.join(named)}); "
                "they are not in any passage"
            )

    def remark(self, text: str) -> None:
        self.remarks.append(Remark(self.around.line_of(self.line), text))

    # --- headings and footnotes ---

    def add_heading(self, level: int, children: Sequence[Token], explicit: str) -> None:
        for child in children:
            if child.type == "footnote_ref":
                self.note_order.setdefault(child.meta.get("label", ""))
        anchor: str | None = explicit or self.slugger.slug(slug_text(children))
        text = visible(children, self.around.values).replace("\n", " ")
        if level == 1:
            anchor = None  # the theme draws an h1 without its id
        elif explicit and any(heading.anchor == explicit for heading in self.headings):
            self.remark(f'the heading id "{explicit}" occurs twice: links go to the first')
        heading = Heading(level, text, anchor, self.span)
        self.headings.append(heading)
        self.top.blocks.append(heading)

    def _add_notes(self) -> None:
        shown = [self.notes[label] for label in self.note_order if label in self.notes]
        if not shown:
            return
        span = self.around.span_of(shown[0].start, shown[0].start + 1)
        heading = Heading(2, "Footnotes", "footnote-label", span)
        items = tuple(tuple(frame.blocks) for frame in shown)
        self.headings.append(heading)
        self.frames[0].blocks += [heading, Listing(True, 1, items, span)]


def _count_words(value: object) -> int:
    """Words of a text that reads like prose; a single name or number is none."""
    if isinstance(value, str):
        count = len(value.split())
        return count if count > 2 else 0
    if isinstance(value, dict):
        return sum(_count_words(item) for item in value.values())
    if isinstance(value, list):
        return sum(_count_words(item) for item in value)
    return 0


# --- Markdown's own containers --------------------------------------------------------------------


def _finish_item(builder: Builder, frame: Frame, span: Span) -> None:
    builder.top.items.append(tuple(frame.blocks))


def _finish_list(builder: Builder, frame: Frame, span: Span) -> None:
    listing = Listing(frame.ordered, frame.first, tuple(frame.items), span)
    builder.top.blocks.append(listing)


def _finish_quote(builder: Builder, frame: Frame, span: Span) -> None:
    builder.top.blocks.append(Quote(tuple(frame.blocks), span))


def _finish_directive(builder: Builder, frame: Frame, span: Span) -> None:
    kind, _, title = frame.title.partition("\n")
    if kind in ADMONITIONS:
        builder.top.blocks.append(Box(admonition_title(kind, title), tuple(frame.blocks), span))
    elif title:
        builder.top.blocks.append(Box(title, tuple(frame.blocks), span))
    else:
        builder.top.blocks.extend(frame.blocks)


def _finish_table(builder: Builder, frame: Frame, span: Span) -> None:
    header, *rows = frame.rows or [()]
    builder.top.blocks.append(Table(header, tuple(rows), span))


def _finish_note(builder: Builder, frame: Frame, span: Span) -> None:
    builder.notes.setdefault(frame.title, frame)


_MARKDOWN: Mapping[str, Callable[[Builder, Frame, Span], None]] = {
    "item": _finish_item,
    "list": _finish_list,
    "quote": _finish_quote,
    "directive": _finish_directive,
    "table": _finish_table,
    "note": _finish_note,
}


# --- one handler for each kind of token -----------------------------------------------------------


def _on_inline(builder: Builder, token: Token, before: Token) -> None:
    children = token.children or []
    if before.type == "heading_open":
        builder.add_heading(int(before.tag[1]), children, before.meta.get("id", ""))
    elif before.type == "directive_open":
        builder.top.title += visible(children, builder.around.values).replace("\n", " ")
    elif before.type in ("th_open", "td_open"):
        _add_cell(builder, children)
    else:
        builder.add_inline(children)


def _add_cell(builder: Builder, children: Sequence[Token]) -> None:
    text = visible(children, builder.around.values).replace("\n", " ")
    for child in children:
        if child.type == "footnote_ref":
            builder.note_order.setdefault(child.meta.get("label", ""))
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
    """Language and title from what stands after the fence: ``py title="a.py" {1}``."""
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
            builder.report_properties(part)
            builder.add_tag(part)
        elif isinstance(part, Expression):
            builder.add_expression(part)
        elif builder.top.name not in HIDDEN_NAMES and (text := tidy(part.replace("\n", " "))):
            builder.top.blocks.append(Paragraph(text, builder.span))


def _opens(name: str) -> Callable[[Builder, Token, Token], None]:
    return lambda builder, token, before: void(builder.open(name))


def _closes(name: str) -> Callable[[Builder, Token, Token], None]:
    return lambda builder, token, before: builder.close_markdown(name)


def void(_: object) -> None:
    return None


_HANDLERS: Mapping[str, Callable[[Builder, Token, Token], None]] = {
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
