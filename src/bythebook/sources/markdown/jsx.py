"""Scanner for tags and ``import``/``export`` blocks, and their readable values.

All scans run forward once; anything that is not a complete tag remains plain text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bythebook.language.text import word_set
from bythebook.sources.js_literals import (
    UNKNOWN,
    ScanBudget,
    evaluate,
    pieces,
    read_literal,
    read_value,
    skip_expression,
)

_NAME = re.compile(r"[A-Za-z_$][\w$-]*(?:[.:][A-Za-z_$][\w$-]*)*")
_SPACE = re.compile(r"\s*")
_ATTRIBUTE = re.compile(r"[^\s\"'<>/={}`]+")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BARE_VALUE = re.compile(r"[^\s\"'=<>`{}]+")
_MAX_TAG = 65536  # anything longer is prose with a stray "<"

# Names of HTML elements: an unpaired one renders nothing, so it is markup and not text.
HTML_NAMES = word_set(
    "a abbr address area article aside audio b base bdi bdo blockquote body br button canvas "
    "caption center cite code col colgroup data datalist dd del details dfn dialog div dl dt em "
    "embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hgroup hr "
    "html i iframe img input ins kbd label legend li link main map mark menu meta meter nav "
    "noscript object ol optgroup option output p picture pre progress q rp rt ruby s samp script "
    "search section select slot small source span strong style sub summary sup svg table tbody "
    "td template textarea tfoot th thead time title tr track u ul var video wbr"
)
VOID_NAMES = word_set("area base br col embed hr img input link meta source track wbr")


@dataclass(frozen=True, slots=True)
class Expression:
    code: str  # between the braces


@dataclass(slots=True)
class Tag:
    """Tag as written in the source. ``paired`` is set by ``pair_tags`` for the whole file."""

    name: str  # "" for a fragment
    raw: str
    closing: bool = False
    alone: bool = False  # <x/>, or an HTML element without content
    attributes: dict[str, str | Expression] = field(default_factory=dict)
    paired: bool = False

    @property
    def is_literal(self) -> bool:
        """Return whether the tag is text, as in ``vector<T>``: unpaired and not HTML."""
        return not (self.paired or self.alone or self.name.lower() in HTML_NAMES)

    def text_of(self, name: str) -> str:
        value = self.value_of(name)
        return value if isinstance(value, str) else ""

    def value_of(self, name: str) -> object:
        value = self.attributes.get(name, UNKNOWN)
        return read_literal(value.code) if isinstance(value, Expression) else value


def scan_tag(source: str, start: int, end: int, budget: ScanBudget) -> tuple[Tag, int] | None:
    """Return the tag at ``start`` and the offset after it, or None if it is not a tag."""
    if budget.left <= 0:
        return None
    end = min(end, start + _MAX_TAG)
    offset = start + 1
    closing = source.startswith("/", offset, end)
    offset += closing
    match = _NAME.match(source, offset, end)
    name = match.group() if match else ""
    offset = match.end() if match else offset
    tag = Tag(name, "", closing)
    after = _scan_attributes(source, offset, end, tag, budget)
    budget.left -= (after if after > 0 else offset) - start
    if after < 0 or (not name and tag.attributes):
        return None
    tag.raw = source[start:after]
    tag.alone = tag.alone or (name.lower() in VOID_NAMES and not closing)
    return tag, after


def _scan_attributes(source: str, offset: int, end: int, tag: Tag, budget: ScanBudget) -> int:
    start = offset
    while True:
        after = _skip_space(source, offset, end)
        if after >= end:
            break
        char = source[after]
        if char == ">":
            return after + 1
        if char == "/" and source.startswith(">", _skip_space(source, after + 1, end)):
            tag.alone = True
            return _skip_space(source, after + 1, end) + 1
        if after == offset:  # attributes must be preceded by a space
            break
        offset = _scan_attribute(source, after, end, tag, budget)
        if offset < 0:
            break
    budget.left -= max(after, offset) - start
    return -1


def _scan_attribute(source: str, offset: int, end: int, tag: Tag, budget: ScanBudget) -> int:
    if source[offset] == "{":  # {...spread} or a comment
        return skip_expression(source, offset, end, budget)
    match = _ATTRIBUTE.match(source, offset, end)
    if match is None:
        return -1
    name, offset = match.group(), match.end()
    equals = _skip_space(source, offset, end)
    if not source.startswith("=", equals, end):
        tag.attributes[name] = ""
        return offset
    offset = _skip_space(source, equals + 1, end)
    if source.startswith("{", offset, end):
        after = skip_expression(source, offset, end, budget)
        tag.attributes[name] = Expression(source[offset + 1 : after - 1])
        return after
    value = _QUOTED.match(source, offset, end) or _BARE_VALUE.match(source, offset, end)
    if value is None:
        return -1
    text = value.group()
    tag.attributes[name] = text[1:-1] if text[0] in "\"'" else text
    return value.end()


def _skip_space(source: str, offset: int, end: int) -> int:
    match = _SPACE.match(source, offset, end)
    return match.end() if match else offset


def pair_tags(tags: Sequence[Tag]) -> None:
    """Mark matching opening and closing tags; ``tags`` must be in page order."""
    opened: list[Tag] = []
    count: dict[str, int] = {}
    for tag in tags:
        if tag.alone:
            tag.paired = True
        elif not tag.closing:
            opened.append(tag)
            count[tag.name] = count.get(tag.name, 0) + 1
        elif count.get(tag.name):
            while (last := opened.pop()).name != tag.name:
                count[last.name] -= 1
            count[tag.name] -= 1
            last.paired = tag.paired = True


# --- import and export ----------------------------------------------------------------------------

_IMPORT = re.compile(r"import(?:\s*[\"'{*]|\s+[\w$]+(?:\s*,|\s+from\b))")
_EXPORT = re.compile(
    r"export\s+(?:default|const|let|var|function|class|async|type|interface|\{|\*)"
)
_MORE = re.compile(r"\s*(?:import\b|export\b|//|/\*|const\b|let\b|var\b|function\b)")
_DEFAULT_IMPORT = re.compile(
    r"\bimport\s+([A-Za-z_$][\w$]*)\s*(?:,\s*\{[^{}]*\}\s*)?\bfrom\s*([\"'])([^\"'\n]+)\2"
)
_CONSTANT = re.compile(r"\bexport\s+const\s+([A-Za-z_$][\w$]*)\s*=\s*")
_STATEMENT = re.compile(r"[^;\n]+")
_NEWLINE = re.compile(r"\n")


def starts_module_code(source: str, start: int) -> bool:
    if source.startswith("import", start):
        return _IMPORT.match(source, start) is not None
    return source.startswith("export", start) and _EXPORT.match(source, start) is not None


def skip_module_code(source: str, start: int, end: int) -> int:
    """Return the end of the last line of the ``import`` or ``export`` block at ``start``."""
    depth = 0
    for piece, depth in pieces(source, start, end):
        if depth <= 0 and piece.group()[0] not in "\"'`/":
            for newline in _NEWLINE.finditer(source, piece.start(), piece.end()):
                if _ends_at(source, start, newline.start(), end):
                    return newline.start()
    blank = source.find("\n\n", start, end)
    return end if depth <= 0 or blank < 0 else blank  # malformed code ends with its paragraph


def _ends_at(source: str, start: int, line_end: int, end: int) -> bool:
    next_end = source.find("\n", line_end + 1, end)
    following = source[line_end + 1 : end if next_end < 0 else next_end]
    if not following.strip():
        return True
    if not source.startswith("import", start):
        return False
    complete = source[max(start, line_end - 80) : line_end].rstrip().endswith((";", "'", '"'))
    return complete and _MORE.match(following) is None


def read_imports(code: str) -> dict[str, str]:
    """Return the default imports as name -> path."""
    return {match.group(1): match.group(3) for match in _DEFAULT_IMPORT.finditer(code)}


_MOST_UNREAD = 20  # constants that are no literals; after them, a literal of one line is read


def read_constants(code: str) -> dict[str, object]:
    """Return the exported constants as name -> value."""
    constants: dict[str, object] = {}
    offset = unread = 0
    while (match := _CONSTANT.search(code, offset)) is not None:
        value: object = UNKNOWN
        if unread < _MOST_UNREAD:  # each of these may have been read up to the end of the code
            value, offset = read_value(code, match.end())
        if value is UNKNOWN:
            unread += 1
            statement = _STATEMENT.match(code, match.end())
            value = evaluate(statement.group(), constants) if statement else UNKNOWN
            offset = match.end()
        constants[match.group(1)] = value
    return constants
