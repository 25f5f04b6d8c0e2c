"""Parser of MDX or plain Markdown files into the block tree of their visible content."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

from markdown_it.token import Token

from bythebook.interfaces.blocks import Document, LeftOut, Paragraph, Remark, Span
from bythebook.language.text import clean
from bythebook.sources.documents import document_of, headings_of
from bythebook.sources.js_literals import ScanBudget
from bythebook.sources.markdown.block_builder import Builder, Surroundings, build
from bythebook.sources.markdown.grammar import Plugin, grammar
from bythebook.sources.markdown.jsx import (
    Expression,
    Tag,
    pair_tags,
    read_constants,
    read_imports,
    scan_tag,
)
from bythebook.sources.markdown.source_words import source_words
from bythebook.sources.slugs import Slugger, slug

Value = TypeVar("Value")

GONE = "\v"  # a line end of the source that a rewritten text does not have

_LINE_END = re.compile(r"\r\n|\r|\n")
_RAW = "!!raw-loader!"
_UNWRAPPED = {size: re.compile(rf" *`{{{size}}} *mdx-code-block\Z") for size in (3, 4)}

# (imported path, properties, span) -> the file's block tree, or None if it is not Markdown
OpenPartial = Callable[[str, Mapping[str, object], Span], Document | None]


OpenText = Callable[[str], str | None]  # imported path -> the file's raw text


@dataclass(frozen=True, slots=True)
class MdxSource:
    """Lines of a file without line ends, each with its offset and number in the file."""

    lines: tuple[str, ...]
    starts: tuple[int, ...]  # one more entry than lines
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, text: str, *, skip_lines: int = 0) -> MdxSource:
        starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        lines = clean(_LINE_END.sub("\n", text)).split("\n")
        numbers = range(1, len(lines) + 1)
        return cls(
            tuple(lines[skip_lines:]),
            (*starts[skip_lines:], len(text)),
            tuple(numbers[skip_lines:]),
        )

    def span(self, first: int, last: int) -> Span:
        top = len(self.starts) - 1
        return self.starts[min(first, top)], self.starts[min(last, top)]

    def with_lines(self, lines: Sequence[str], kept: Sequence[int]) -> MdxSource:
        """Return other lines in place of these, each for the lines from one of ``kept``."""
        return MdxSource(
            tuple(lines),
            (*(self.starts[index] for index in kept), self.starts[-1]),
            tuple(self.numbers[index] for index in kept),
        )

    def number(self, line: int) -> int:
        return self.numbers[min(line, len(self.numbers) - 1)] if self.numbers else 1


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Options for parsing a file."""

    mdx: bool = True
    loose: bool = False  # not MDX, but Markdown inside HTML is parsed
    maths: str = "guess"  # "on", "off" or "guess"
    comment_ids: bool = False  # <!-- #id --> sets a heading's id
    slug: Callable[[str], str] = slug  # heading text -> anchor
    notes_heading: bool = True  # footnotes are below a heading, as in Docusaurus
    rewrite: Callable[[str], str] | None = None  # of the text, which marks lost line ends with GONE
    plugins: tuple[Plugin, ...] = ()  # that add rules to the grammar
    env: Mapping[str, object] = field(default_factory=dict)  # for the rules of the plugins
    open_partial: OpenPartial = lambda path, properties, span: None
    open_text: OpenText = lambda path: None
    values: Mapping[str, object] = field(default_factory=dict)
    used_at: Span | None = None  # for a partial: span of its use in the page


_AS_MDX = ParseOptions()


def parse(source: MdxSource, reading: ParseOptions = _AS_MDX) -> Document:
    """Parse one file into a Document. Never fails: any text is accepted."""
    source = unwrap(source)
    if reading.rewrite is not None:
        source = _rewritten(source, reading.rewrite)
    try:
        return _parse(source, reading)
    except RecursionError:
        return _as_plain_text(source)


def _parse(source: MdxSource, reading: ParseOptions) -> Document:
    flavour = "mdx" if reading.mdx else "loose" if reading.loose else "md"
    parser = grammar(
        flavour, maths=reading.maths, comment_ids=reading.comment_ids, plugins=reading.plugins
    )
    text = "\n".join(source.lines).replace("\0", "\ufffd")
    left_out: list[LeftOut] = []
    env = {"open_text": reading.open_text, "left_out": left_out, **reading.env}
    tokens = parser.parse(text, {"budget": ScanBudget(len(text)), **env})
    pair_tags(list(_tags(tokens)))
    code = [token.content for token in tokens if token.type == "module_code"]
    imports = _merge(map(read_imports, code))
    values = {
        **reading.values,
        **_merge(map(read_constants, code)),
        **_imported_texts(imports, reading.open_text),
    }
    around = _surroundings(source, reading, imports, values)
    builder = Builder(around, slugger=Slugger(reading.slug))
    blocks = build(builder, tokens)
    return Document(
        blocks,
        tuple(headings_of(blocks)),
        source_words(source.lines),
        tuple(builder.remarks),
        tuple(left_out),
    )


