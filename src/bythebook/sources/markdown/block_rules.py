"""Rules for directives, and helpers of all rules for blocks.

A directive is written ``:::note[Title]`` in Docusaurus and as a fence ```` ```{note} ```` in MyST.
Tokens of a box: ``directive_open`` (with its kind in ``info``), an ``inline`` title, the content,
``directive_close``. Directives of MyST are written by functions: a plugin of the grammar adds
more with ``add_directives``. The first token has the directive's name (``:name:``) in its meta.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock

from bythebook.interfaces.source import UnreadableFile
from bythebook.sources.js_literals import ScanBudget
from bythebook.sources.markdown.frontmatter import read_yaml

MAX_LEVEL = 24  # deeper quotes, lists and boxes stay text: no loss and no stack overflow
INTERRUPTS = ["paragraph", "reference", "blockquote", "list"]

_ADMONITION = re.compile(r"(:{3,}) *([A-Za-z][\w-]*)")
_FENCE = re.compile(r"(`{3,}+|~{3,}+|:{3,}+) *+\{([\w:.+-]{1,64}+)\}[ \t]*+(.*+)\Z")
_OPTION = re.compile(r":([\w-]{1,64}+):(?:[ \t]++(.*+))?+\Z")


def line_text(state: StateBlock, line: int) -> str:
    """Return a line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def ends_container(state: StateBlock, line: int) -> bool:
    """Return whether a line is outside the list or quote that is being read."""
    return state.sCount[line] < state.blkIndent and not state.isEmpty(line)


def tokenize_inside(state: StateBlock, start: int, end: int, indent: int | None = None) -> None:
    outer = state.lineMax, state.parentType, state.blkIndent
    state.lineMax, state.parentType = end, "container"
    state.blkIndent = state.blkIndent if indent is None else indent
    state.md.block.tokenize(state, start, end)
    state.lineMax, state.parentType, state.blkIndent = outer


def push_inline(state: StateBlock, text: str, line: int) -> None:
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = text, [line, line + 1], []


def push_paragraph(state: StateBlock, text: str, line: int) -> None:
    state.push("paragraph_open", "p", 1).map = [line, line + 1]
    push_inline(state, text, line)
    state.push("paragraph_close", "p", -1)


