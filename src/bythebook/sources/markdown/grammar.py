"""markdown-it parser with support for MDX, admonitions, maths and comments.

New tokens: ``flow`` (a line of tags and expressions, in ``meta["parts"]``), inline ``tag`` and
``expression``, ``directive_open``/``directive_close`` with an ``inline`` title between,
``maths_block``, ``maths_inline`` and ``module_code``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.parser_inline import RuleFuncInlineType
from markdown_it.rules_block import StateBlock, blockquote, list_block
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, image, link
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_def

from bythebook.sources.js_literals import skip_expression
from bythebook.sources.markdown.block_rules import (
    INTERRUPTS,
    MAX_LEVEL,
    admonition,
    budget_of,
    limit_depth,
    line_text,
)
from bythebook.sources.markdown.jsx import (
    Expression,
    Tag,
    scan_tag,
    skip_module_code,
    starts_module_code,
)
from bythebook.sources.markdown.maths import likely_maths_inline, maths_block, maths_inline

Plugin = Callable[[MarkdownIt], None]  # adds rules to a parser

_NESTING: tuple[tuple[str, RuleFuncBlockType, list[str]], ...] = (
    ("blockquote", blockquote, INTERRUPTS),
    ("list", list_block, INTERRUPTS[:3]),
    ("footnote_def", footnote_def, INTERRUPTS[:2]),
    ("directive", admonition, INTERRUPTS),
)
Marks = tuple[tuple[str, str], ...]
_COMMENTS: Marks = (("{/*", "*/}"), ("<!--", "-->"))
_CLASSIC_ID = re.compile(r"\{#([^{}]*)\}\Z")


@lru_cache(maxsize=16)
def grammar(
    flavour: str, *, maths: str, comment_ids: bool = False, plugins: tuple[Plugin, ...] = ()
) -> MarkdownIt:
    """Return a parser for "mdx", "md" (CommonMark) or "loose": CommonMark, but an HTML tag does
    not turn the lines after it into raw text. ``maths`` is "on", "off" or "guess".

    ``comment_ids``: ``<!-- #id -->`` sets a heading's id. Docusaurus removes such comments before
    it looks for ids, unless the site sets ``mdx1Compat.comments`` to false.

    ``plugins`` add rules. One that knows the anchors of headings sets ``meta["anchor"]`` of each.
    """
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_LEVEL + 4, "html": True})
    parser.enable(["table", "strikethrough"])
    parser.options["tasklists"] = True
    parser.core.ruler.disable("normalize")  # line ends of an MdxSource are already normalized
    footnote_plugin(parser, inline=False, move_to_end=False)
    parser.block.ruler.disable("lheading")
    parser.block.ruler.at("paragraph", _paragraph)
    _add_tags(parser, flavour)
    parser.block.ruler.before("fence", "directive", admonition, {"alt": INTERRUPTS})
    if maths != "off":
        parser.block.ruler.before("fence", "maths_block", maths_block, {"alt": INTERRUPTS})
        rule = maths_inline if maths == "on" else likely_maths_inline
        parser.inline.ruler.before("escape", "maths_inline", rule)
    marks = _COMMENTS if comment_ids else _COMMENTS[:1]
    parser.core.ruler.after("block", "heading_ids", partial(_heading_ids, marks=marks))
    for name, block_rule, alternatives in _NESTING:
        parser.block.ruler.at(name, limit_depth(block_rule), {"alt": alternatives})
    for name, inline_rule in (("link", link), ("image", image)):
        parser.inline.ruler.at(name, _expect_bracket(inline_rule))
    for add in plugins:
        add(parser)
    return parser


def _add_tags(parser: MarkdownIt, flavour: str) -> None:
    inline = parser.inline.ruler
    inline.before("html_inline", "comment", _inline_comment)
    inline.before("html_inline", "tag", _inline_tag)
    inline.disable("html_inline")
    if flavour == "md":
        return
    block = parser.block.ruler
    block.disable("html_block")
    block.before("table", "comment", _flow_comment, {"alt": INTERRUPTS})
    if flavour == "mdx":
        block.disable("code")
        inline.disable("autolink")
        inline.before("tag", "expression", _inline_expression)
        block.before("comment", "module_code", _module_code, {"alt": []})
    signs = "<{" if flavour == "mdx" else "<"
    block.before("table", "flow", partial(_flow, signs=signs), {"alt": INTERRUPTS})


def _expect_bracket(rule: RuleFuncInlineType) -> RuleFuncInlineType:
    """Skip the rule if no ``]`` follows: "[[[[…" would be rescanned for each bracket."""

    def expecting(state: StateInline, silent: bool) -> bool:
        cached = state.env.get("last_bracket")
        if cached is None or cached[0] is not state.src:
            cached = state.env["last_bracket"] = (state.src, state.src.rfind("]"))
        return state.pos < cached[1] and rule(state, silent)

    return expecting


# --- paragraphs -----------------------------------------------------------------------------------


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a paragraph or a heading underlined with === or ---.

    Unlike in markdown-it's own rule, a deeply indented line may end it if indented code is
    disabled: closing tags in MDX may be indented so.
    """
    interrupts = state.md.block.ruler.getRules("paragraph")
    outer, state.parentType = state.parentType, "paragraph"
    end, line, level = state.lineMax, start + 1, 0
    while line < end and not state.isEmpty(line):
        if state.sCount[line] >= 0 and not state.is_code_block(line):
            level = _underline(state, line)
            if level or any(rule(state, line, end, True) for rule in interrupts):
                break
        line += 1
    content = state.getLines(start, line, state.blkIndent, False).strip(" \t\n")
    state.line = line + (1 if level else 0)
    name, tag = ("heading", f"h{level}") if level else ("paragraph", "p")
    state.push(f"{name}_open", tag, 1).map = [start, state.line]
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = content, [start, line], []
    state.push(f"{name}_close", tag, -1)
    state.parentType = outer
    return True