def _imported_texts(imports: Mapping[str, str], open_text: OpenText) -> dict[str, object]:
    """Return the texts of raw imports by name: ``import code from '!!raw-loader!./a.py'``."""
    raw = {name: path.removeprefix(_RAW) for name, path in imports.items() if path.startswith(_RAW)}
    texts = {name: open_text(path) for name, path in raw.items()}
    return {name: text for name, text in texts.items() if text is not None}


def _surroundings(
    source: MdxSource,
    reading: ParseOptions,
    imports: Mapping[str, str],
    values: Mapping[str, object],
) -> Surroundings:
    used_at = reading.used_at

    def partial(tag: Tag, span: Span) -> Document | None:
        if tag.name not in imports:
            return None
        properties = {f"props.{name}": tag.value_of(name) for name in tag.attributes}
        return reading.open_partial(imports[tag.name], properties, used_at or span)

    return Surroundings(
        span_of=source.span if used_at is None else lambda first, last: used_at,
        line_of=source.number,
        partial=partial,
        values=values,
        maths=reading.maths != "off",
        mdx=reading.mdx,
        notes_heading=reading.notes_heading,
    )


def _merge(mappings: Iterable[dict[str, Value]]) -> dict[str, Value]:
    return {name: value for mapping in mappings for name, value in mapping.items()}


def _tags(tokens: Sequence[Token]) -> Iterator[Tag]:
    """Yield every tag of the page in order. Converts HTML block tokens to flow tokens."""
    for token in tokens:
        if token.type == "html_block":
            token.type, token.meta = "flow", {"parts": _html_parts(token.content)}
        if token.type == "flow":
            yield from (part for part in token.meta["parts"] if isinstance(part, Tag))
        for child in token.children or ():
            if child.type == "tag":
                yield child.meta["tag"]


def _html_parts(content: str) -> list[Tag | Expression | str]:
    """Split a CommonMark HTML block into tags and text, which is not parsed as Markdown."""
    parts: list[Tag | Expression | str] = []
    budget, offset, text_start = ScanBudget(len(content)), 0, 0
    last_comment_end = content.rfind("-->")
    while (offset := content.find("<", offset)) >= 0:
        is_comment = content.startswith("<!--", offset) and offset < last_comment_end
        comment_end = content.find("-->", offset + 4) if is_comment else -1
        scanned = scan_tag(content, offset, len(content), budget) if comment_end < 0 else None
        if comment_end < 0 and scanned is None:
            offset += 1
            continue
        parts.append(html.unescape(content[text_start:offset]))
        if scanned is not None:
            parts.append(scanned[0])
        offset = text_start = scanned[1] if scanned is not None else comment_end + 3
    parts.append(html.unescape(content[text_start:]))
    return parts


def _rewritten(source: MdxSource, rewrite: Callable[[str], str]) -> MdxSource:
    lines = rewrite("\n".join(source.lines)).split("\n")
    kept = [0, *accumulate(1 + line.count(GONE) for line in lines[:-1])]
    return source.with_lines([line.replace(GONE, "") for line in lines], kept)


def unwrap(source: MdxSource) -> MdxSource:
    """Remove ```` ```mdx-code-block ```` fences: Docusaurus parses their content as MDX."""
    for size, opening in _UNWRAPPED.items():
        fences: set[int] = set()
        start: int | None = None
        for index, line in enumerate(source.lines):
            if start is None:
                if "mdx-code-block" in line and opening.match(line):
                    start = index
            elif index > start + 1 and line.strip(" ") == "`" * size and line.endswith("`"):
                fences |= {start, index}
                start = None
        if fences:
            kept = [index for index in range(len(source.lines)) if index not in fences]
            source = source.with_lines([source.lines[index] for index in kept], kept)
    return source


def _as_plain_text(source: MdxSource) -> Document:
    """Return each line as a paragraph: fallback for files nested too deeply to parse."""
    blocks = [
        Paragraph(line.strip(), source.span(number, number + 1))
        for number, line in enumerate(source.lines)
        if line.strip()
    ]
    return document_of(blocks, [Remark(1, "nested too deeply; read as plain text")])
