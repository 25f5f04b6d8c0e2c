"""Conversion of tokens to the block tree, with a stack of open containers and elements."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

from bythebook.interfaces.blocks import (
    Block,
    Code,
    Document,
    Heading,
    Listing,
    Maths,
    Paragraph,
    Remark,
    Span,
)
from bythebook.sources.markdown.elements import (
    BLOCK_NAMES,
    HIDDEN_NAMES,
    Frame,
    TabLabels,
    finish_container,
    finish_element,
    is_component,
    settle_rows,
    shown_properties,
)
from bythebook.sources.markdown.inline import (
    Values,
    on_one_line,
    shown_value,
    slug_text,
    tidy,
    visible,
)
from bythebook.sources.markdown.jsx import Expression, Tag
from bythebook.sources.slugs import Slugger

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
_MAX_FRAMES = 40  # of elements nested deeper, only the text is kept

Partial = Callable[[Tag, Span], Document | None]  # the file that a tag includes, if any


@dataclass(slots=True)
class Surroundings:
    """Context of a file beyond its own tokens."""

    span_of: Callable[[int, int], Span]  # lines -> offsets in the source file
    line_of: Callable[[int], int]  # line -> line of the source file, from 1
    partial: Partial
    values: Values
    maths: bool
    mdx: bool = True
    notes_heading: bool = True


@dataclass(slots=True)
class Builder:
    around: Surroundings
    frames: list[Frame] = field(default_factory=lambda: [Frame("page", 0)])
    anchors: set[str] = field(default_factory=set)
    remarks: list[Remark] = field(default_factory=list)
    inlined: dict[int, Document] = field(default_factory=dict)  # id of a tag -> its file
    notes: dict[str, Frame] = field(default_factory=dict)
    note_order: dict[str, None] = field(default_factory=dict)
    slugger: Slugger = field(default_factory=Slugger)
    tabs: TabLabels = field(default_factory=TabLabels)
    line: int = 0
    line_end: int = 0

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
        settle_rows(frame, span)
        if frame.tag is None and frame.name == "note":
            self._keep_note(frame)
        elif len(self.frames) > _MAX_FRAMES and frame.name != "table":
            self._flatten(frame, span)
        elif frame.tag is None:
            finish_container(frame, self.top, span)
        else:
            finish_element(frame, self.top, span)

    def _flatten(self, frame: Frame, span: Span) -> None:
        title = frame.title.rpartition("\n")[2]
        if title:
            self.top.blocks.append(Paragraph(title, span))
        self.top.blocks.extend(frame.blocks)

    def _keep_note(self, frame: Frame) -> None:
        """Store a footnote for the end of the page; a duplicate label keeps both texts."""
        existing = self.notes.setdefault(frame.title, frame)
        if existing is not frame:
            existing.blocks.extend(frame.blocks)

    def close_markdown(self, name: str) -> None:
        """Close a Markdown container and any elements left open inside it."""
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
        """Add a paragraph, split where a block-level element begins or ends."""
        start = 0
        self.refer(children)
        for index, child in enumerate(children):
            if child.type == "expression":
                self.report_expression(child.meta["expression"])
            elif child.type == "tag":
                self.report_properties(child.meta["tag"])
                if self.stands_alone(child.meta["tag"]):
                    self.add_text(children[start:index])
                    self.add_tag(child.meta["tag"])
                    start = index + 1
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
        self.tabs.note(tag)
        if tag.is_literal:
            self.top.blocks.append(Paragraph(tag.raw, self.span))
        elif tag.closing:
            if tag.paired:
                self._close_tag(tag)
        elif (document := self._partial(tag)) is not None:
            self.top.blocks.extend(document.blocks)
            self.remarks.extend(document.remarks)
        else:
            for name in shown_properties(tag):
                if text := tidy(tag.text_of(name)):
                    self.top.blocks.append(Paragraph(text, self.span))
            if tag.paired or tag.alone:
                title = self.tabs.label(tag) if tag.name == "TabItem" else ""
                self.open(tag.name, tag).title = title
            if tag.alone:
                self.close()

    def _close_tag(self, tag: Tag) -> None:
        for frame in reversed(self.frames):
            if frame.tag is None:
                self._reveal(tag.name)
                return  # the element was opened outside this list, quote or box
            if frame.name == tag.name:
                break
        while self.top.name != tag.name:
            self.close()
        self.close()

    def _reveal(self, name: str) -> None:
        """Show a hidden element that is closed in another block, rather than lose the rest."""
        for frame in reversed(self.frames):
            if frame.tag is not None and frame.name == name and name in HIDDEN_NAMES:
                frame.name = ""
                return

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

    def report_unclosed(self, tag: Tag) -> None:
        """Report an unpaired tag: an error in MDX, but not for HTML in plain Markdown."""
        if self.around.mdx and not tag.paired:
            lacks = "is never opened" if tag.closing else "is never closed"
            kept = "; it stays in the text as it is" if tag.is_literal else ""
            self.remark(f"{' '.join(tag.raw.split())[:60]} {lacks}{kept}")

    def report_properties(self, tag: Tag, shown: Sequence[str] = ("alt",)) -> None:
        """Report text in a component's properties, which the component may display."""
        if not is_component(tag):
            return
        hidden = [name for name in tag.attributes if name not in shown]
        held = {name: _count_words(tag.value_of(name)) for name in hidden}
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

    def add_heading(self, opening: Token, children: Sequence[Token]) -> None:
        """Add a heading with the anchor that a plugin of the grammar has found, or else its id."""
        self.refer(children)
        level, meta = int(opening.tag[1]), opening.meta
        anchor = meta.get("anchor") or None
        if "anchor" not in meta:
            anchor = self._anchor(level, children, meta.get("id", ""))
        text = on_one_line(visible(children, self.around.values))
        self.top.blocks.append(Heading(level, text, anchor, self.span))

    def _anchor(self, level: int, children: Sequence[Token], explicit: str) -> str | None:
        anchor: str | None = explicit or self.slugger.slug(slug_text(children))
        if level == 1:
            anchor = None  # the theme renders an h1 without its id
        elif anchor in self.anchors:
            self.remark(f'the heading id "{anchor}" occurs twice: links go to the first')
        self.anchors.add(anchor or "")
        return anchor

    def refer(self, children: Sequence[Token]) -> None:
        """Record the footnotes that a line refers to, in order (as the page numbers them).

        Also report the elements that it leaves open.
        """
        for child in children:
            if child.type == "footnote_ref":
                self.note_order.setdefault(child.meta.get("label", ""))
            elif child.type == "tag":
                self.report_unclosed(child.meta["tag"])

    def add_notes(self) -> None:
        shown = [self.notes[label] for label in self.note_order if label in self.notes]
        if not shown:
            return
        span = self.around.span_of(shown[0].start, shown[0].start + 1)
        if self.around.notes_heading:
            heading = Heading(2, "Footnotes", "footnote-label", span)
            self.frames[0].blocks.append(heading)
        items = tuple(tuple(frame.blocks) for frame in shown)
        self.frames[0].blocks.append(Listing(True, 1, items, span))


def _count_words(value: object, *, at_least: int = 3) -> int:
    """Count the words of prose; a single name or number counts only in a list."""
    if isinstance(value, str):
        count = len(value.split())
        return count if count >= at_least else 0
    if isinstance(value, dict):
        return sum(_count_words(item) for item in value.values())
    if isinstance(value, list):
        return sum(_count_words(item, at_least=1) for item in value)
    return 0


# --- tokens ---------------------------------------------------------------------------------------


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
