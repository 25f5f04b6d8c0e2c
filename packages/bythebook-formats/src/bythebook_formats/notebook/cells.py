"""Convert the cells of a notebook to a document, and count what is left out.

The offsets of the blocks (``span``) are those in the texts of all cells and outputs, one after the
other: offsets in the JSON file would point into escaped strings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bythebook.interfaces.blocks import Anchor, Block, Code, Document, Heading, Maths, Paragraph
from bythebook.language.text import clean, words
from bythebook.sources.documents import headings_of
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook_formats.notebook.ipynb import Cell, Notebook, Output

OUTPUT_TITLE = "Output"
_MAX_OUTPUT = 100_000  # characters
_ANCHOR_DISTANCE = 1_500  # characters below a heading or cell, before the next cell gets an anchor
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\^_])")
_NO_CONTENT = re.compile(r"<[^<>\n]{1,200}>\Z")  # <Figure size 640x480 with 1 Axes>
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_FRONT_MATTER = "---"
_SHELLS = {"%%bash": "bash", "%%sh": "sh", "%%html": "html", "%%javascript": "javascript"}
_WIDGET = "application/vnd.jupyter.widget-view+json"
_PLURALS = {"HTML output": "HTML outputs", "output in another format": "outputs in other formats"}


@dataclass(slots=True)
class CellReader:
    """Reader of cells in order. ``parsing`` has the rule of the page's heading ids."""

    parsing: ParseOptions
    cell_anchors: bool  # the page has ids of cells
    blocks: list[Block] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    omitted: Counter[str] = field(default_factory=Counter)
    _offset: int = 0
    _since_anchor: int = 0
    _has_anchor: bool = False

    def read(self, notebook: Notebook) -> Document:
        for cell in notebook.cells:
            before = len(self.blocks)
            self._read_cell(cell)
            self._place_anchor(cell, before)
        blocks = tuple(self.blocks)
        return Document(blocks, tuple(headings_of(blocks)), tuple(self.words))

    def _read_cell(self, cell: Cell) -> None:
        if cell.kind == "markdown":
            self._add_markdown(cell.text)
        elif cell.kind == "raw":
            self._add_raw(cell)
        else:
            self._add_code(_language(cell), "", cell.text)
            for output in cell.outputs:
                self._add_output(output)

    def _add_markdown(self, text: str) -> None:
        source = MdxSource.of(text)
        starts = tuple(start + self._offset for start in source.starts)
        document = parse(replace(source, starts=starts), self.parsing)
        self._advance(text)
        self.blocks += document.blocks
        self.words += document.words

    def _add_raw(self, cell: Cell) -> None:
        if cell.format not in ("", "text/plain"):
            self.omitted["raw cell"] += 1
            return
        if cell.text.startswith(_FRONT_MATTER):
            return  # settings of a publishing tool
        span = self._advance(cell.text)
        texts = (" ".join(part.split()) for part in _BLANK_LINES.split(clean(cell.text)))
        paragraphs = [Paragraph(text, span) for text in texts if text]
        self.blocks += paragraphs
        self.words += words(clean(cell.text))

    def _add_code(self, language: str, title: str, text: str) -> None:
        if not text.strip():
            return
        span = self._advance(text)
        text = clean(text)
        self.blocks.append(Code(language, title, text.removesuffix("\n"), span))
        self.words += words(text)

    def _add_output(self, output: Output) -> None:
        plain = _ESCAPES.sub("", output.texts.get("text/plain", ""))
        missing = _omitted_kind(output, plain)
        if missing:
            self.omitted[missing] += 1
        elif plain and not (_NO_CONTENT.match(plain) and len(output.types) > 1):
            self._add_text(plain)
        elif output.texts.get("text/markdown"):
            self._add_markdown_output(output.texts["text/markdown"])
        elif output.texts.get("text/latex"):
            self._add_maths(output.texts["text/latex"])

    def _add_text(self, text: str) -> None:
        if len(text) > _MAX_OUTPUT:
            self.omitted[f"output longer than {_MAX_OUTPUT:,} characters"] += 1
        else:
            self._add_code("", OUTPUT_TITLE, text)

    def _add_markdown_output(self, text: str) -> None:
        """Add Markdown that was computed; its headings are lines of text in their section."""
        document = parse(MdxSource.of(text), replace(self.parsing, env={}))
        span = self._advance(text)
        for block in document.blocks:
            line = Paragraph(block.text, span) if isinstance(block, Heading) else block
            self.blocks.append(replace(line, span=span))
        self.words += document.words

    def _add_maths(self, text: str) -> None:
        span = self._advance(text)
        text = clean(text).strip().strip("$").strip()
        if text:
            self.blocks.append(Maths(text, span))
            self.words += words(text)

    def _advance(self, text: str) -> tuple[int, int]:
        start = self._offset
        self._offset += len(text) + 1
        return start, start + len(text)

    def _place_anchor(self, cell: Cell, before: int) -> None:
        """Put the cell's id before its blocks if the last position is far above, or none."""
        added = self.blocks[before:]
        if not added:
            return
        position = _first_heading(added)
        above = added if position is None else added[:position]
        is_far = not self._has_anchor or self._since_anchor > _ANCHOR_DISTANCE
        if self.cell_anchors and cell.id and above and is_far:
            self.blocks.insert(before, Anchor(f"cell-id={cell.id}", _start(added[0])))
            self._has_anchor, self._since_anchor = True, 0
        if position is not None:
            self._since_anchor = 0
            self._has_anchor = _last_heading_has_anchor(added)
            self._link_unnamed(cell, before)
        self._since_anchor += len(cell.text)

    def _link_unnamed(self, cell: Cell, before: int) -> None:
        """Link the content of a heading without an id to the cell that it is in."""
        if self._has_anchor or not (self.cell_anchors and cell.id):
            return
        last = max(
            index
            for index, block in enumerate(self.blocks)
            if index >= before and isinstance(block, Heading)
        )
        self.blocks.insert(last + 1, Anchor(f"cell-id={cell.id}", self.blocks[last].span))
        self._has_anchor = True


