"""Add the rules of MyST to a parser."""

from __future__ import annotations

from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock
from mdit_py_plugins.deflist import deflist_plugin

from bythebook.sources.markdown.myst.directives import directive
from bythebook.sources.markdown.myst.maths import amsmath, maths_block
from bythebook.sources.markdown.myst.roles import definitions, link_texts, role
from bythebook.sources.markdown.parser_state import line_text

_INTERRUPTS = ["paragraph", "reference", "blockquote", "list"]


def add_myst(
    parser: MarkdownIt, limit_depth: Callable[[RuleFuncBlockType], RuleFuncBlockType]
) -> None:
    """Add the syntax of MyST to a parser."""
    block, inline = parser.block.ruler, parser.inline.ruler
    block.before("fence", "myst_line", _line, {"alt": _INTERRUPTS})
    add_definitions(parser, limit_depth)
    block.before("directive", "myst_directive", limit_depth(directive), {"alt": _INTERRUPTS})
    inline.before("backticks", "myst_role", role)
    parser.core.ruler.after("inline", "link_texts", link_texts)


def add_definitions(
    parser: MarkdownIt, limit_depth: Callable[[RuleFuncBlockType], RuleFuncBlockType]
) -> None:
    """Add definition lists."""
    deflist_plugin(parser)
    rule = limit_depth(_rule_of(parser, "deflist"))
    parser.block.ruler.at("deflist", rule, {"alt": _INTERRUPTS[:2]})
    parser.core.ruler.after("block", "definitions", definitions)


def add_notebook_maths(parser: MarkdownIt) -> None:
    """Add ``$$`` and LaTeX environments as MathJax and MyST read them."""
    block = parser.block.ruler
    block.at("maths_block", maths_block, {"alt": _INTERRUPTS})
    block.before("maths_block", "amsmath", amsmath, {"alt": _INTERRUPTS})


def _rule_of(parser: MarkdownIt, name: str) -> RuleFuncBlockType:
    return next(rule.fn for rule in parser.block.ruler.__rules__ if rule.name == name)


def _line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a line that shows nothing: ``(label)=``, ``% comment`` or ``+++``."""
    if state.is_code_block(start):
        return False
    text = line_text(state, start).rstrip()
    is_target = text.startswith("(") and text.endswith(")=") and len(text) > 3
    if not (is_target or text.startswith(("%", "+++"))):
        return False
    if not silent:
        token = state.push("myst_target" if is_target else "myst_comment", "", 0)
        token.content, token.map = text[1:-2] if is_target else "", [start, start + 1]
        state.line = start + 1
    return True
