"""Conversion of JSX and HTML elements to blocks once their closing tag is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bythebook.interfaces.blocks import (
    Block,
    Box,
    Code,
    Heading,
    Listing,
    Quote,
    Span,
    Table,
)
from bythebook.language.text import word_set
from bythebook.sources.documents import plain_text
from bythebook.sources.markdown.jsx import Tag

# Block-level elements, even if the source has them inside a line.
BLOCK_NAMES = word_set(
    "details summary Details Tabs TabItem Admonition CodeBlock Code Mermaid head Head style script "
    "div p ul ol li dl dt dd table thead tbody tfoot tr td th blockquote pre section article aside "
    "figure figcaption h1 h2 h3 h4 h5 h6 hr center header footer main nav"
)
HIDDEN_NAMES = word_set("head Head style script template title noscript")
ADMONITIONS = word_set("note tip info warning danger caution important success secondary")
_ROW_GROUPS = frozenset(("table", "thead", "tbody", "tfoot"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


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
    finish = _FINISHERS.get(frame.name)
    if frame.name in HIDDEN_NAMES:
        return
    if frame.name in _HEADINGS:
        anchor = frame.attribute("id") or None
        text = plain_text(frame.blocks).replace("\n", " ")
        outer.blocks.append(Heading(_HEADINGS[frame.name], text, anchor, span))
    elif frame.name == "TabItem":
        outer.blocks.append(Box(frame.title, tuple(frame.blocks), span))
    elif finish is not None:
        finish(frame, outer, span)
    else:
        outer.blocks.extend(frame.blocks)
        outer.rows.extend(frame.rows)
        outer.header = outer.header or frame.header


def _finish_details(frame: Frame, outer: Frame, span: Span) -> None:
    outer.blocks.append(Box(frame.title or "Details", tuple(frame.blocks), span))


def _finish_summary(frame: Frame, outer: Frame, span: Span) -> None:
    if outer.name in ("details", "Details") and not outer.title:
        outer.title = plain_text(frame.blocks).replace("\n", " ")
    else:
        outer.blocks.extend(frame.blocks)


def _finish_admonition(frame: Frame, outer: Frame, span: Span) -> None:
    title = admonition_title(frame.attribute("type") or "note", frame.attribute("title"))
    outer.blocks.append(Box(title, tuple(frame.blocks), span))


def _finish_code(frame: Frame, outer: Frame, span: Span) -> None:
    language = frame.attribute("language")
    for name in frame.attribute("className").split():
        language = language or name.removeprefix("language-")
    text = plain_text(frame.blocks) or frame.attribute("children")
    if text:
        outer.blocks.append(Code(language, frame.attribute("title"), text, span))


def _finish_mermaid(frame: Frame, outer: Frame, span: Span) -> None:
    if frame.attribute("value"):
        outer.blocks.append(Code("mermaid", "", frame.attribute("value"), span))


def _finish_list(frame: Frame, outer: Frame, span: Span) -> None:
    if frame.items:
        ordered = frame.name == "ol"
        outer.blocks.append(Listing(ordered, 1, tuple(frame.items), span))
    outer.blocks.extend(frame.blocks)


def _finish_item(frame: Frame, outer: Frame, span: Span) -> None:
    if outer.name in ("ul", "ol"):
        outer.items.append(tuple(frame.blocks))
    else:
        outer.blocks.extend(frame.blocks)


def _finish_table(frame: Frame, outer: Frame, span: Span) -> None:
    _settle(frame, span)
    outer.blocks.extend(frame.blocks)


def settle_rows(frame: Frame, span: Span) -> None:
    """Convert rows outside any table to a table of their own."""
    if frame.rows and frame.name not in _ROW_GROUPS:
        _settle(frame, span)


def _settle(frame: Frame, span: Span) -> None:
    if not frame.rows:
        return
    width = max(len(row) for row in frame.rows)
    rows = [row + ("",) * (width - len(row)) for row in frame.rows]
    header = rows.pop(0) if frame.header else ("",) * width
    frame.rows = []
    frame.blocks.append(Table(header, tuple(rows), span))


def _finish_row(frame: Frame, outer: Frame, span: Span) -> None:
    if not outer.rows:
        outer.header = frame.header
    outer.rows.append(tuple(plain_text(item).replace("\n", " ") for item in frame.items))
    outer.blocks.extend(frame.blocks)


def _finish_cell(frame: Frame, outer: Frame, span: Span) -> None:
    if outer.name == "tr":
        outer.items.append(tuple(frame.blocks))
        outer.header = outer.header or frame.name == "th"
    else:
        outer.blocks.extend(frame.blocks)


def _finish_quote(frame: Frame, outer: Frame, span: Span) -> None:
    outer.blocks.append(Quote(tuple(frame.blocks), span))


_FINISHERS: Mapping[str, Callable[[Frame, Frame, Span], None]] = {
    "details": _finish_details,
    "Details": _finish_details,
    "summary": _finish_summary,
    "Admonition": _finish_admonition,
    "CodeBlock": _finish_code,
    "Code": _finish_code,
    "Mermaid": _finish_mermaid,
    "ul": _finish_list,
    "ol": _finish_list,
    "li": _finish_item,
    "table": _finish_table,
    "tr": _finish_row,
    "td": _finish_cell,
    "th": _finish_cell,
    "blockquote": _finish_quote,
}


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
    if kind in ADMONITIONS:
        outer.blocks.append(Box(admonition_title(kind, title), tuple(frame.blocks), span))
    elif title:
        outer.blocks.append(Box(title, tuple(frame.blocks), span))
    else:
        outer.blocks.extend(frame.blocks)


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
    entries = (
        [entry for entry in values if isinstance(entry, dict)] if isinstance(values, list) else []
    )
    pairs = [(entry.get("value"), entry.get("label")) for entry in entries]
    return {str(value): label for value, label in pairs if isinstance(label, str)}
