"""Turn the content of an HTML page into blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook.interfaces.blocks import (
    Block,
    Box,
    Code,
    Heading,
    Listing,
    Maths,
    Paragraph,
    Quote,
    Span,
    Table,
)
from bythebook.language.text import word_set
from bythebook.sources.documents import plain_text
from bythebook.sources.markdown.inline import InlineText, tidy
from bythebook_formats.html.boxes import is_admonition, is_title, title_of_box, with_kind
from bythebook_formats.html.content import classes, is_tab
from bythebook_formats.html.maths import maths_of
from bythebook_formats.html.text import (
    BLOCKS,
    add_inline,
    code_text,
    one_line,
    prose,
)
from bythebook_formats.html.tree import Element, all_text

_DEEPEST = 80  # of elements nested deeper, only the text is kept
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LANGUAGE = re.compile(
    r"(?:language|lang|highlight|highlight-source|brush:?|sourceCode|src)-?([\w+#.-]{1,30})\Z"
)
_NO_LANGUAGE = word_set("default none notranslate text plain code source")
_CODE_HOLDER = re.compile(r"code|highlight|literal-block|listing|sourceCode", re.I)
_MOST_ABOVE = 5  # elements between a heading and its section
_PANELS = ("tabbed-block", "sd-tab-content", "tab-pane")


class BlockReader:
    """Reader of one page. Spans count the characters of the page's visible text."""

    def __init__(self, language: str = "") -> None:
        self._is_english = language.lower().partition("-")[0] in ("", "en")
        self._read = 0
        self._tabs: list[str] = []  # labels of tabs whose panels have not been read
        self._code_title = ""
        self._used: set[Element] = set()  # titles that are already part of a block

    def read(self, content: Element) -> list[Block]:
        return self._children(content, 0)

    def _span(self, text: str) -> Span:
        start = self._read
        self._read += len(text) + 1
        return start, self._read - 1

    # --- containers ---

    def _children(self, element: Element, depth: int) -> list[Block]:
        """Return the blocks of an element; text between block-level children is a paragraph."""
        blocks: list[Block] = []
        run = InlineText()
        run.add(prose(element.text))

        def finish() -> None:
            nonlocal run
            text = run.text(lambda text: tidy(text).strip())  # also no-break spaces
            run = InlineText()
            if text:
                blocks.append(Paragraph(text, self._span(text)))

        for child in element:
            if child not in self._used:
                if self._stands_alone(child) and depth < _DEEPEST:
                    finish()
                    blocks += self._element(child, depth + 1)
                else:
                    add_inline(run, child)
            run.add(prose(child.tail))
        finish()
        return blocks

    def _stands_alone(self, element: Element) -> bool:
        if element.tag in BLOCKS or is_tab(element):
            return True
        formula = maths_of(element)
        if formula is not None:
            return formula[1]
        if element.tag in ("img", "br") or not len(element):
            return False
        return any(
            each.tag in BLOCKS or ((found := maths_of(each)) is not None and found[1])
            for each in element.iterdescendants()
        )

    def _element(self, element: Element, depth: int) -> list[Block]:
        tag = str(element.tag)
        if is_tab(element):
            self._tabs.append(one_line(element))
            return []
        formula = maths_of(element)
        if formula is not None:
            return [Maths(formula[0], self._span(formula[0]))] if formula[0] else []
        if tag in _LEVELS:
            return [self._heading(element, _LEVELS[tag])]
        read = _READERS.get(tag)
        if read is not None:
            return read(self, element, depth)
        return self._container(element, depth)

    def _container(self, element: Element, depth: int) -> list[Block]:
        if self._is_panel(element):
            return self._boxed(self._tabs.pop(0) if self._tabs else "", element, depth)
        names = classes(element)
        if self._holds_code(element, names):
            return self._children(element, depth)
        if element.get("role") == "doc-footnote" or "footnote" in names:
            label = next((each for each in element if "label" in classes(each)), None)
            title = "" if label is None else " ".join(all_text(label).split())  # a link back
        else:
            label = title_of_box(element, names)
            title = "" if label is None else one_line(label)
            if label is not None and self._is_english:
                title = with_kind(title, names)
        if label is None:
            return self._children(element, depth)
        self._used.add(label)
        return self._boxed(title, element, depth)

    def _boxed(self, title: str, element: Element, depth: int) -> list[Block]:
        span = self._span(title)
        blocks = tuple(self._children(element, depth))
        if not title:
            return list(blocks)
        return [Box(title, blocks, span)]

    # --- tabs ---

    def _is_panel(self, element: Element) -> bool:
        return element.get("role") == "tabpanel" or any(
            name in _PANELS for name in classes(element)
        )

    # --- single elements ---

    def _heading(self, element: Element, level: int) -> Heading:
        text = one_line(element)
        return Heading(level, text, heading_id(element), self._span(text))

    def _pre(self, element: Element, depth: int) -> list[Block]:
        text = code_text(element)
        title, self._code_title = self._code_title, ""
        span = self._span(text)
        if not text.strip():
            return [Paragraph(title, span)] if title else []
        return [Code(code_language(element), title, text, span)]

    def _holds_code(self, element: Element, names: Sequence[str]) -> bool:
        """Return whether an element is the frame of one code block, and keep the block's title."""
        if not any(_CODE_HOLDER.search(name) for name in names) or self._code_title:
            return False
        if len(element.findall(".//pre")) != 1:
            return False
        for each in element.iterdescendants():
            if each.tag == "pre":
                break
            if is_title(each):
                self._code_title = one_line(each)
                self._used.add(each)
                break
        return True

    def _table(self, element: Element, depth: int) -> list[Block]:
        inner = [cell for cell in element.iter("td") if _table_of(cell) is element]
        if len(inner) == 2 and "icon" in classes(inner[0]):
            return self._boxed(one_line(inner[0]), inner[1], depth)  # Asciidoctor's admonitions
        parent = element.getparent()
        if parent is not None and inner and is_admonition(classes(parent)):
            title = next((one_line(cell) for cell in element.iter("th")), "")
            return self._boxed(title, inner[-1], depth)  # DocBook's, with an image
        if _is_layout(element):
            return self._cells(element, depth)
        caption = element.find("caption")
        blocks: list[Block] = []
        if caption is not None and (text := one_line(caption)):
            blocks.append(Paragraph(text, self._span(text)))
        rows = [row for row in element.iter("tr") if _table_of(row) is element]
        cells = _grid(rows)
        if not any(any(row) for row in cells):
            return blocks
        width = max(map(len, cells))
        cells = [(*row, *("",) * (width - len(row))) for row in cells]
        has_header = _is_header(rows[0])
        header = cells.pop(0) if has_header else ("",) * width
        span = self._span(" ".join(map(" ".join, cells)))
        return [*blocks, Table(header, tuple(cells), span)]

    def _cells(self, table: Element, depth: int) -> list[Block]:
        """Return the blocks in the cells of a table that only arranges them."""
        blocks: list[Block] = []
        self._holds_code(table, ["code"])
        for cell in table.iter("td", "th"):
            if _table_of(cell) is table and cell not in self._used:
                blocks += self._children(cell, depth)
        return blocks

    def _list(self, element: Element, depth: int) -> list[Block]:
        if element.get("role") == "tablist":
            self._tabs += [one_line(tab) for tab in element.iter() if is_tab(tab)]
            return []
        span = self._span("")
        items = [tuple(self._children(child, depth)) for child in element if child.tag == "li"]
        others = [child for child in element if child.tag != "li"]
        start = element.get("start", "1")
        first = int(start) if start.isdecimal() and len(start) < 9 else 1
        items = [item for item in items if item]
        blocks: list[Block] = []
        if items:
            blocks.append(Listing(element.tag == "ol", first, tuple(items), span))
        for child in others:
            blocks += self._element(child, depth + 1)
        return blocks

    def _definitions(self, element: Element, depth: int) -> list[Block]:
        blocks: list[Block] = []
        terms: list[str] = []
        pairs = [child for child in element.iter("dt", "dd") if _list_of(child) is element]
        for child in pairs:
            if child.tag == "dt":
                terms.append(one_line(child))
                continue
            blocks += self._boxed("\n".join(filter(None, terms)), child, depth)
            terms.clear()
        left = "\n".join(filter(None, terms))
        return [*blocks, Paragraph(left, self._span(left))] if left else blocks

    def _details(self, element: Element, depth: int) -> list[Block]:
        summary = element.find("summary")
        title = "Details" if summary is None else one_line(summary)
        if summary is not None:
            self._used.add(summary)
        return self._boxed(title, element, depth)

    def _quote(self, element: Element, depth: int) -> list[Block]:
        span = self._span("")
        blocks = self._children(element, depth)
        return [Quote(tuple(blocks), span)] if blocks else []

    def _rule(self, element: Element, depth: int) -> list[Block]:
        return []