def limit_depth(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    """Skip a rule for containers that are nested too deeply."""

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < MAX_LEVEL and rule(state, start, end, silent)

    return limited


def budget_of(env: MutableMapping[str, Any], size: int) -> ScanBudget:
    """Return the budget for failed scans of a page."""
    budget = env.get("budget")
    if not isinstance(budget, ScanBudget):
        budget = env["budget"] = ScanBudget(size)
    return budget


# --- directives -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Directive:
    """Directive with the lines that it covers."""

    name: str
    argument: str
    options: Mapping[str, object]
    start: int  # line of the opening fence
    first: int  # first line of the content
    last: int  # line after the content
    following: int  # line after the closing fence

    def option(self, name: str) -> str:
        value = self.options.get(name)
        return str(value) if isinstance(value, (str, int, float)) else ""


WriteDirective = Callable[[StateBlock, Directive], None]  # pushes tokens


def admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``:::note[Title]`` … ``:::``, or the older ``:::note Title``."""
    text = line_text(state, start)
    opening = _ADMONITION.match(text) if text.startswith(":::") else None
    if opening is None or state.is_code_block(start):
        return False
    if silent:
        return True
    last, following = _find_close(state, start, end, opening[1])
    found = Directive(opening[2], "", {}, start, start + 1, last, following)
    before = len(state.tokens)
    write_box(state, found, _bracketed(text[opening.end() :]), kind=opening[2])
    state.tokens[before].meta["closed"] = following > last
    state.line = following
    return True


def _bracketed(rest: str) -> str:
    """Return the title from ``[Title]{attributes}`` or ``Title`` after the name."""
    rest = rest.strip()
    if not rest.startswith("["):
        return "" if rest.startswith("{") and rest.endswith("}") else rest
    depth = 0
    for index, char in enumerate(rest):
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return rest[1:index]
    return rest


def _find_close(state: StateBlock, start: int, end: int, fence: str) -> tuple[int, int]:
    """Return the line after the content and the line after the closing fence."""
    for line in range(start + 1, end):
        if ends_container(state, line):
            return line, line
        text = line_text(state, line).rstrip(" \t")
        is_fence = len(text) >= len(fence) and not text.strip(fence[0])
        if is_fence and not state.is_code_block(line):
            return line, line + 1
    return end, end


# --- MyST -----------------------------------------------------------------------------------------


def add_directives(parser: MarkdownIt, writers: Mapping[str, WriteDirective]) -> None:
    """Parse directives of MyST. Those with an unknown name become boxes with their argument."""
    if "directives" not in parser.options:
        rule = limit_depth(_directive)
        parser.block.ruler.before("directive", "myst_directive", rule, {"alt": INTERRUPTS})
    parser.options["directives"] = {**parser.options.get("directives", {}), **writers}


def _directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    text = line_text(state, start)
    opening = _FENCE.match(text) if text[:1] in "`~:" else None
    if opening is None or state.is_code_block(start):
        return False
    fence, name, argument = opening.groups()
    if fence[0] == "`" and "`" in argument:
        return False
    if silent:
        return True
    last, following = _find_close(state, start, end, fence)
    options, first = _read_options(state, start + 1, last)
    found = Directive(name, argument.strip(), options, start, first, last, following)
    before = len(state.tokens)
    kind = name.removeprefix("prf:").removesuffix("*").casefold()
    state.md.options["directives"].get(kind, _write_other)(state, found)
    if len(state.tokens) > before and found.option("name"):
        state.tokens[before].meta["name"] = found.option("name")
    state.line = following
    return True


def _read_options(state: StateBlock, line: int, last: int) -> tuple[Mapping[str, object], int]:
    """Return the options (``:name: value`` lines, or YAML between ---) and the line after them."""
    first = _skip_empty(state, line, last)
    if first >= last:
        return {}, first
    if line_text(state, first).rstrip() == "---":
        return _yaml_options(state, first, last)
    options: dict[str, object] = {}
    while first < last and (option := _OPTION.match(line_text(state, first))):
        options[option[1]] = option[2] or ""
        first += 1
    return options, first


def _yaml_options(state: StateBlock, first: int, last: int) -> tuple[Mapping[str, object], int]:
    for line in range(first + 1, last):
        if line_text(state, line).rstrip() == "---":
            text = state.getLines(first + 1, line, state.sCount[first], True)
            try:
                value = read_yaml(text)
            except UnreadableFile:
                value = None
            options = value.items() if isinstance(value, dict) else ()
            return {str(name): item for name, item in options}, line + 1
    return {}, first


def _skip_empty(state: StateBlock, line: int, last: int) -> int:
    while line < last and state.isEmpty(line):
        line += 1
    return line


# --- tokens ---------------------------------------------------------------------------------------


def write_box(state: StateBlock, found: Directive, title: str, *, kind: str = "myst") -> None:
    open_box(state, found, title, kind=kind)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _write_other(state: StateBlock, found: Directive) -> None:
    write_box(state, found, found.argument)


def open_box(state: StateBlock, found: Directive, title: str, *, kind: str = "myst") -> None:
    token = state.push("directive_open", "", 1)
    token.info, token.map = kind, [found.start, found.following]
    token.meta = {"closed": True}
    push_inline(state, title, found.start)


def push_code(state: StateBlock, found: Directive, language: str, title: str = "") -> None:
    quote = "'" if '"' in title else '"'
    titled = f" title={quote}{title.replace(quote, '’')}{quote}" if title else ""
    token = state.push("fence", "code", 0)
    token.info, token.content = language + titled, content_of(state, found)
    token.map = [found.start, found.following]


def content_of(state: StateBlock, found: Directive) -> str:
    first = _skip_empty(state, found.first, found.last)
    return state.getLines(first, found.last, state.sCount[found.start], True)
