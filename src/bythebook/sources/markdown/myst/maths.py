"""Displayed maths as MathJax and MyST read it: dollar signs and LaTeX environments."""

from __future__ import annotations

import re

from markdown_it.rules_block import StateBlock

from bythebook.language.text import word_set
from bythebook.sources.markdown.myst.directive import push_paragraph
from bythebook.sources.markdown.parser_state import budget_of, line_text

_LABEL = re.compile(r"[ \t]*+(?:\([^()]*+\)[ \t]*+)?+\Z")  # after the closing dollars
_NOT_MATHS = re.compile(r"#{1,6} |```|~~~|:::")
_AMSMATH = re.compile(r"\\begin\{(\w{1,20}\*?)\}")
_AMSMATH_NAMES = word_set(
    "equation equation* multline multline* gather gather* align align* alignat alignat* flalign "
    "flalign* matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix eqnarray eqnarray*"
)


def maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``$$ … $$``, on one line or several, with an optional ``(label)`` at the end."""
    text = line_text(state, start)
    if not text.startswith("$$") or text.startswith("$$$") or state.is_code_block(start):
        return False
    found = _maths_end(state, start, end, text[2:])
    if found is None:
        return False
    if silent:
        return True
    content, rest, line = found
    token = state.push("maths_block", "", 0)
    token.content, token.map = content, [start, line]
    if rest:
        push_paragraph(state, rest, line - 1)
    state.line = line
    return True


def _maths_end(state: StateBlock, start: int, end: int, rest: str) -> tuple[str, str, int] | None:
    """Return the formula, the text after it and the next line; None if it is no formula.

    A heading or a fence before the closing dollars means that the opening ones are a slip: they
    must not pair with those of the next formula.
    """
    budget = budget_of(state.env, len(state.src))
    lines: list[str] = []
    for line in range(start, end):
        text = line_text(state, line) if line > start else rest
        if budget.left <= 0 or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return None
        budget.left -= len(text) + 1
        before, dollars, after = text.partition("$$")
        if dollars:
            content = "\n".join(filter(str.strip, (*lines, before))).strip()
            is_apart = bool(_LABEL.match(after))
            if not content or not (is_apart or "" in map(str.strip, lines[1:])):
                return None  # part of a paragraph
            return content, "" if is_apart else after.strip(), line + 1
        if _NOT_MATHS.match(text):
            return None
        lines.append(text)
    return None


def amsmath(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    opening = _AMSMATH.match(line_text(state, start))
    if opening is None or opening[1] not in _AMSMATH_NAMES or state.is_code_block(start):
        return False
    budget = budget_of(state.env, len(state.src))
    for line in range(start, end):
        text = line_text(state, line)
        if budget.left <= 0 or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return False
        budget.left -= len(text) + 1
        if text.rstrip().endswith(f"\\end{{{opening[1]}}}"):
            if not silent:
                token = state.push("maths_block", "", 0)
                token.content = state.getLines(start, line + 1, state.sCount[start], False).strip()
                token.map, state.line = [start, line + 1], line + 1
            return True
    return False