def _underline(state: StateBlock, line: int) -> int:
    if state.sCount[line] < state.blkIndent:
        return 0
    text = line_text(state, line).rstrip(" \t")
    char = text[:1]
    if char not in ("=", "-") or text.strip(char):
        return 0
    return 1 if char == "=" else 2


# --- tags, expressions, comments, module code -----------------------------------------------------


def _module_code(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    offset = state.bMarks[start]
    if state.level or state.tShift[start] or not starts_module_code(state.src, offset):
        return False
    after = skip_module_code(state.src, offset, state.eMarks[end - 1])
    token = state.push("module_code", "", 0)
    token.content = state.src[offset:after]
    state.line = _line_after(state, start, end, after)
    token.map = [start, state.line]
    return True


def _line_after(state: StateBlock, line: int, end: int, offset: int) -> int:
    while line < end and state.eMarks[line] < offset:
        line += 1
    return line + 1


def _flow_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    offset = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("<!--", offset):
        return False
    close = state.src.find("-->", offset + 4, state.eMarks[end - 1])
    if close < 0:
        return False
    line = _line_after(state, start, end, close + 3)
    if state.src[close + 3 : state.eMarks[line - 1]].strip():
        return False
    if not silent:
        state.line = line
    return True


def _flow(state: StateBlock, start: int, end: int, silent: bool, *, signs: str) -> bool:
    """Parse a line of only tags and expressions, which may span several lines."""
    offset = state.bMarks[start] + state.tShift[start]
    char = state.src[offset : offset + 1]
    if not char or char not in signs or state.is_code_block(start):
        return False
    parts: list[Tag | Expression] = []
    after = _scan_parts(state, offset, state.eMarks[end - 1], parts, signs)
    if after < 0:
        return False
    if silent:
        return True
    state.line = _line_after(state, start, end, after)
    token = state.push("flow", "", 0)
    token.meta = {"parts": parts}
    token.map = [start, state.line]
    return True


def _scan_parts(
    state: StateBlock, offset: int, end: int, parts: list[Tag | Expression], signs: str
) -> int:
    source, budget = state.src, budget_of(state.env, len(state.src))
    while offset < end and source[offset] != "\n":
        char = source[offset]
        if char == "<":
            scanned = scan_tag(source, offset, end, budget)
            if scanned is None:
                return -1
            parts.append(scanned[0])
            offset = scanned[1]
        elif char == "{" and char in signs:
            after = skip_expression(source, offset, end, budget)
            if after < 0:
                return -1
            parts.append(Expression(source[offset + 1 : after - 1]))
            offset = after
        elif char in " \t":
            offset += 1
        else:
            return -1
    return offset


def _inline_tag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<":
        return False
    scanned = scan_tag(state.src, state.pos, state.posMax, budget_of(state.env, len(state.src)))
    if scanned is None:
        return False
    tag, after = scanned
    if not silent:
        state.push("tag", "", 0).meta = {"tag": tag}
    state.pos = after
    return True


def _inline_expression(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "{":
        return False
    budget = budget_of(state.env, len(state.src))
    after = skip_expression(state.src, state.pos, state.posMax, budget)
    if after < 0:
        return False
    if not silent:
        token = state.push("expression", "", 0)
        token.meta = {"expression": Expression(state.src[state.pos + 1 : after - 1])}
    state.pos = after
    return True


def _inline_comment(state: StateInline, silent: bool) -> bool:
    if not state.src.startswith("<!--", state.pos):
        return False
    budget = budget_of(state.env, len(state.src))
    if budget.left <= 0:
        return False
    close = state.src.find("-->", state.pos + 4, state.posMax)
    budget.left -= (close if close >= 0 else state.posMax) - state.pos
    if close < 0:
        return False
    state.pos = close + 3
    return True


# --- heading ids ----------------------------------------------------------------------------------


def _heading_ids(state: StateCore, *, marks: Marks) -> None:
    """Move ``{#id}``, ``{/* #id */}`` or ``<!-- #id -->`` from the heading's end to its meta."""
    for opening, inline in pairwise(state.tokens):
        if opening.type == "heading_open":
            text, anchor = split_heading_id(inline.content, marks)
            if anchor:
                inline.content = text
                opening.meta["id"] = anchor


def split_heading_id(text: str, marks: Marks) -> tuple[str, str]:
    text = text.rstrip()
    for left, right in marks:
        start = text.rfind(left) if text.endswith(right) else -1
        if start >= 0:
            first = text[start + len(left) : -len(right)].split()[:1]
            if first and first[0].startswith("#") and len(first[0]) > 1:
                return text[:start].rstrip(), first[0][1:]
    match = _CLASSIC_ID.search(text, max(0, text.rfind("{#"))) if text.endswith("}") else None
    if match is not None and match.group(1):
        return text[: match.start()].rstrip(), match.group(1)
    return text, ""