def describe(omitted: Counter[str]) -> str:
    """Return what is left out as a sentence, or "" if nothing is."""
    counts = [f"{count} {_noun(kind, count)}" for kind, count in sorted(omitted.items())]
    if not counts:
        return ""
    *first, last = counts
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{listed} {'is' if sum(omitted.values()) == 1 else 'are'} not in the book"


def _noun(kind: str, count: int) -> str:
    if count == 1:
        return kind
    first, _, rest = kind.partition(" longer")
    return _PLURALS.get(kind) or f"{first}s" + (f" longer{rest}" if rest else "")


def _omitted_kind(output: Output, plain: str) -> str:
    """Return what an output is called that is left out, or "" if its text is kept."""
    if _WIDGET in output.types:
        return "widget"
    is_bare = not plain.strip() or _NO_CONTENT.match(plain)
    if not is_bare:
        return ""
    if any(kind.startswith("image/") for kind in output.types):
        return "image"
    if output.texts.get("text/markdown") or output.texts.get("text/latex"):
        return ""
    if "text/html" in output.types:
        return "HTML output"
    others = [kind for kind in output.types if kind != "text/plain"]
    return "output in another format" if others else ""


def _language(cell: Cell) -> str:
    first = cell.text.split(maxsplit=1)[:1]
    return _SHELLS.get(first[0], cell.language) if first else cell.language


def _first_heading(blocks: Sequence[Block]) -> int | None:
    return next((i for i, block in enumerate(blocks) if isinstance(block, Heading)), None)


def _last_heading_has_anchor(blocks: Sequence[Block]) -> bool:
    last = next(block for block in reversed(blocks) if isinstance(block, Heading))
    return last.anchor is not None


def _start(block: Block) -> tuple[int, int]:
    return block.span[0], block.span[0]