_READERS = {
    "pre": BlockReader._pre,
    "table": BlockReader._table,
    "ul": BlockReader._list,
    "ol": BlockReader._list,
    "menu": BlockReader._list,
    "dl": BlockReader._definitions,
    "details": BlockReader._details,
    "blockquote": BlockReader._quote,
    "hr": BlockReader._rule,
}


def heading_id(element: Element) -> str | None:
    """Return the id that leads to a heading: its own, its section's, or that of a mark in it."""
    own = element.get("id")
    if own:
        return own
    for parent, _ in zip(element.iterancestors(), range(_MOST_ABOVE), strict=False):
        if parent.tag not in ("header", "hgroup", "div", "section"):
            break
        if parent.get("id"):
            if _is_first_heading(element, parent):
                return parent.get("id")
            break
    for mark in element.iter("a", "span"):
        if mark.get("id") or (mark.tag == "a" and mark.get("name")):
            return mark.get("id") or mark.get("name")
    before = element.getprevious()
    if before is not None and before.get("id") and not all_text(before).strip():
        return before.get("id")
    return None


def _is_first_heading(element: Element, section: Element) -> bool:
    return next((each for each in section.iter() if each.tag in _LEVELS), None) is element


def code_language(pre: Element) -> str:
    """Return the language that a highlighter has put into a class around or inside the code."""
    inner = pre.find("code")
    near = [pre] if inner is None else [inner, pre]
    near += list(pre.iterancestors())[:3]
    for element in near:
        for attribute in ("data-lang", "data-language"):
            if element.get(attribute):
                return str(element.get(attribute))
        names = classes(element)
        if "sourceCode" in names and len(names) > 1 and element.tag in ("pre", "code"):
            return next(name for name in names if name != "sourceCode")
        for name in names:
            found = _LANGUAGE.match(name)
            if found and found[1] not in _NO_LANGUAGE:
                return found[1]
    return ""


