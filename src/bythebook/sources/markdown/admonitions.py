"""markdown-it rule for admonitions: ``:::note[Title]`` … ``:::``, or the older ``:::note Title``.

Tokens: ``directive_open`` (with its kind in ``info``), an ``inline`` title, the content,
``directive_close``.
"""

from __future__ import annotations

import re

from markdown_it.rules_block import StateBlock

from bythebook.sources.markdown.parser_state import line_text

_DIRECTIVE = re.compile(r"(:{3,}) *([A-Za-z][\w-]*)")
_COLONS = re.compile(r":{3,}[ \t]*\Z")


def directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    text = line_text(state, start)
    opening = _DIRECTIVE.match(text) if text.startswith(":::") else None
    if opening is None or state.is_code_block(start):
        return False
    if silent:
        return True
    last, following = _find_close(state, start, end, len(opening.group(1)))
    token = state.push("directive_open", "", 1)
    token.info, token.map = opening.group(2), [start, following]
    token.meta = {"closed": following > last}
    title = state.push("inline", "", 0)
    title.content = _directive_title(text[opening.end() :])
    title.map, title.children, title.meta = [start, start + 1], [], {"title": True}
    _tokenize_inside(state, start + 1, last)
    state.push("directive_close", "", -1)
    state.line = following
    return True


def _tokenize_inside(state: StateBlock, start: int, end: int) -> None:
    outer_end, outer_type = state.lineMax, state.parentType
    state.lineMax, state.parentType = end, "container"
    state.md.block.tokenize(state, start, end)
    state.lineMax, state.parentType = outer_end, outer_type


def _find_close(state: StateBlock, start: int, end: int, colons: int) -> tuple[int, int]:
    """Return the end line of the content (at colons or the enclosing block's end) and the next."""
    for line in range(start + 1, end):
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return line, line
        text = line_text(state, line)
        if text.startswith(":::") and _COLONS.match(text) and text.count(":") >= colons:
            return line, line + 1
    return end, end


def _directive_title(rest: str) -> str:
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
