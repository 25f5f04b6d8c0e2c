"""Conversion of JSX and HTML elements to blocks once their closing tag is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bythebook.interfaces.blocks import (
    Block,
    Box,
    Code,
    Heading,
    Listing,
    Paragraph,
    Quote,
    Span,
    Table,
    marked,
)
from bythebook.language.text import word_set
from bythebook.sources.documents import plain_text
from bythebook.sources.markdown.jsx import Tag
from bythebook.text.text_kinds import kind_of_heading
from bythebook.text.units import ADMONITIONS
from bythebook.types import Mark, MarkKind, TextKind

# Block-level elements, even if the source has them inside a line.
BLOCK_NAMES = word_set(
    "details summary Details Tabs TabItem Admonition CodeBlock Code Mermaid head Head style script "
    "div p ul ol li dl dt dd table thead tbody tfoot tr td th blockquote pre section article aside "
    "figure figcaption h1 h2 h3 h4 h5 h6 hr center header footer main nav"
)
HIDDEN_NAMES = word_set("head Head style script template title noscript")
# Properties of components that hold text, in the order in which they are shown.
_TEXT_PROPERTIES = (
    *("alt", "title", "heading", "subtitle", "question", "text", "description", "summary"),
    *("caption", "content", "answer"),
)
_ROW_GROUPS = frozenset(("thead", "tbody", "tfoot"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def is_component(tag: Tag) -> bool:
    return not tag.closing and tag.name not in BLOCK_NAMES and tag.name[:1].isupper()


def shown_properties(tag: Tag) -> tuple[str, ...]:
    """Return the names of the properties whose text is text of the book.

    A question is one only with its answer, and not in a quiz: it would read as a statement.
    """
    if not is_component(tag) or kind_of_heading(tag.name) is not TextKind.TEXT:
        return ("alt",)
    is_asked = not (tag.text_of("question") and tag.text_of("answer"))
    unshown = ("question", "answer") if is_asked else ()
    return tuple(name for name in _TEXT_PROPERTIES if name not in unshown)


@dataclass(slots=True)
class Frame:
    """Open container: a list, a box or an element."""

    name: str
    start: int  # line
    tag: Tag | None = None
    title: str = ""
    blocks: list[Block] = field(default_factory=list)
    items: list[tuple[Block, ...]] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    ordered: bool = False
    first: int = 1
    header: bool = False  # the first row is a header

    def attribute(self, name: str) -> str:
        return self.tag.text_of(name) if self.tag else ""


def finish_element(frame: Frame, outer: Frame, span: Span) -> None:
    """Add the result of a closed element to the enclosing frame."""
    blocks = tuple(frame.blocks)
    match frame.name:
        case name if name in HIDDEN_NAMES:
            return
        case "summary" if outer.name in ("details", "Details") and not outer.title:
            outer.title = _one_line(blocks)
        case "li" if outer.name in ("ul", "ol"):
            outer.items.append(blocks)
        case "td" | "th" if outer.name == "tr":
            outer.items.append(blocks)
            outer.header = outer.header or frame.name == "th"
        case "tr":
            outer.header = outer.header if outer.rows else frame.header
            outer.rows.append(tuple(map(_one_line, frame.items)))
            outer.blocks.extend(blocks)
        case "thead" | "tbody" | "tfoot":
            outer.header = outer.header or frame.header
            outer.rows.extend(frame.rows)
            outer.blocks.extend(blocks)
        case _:
            outer.blocks.extend(_blocks_of(frame, blocks, span))


def _blocks_of(frame: Frame, blocks: tuple[Block, ...], span: Span) -> tuple[Block, ...]:
    """Return what an element makes of its content; most add nothing to it."""
    made = blocks
    match frame.name:
        case name if name in _HEADINGS:
            anchor = frame.attribute("id") or None
            made = (Heading(_HEADINGS[name], _one_line(blocks), anchor, span),)
        case "dt" if term := _one_line(blocks):
            made = (Paragraph(marked(term, [Mark(0, len(term), MarkKind.STRONG)]), span),)
        case "details" | "Details":
            made = (Box(frame.title or "Details", blocks, span),)
        case "TabItem":
            made = (Box(frame.title, blocks, span),)
        case "Admonition":
            kind, title = frame.attribute("type") or "note", frame.attribute("title")
            made = (Box(admonition_title(kind, title), blocks, span),)
        case "CodeBlock" | "Code":
            text = plain_text(blocks) or frame.attribute("children")
            made = _code(_language(frame), frame.attribute("title"), text, span)
        case "Mermaid":
            made = _code("mermaid", "", frame.attribute("value"), span)
        case "ul" | "ol" if frame.items:
            made = (Listing(frame.name == "ol", 1, tuple(frame.items), span), *blocks)
        case "blockquote":
            made = (Quote(blocks, span),)
    return made


def _one_line(blocks: Sequence[Block]) -> str:
    return plain_text(blocks).replace("\n", " ")


def _code(language: str, title: str, text: str, span: Span) -> tuple[Block, ...]:
    return (Code(language, title, text, span),) if text else ()


def _language(frame: Frame) -> str:
    names = [name.removeprefix("language-") for name in frame.attribute("className").split()]
    return next(filter(None, (frame.attribute("language"), *names)), "")


def settle_rows(frame: Frame, span: Span) -> None:
    """Convert the rows of an HTML table, or rows outside any table, to a table."""
    if not frame.rows or frame.name in _ROW_GROUPS or (frame.name == "table" and not frame.tag):
        return
    width = max(len(row) for row in frame.rows)
    rows = [row + ("",) * (width - len(row)) for row in frame.rows]
    header = rows.pop(0) if frame.header else ("",) * width
    frame.rows = []
    frame.blocks.append(Table(header, tuple(rows), span))


# --- Markdown containers --------------------------------------------------------------------------


def finish_container(frame: Frame, outer: Frame, span: Span) -> None:
    match frame.name:
        case "item":
            outer.items.append(tuple(frame.blocks))
        case "list":
            items = tuple(frame.items)
            outer.blocks.append(Listing(frame.ordered, frame.first, items, span))
        case "quote":
            outer.blocks.append(Quote(tuple(frame.blocks), span))
        case "table":
            header, *rows = frame.rows or [()]
            outer.blocks.append(Table(header, tuple(rows), span))
        case _:
            _finish_directive(frame, outer, span)


def _finish_directive(frame: Frame, outer: Frame, span: Span) -> None:
    kind, _, title = frame.title.partition("\n")
    label = admonition_title(kind, title) if kind in ADMONITIONS else title
    outer.blocks += [Box(label, tuple(frame.blocks), span)] if label else frame.blocks


def admonition_title(kind: str, title: str) -> str:
    label = kind[:1].upper() + kind[1:]
    return f"{label} — {title}" if title else label


class TabLabels:
    """Labels of tabs: from ``values`` of the ``<Tabs>``, the tab's own label, or its value."""

    def __init__(self) -> None:
        self._given: list[dict[str, str]] = []

    def note(self, tag: Tag) -> None:
        if tag.name != "Tabs" or not tag.paired or tag.alone:
            return
        if not tag.closing:
            self._given.append(_labels(tag.value_of("values")))
        elif self._given:
            self._given.pop()

    def label(self, tab: Tag) -> str:
        value = tab.text_of("value")
        given = self._given[-1].get(value) if self._given else None
        return given or tab.text_of("label") or value


def _labels(values: object) -> dict[str, str]:
    return {
        str(entry.get("value")): entry["label"]
        for entry in (values if isinstance(values, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("label"), str)
    }