def _is_layout(table: Element) -> bool:
    """Return whether a table only arranges code, its line numbers or whole sections."""
    if table.get("role") == "presentation":
        return True
    if any(table.find(f".//td//{name}") is not None for name in ("h1", "h2", "h3", "pre")):
        return True
    names = " ".join(classes(table))
    return "highlight" in names or "rouge" in names or "hljs" in names


def _table_of(element: Element) -> Element | None:
    return next(element.iterancestors("table"), None)


def _list_of(element: Element) -> Element | None:
    return next(element.iterancestors("dl"), None)


def _is_header(row: Element) -> bool:
    parent = row.getparent()
    if parent is not None and parent.tag == "thead":
        return True
    return all(cell.tag == "th" for cell in row) and len(row) > 0


def _grid(rows: Sequence[Element]) -> list[tuple[str, ...]]:
    """Return the texts of cells; one that spans several rows is repeated in each."""
    grid: list[tuple[str, ...]] = []
    above: dict[int, tuple[int, str]] = {}  # column -> rows that a cell still spans, its text
    for row in rows:
        own = [cell for cell in row if cell.tag in ("td", "th")]
        cells: list[str] = []
        below: dict[int, tuple[int, str]] = {}
        while own or any(column >= len(cells) for column in above):
            column, wide = len(cells), 1
            left, text = above.get(column, (0, ""))
            if not left and own:
                cell = own.pop(0)
                left, text, wide = _count(cell, "rowspan"), _cell(cell), _count(cell, "colspan")
            if left > 1:
                below[column] = (left - 1, text)
            cells += [text, *[""] * (wide - 1)]
        above = below
        grid.append(tuple(cells))
    return grid


def _count(cell: Element, name: str) -> int:
    value = cell.get(name, "1")
    return min(int(value), 50) if value.isdecimal() and 0 < len(value) < 4 and int(value) else 1


def _cell(cell: Element) -> str:
    """Return a cell's text on one line; blocks in it are separated by blanks."""
    if not any(each.tag in BLOCKS for each in cell.iterdescendants()):
        return one_line(cell)
    return " ".join(plain_text(BlockReader().read(cell)).split())
