"""Rules for formulas: ``$…$`` (token ``maths_inline``) and ``$$…$$`` (``maths_block``)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from bythebook.language.text import word_set
from bythebook.sources.markdown.block_rules import (
    INTERRUPTS,
    budget_of,
    ends_container,
    line_text,
    push_paragraph,
)

_DOLLARS = re.compile(r"\$+")
_LABEL = re.compile(r"[ \t]*+(?:\([^()]*+\)[ \t]*+)?+\Z")  # after the closing dollars
_NOT_MATHS = re.compile(r"#{1,6} |```|~~~|:::")
_AMSMATH = re.compile(r"\\begin\{(\w{1,20}\*?)\}")
_AMSMATH_NAMES = word_set(
    "equation equation* multline multline* gather gather* align align* alignat alignat* flalign "
    "flalign* matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix eqnarray eqnarray*"
)


def add_latex_maths(parser: MarkdownIt) -> None:
    """Parse displayed formulas as MathJax and MyST do, and environments of LaTeX."""
    block = parser.block.ruler
    block.at("maths_block", _latex_block, {"alt": INTERRUPTS})
    block.before("maths_block", "amsmath", _amsmath, {"alt": INTERRUPTS})


def _lines(state: StateBlock, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of the list or quote that is being read, as far as the budget goes."""
    budget = budget_of(state.env, len(state.src))
    for line in range(start, end):
        if budget.left <= 0 or ends_container(state, line):
            return
        text = line_text(state, line)
        budget.left -= len(text) + 1
        yield line, text


def maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``$$`` on a line of its own up to the next such line, as remark-math does."""
    text = line_text(state, start)
    opening = _DOLLARS.match(text)
    if opening is None or len(opening.group()) < 2 or "$" in text[opening.end() :]:
        return False
    for line, inner in _lines(state, start + 1, end):
        closing = inner.rstrip()
        if len(closing) >= len(opening.group()) and not closing.strip("$"):
            if not silent:
                content = state.getLines(start + 1, line, state.sCount[start], False)
                _push_block(state, content, start, line + 1)
            return True
    return False


def _push_block(state: StateBlock, content: str, start: int, after: int) -> None:
    token = state.push("maths_block", "", 0)
    token.content, token.map = content, [start, after]
    state.line = after


def _latex_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``$$ … $$``, on one line or several, with an optional ``(label)`` at the end."""
    text = line_text(state, start)
    if not text.startswith("$$") or text.startswith("$$$") or state.is_code_block(start):
        return False
    found = _latex_end(state, start, end)
    if found is None:
        return False
    if not silent:
        content, rest, after = found
        _push_block(state, content, start, after)
        if rest:
            push_paragraph(state, rest, after - 1)
    return True


def _latex_end(state: StateBlock, start: int, end: int) -> tuple[str, str, int] | None:
    """Return the formula, the text after it and the next line; None if it is no formula.

    A heading or a fence before the closing dollars means that the opening ones are a slip: they
    must not pair with those of the next formula.
    """
    lines: list[str] = []
    for line, text in _lines(state, start, end):
        inner = text if line > start else text[2:]
        before, dollars, after = inner.partition("$$")
        if dollars:
            content = "\n".join(filter(str.strip, (*lines, before))).strip()
            is_apart = bool(_LABEL.match(after))
            if not content or not (is_apart or "" in map(str.strip, lines[1:])):
                return None  # part of a paragraph
            return content, "" if is_apart else after.strip(), line + 1
        if _NOT_MATHS.match(inner):
            return None
        lines.append(inner)
    return None


def _amsmath(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    opening = _AMSMATH.match(line_text(state, start))
    if opening is None or opening[1] not in _AMSMATH_NAMES or state.is_code_block(start):
        return False
    for line, text in _lines(state, start, end):
        if text.rstrip().endswith(f"\\end{{{opening[1]}}}"):
            if not silent:
                content = state.getLines(start, line + 1, state.sCount[start], False).strip()
                _push_block(state, content, start, line + 1)
            return True
    return False


# --- in a line ------------------------------------------------------------------------------------


def _scan_maths(state: StateInline, silent: bool, *, certain: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    runs, ends = _dollar_runs(state)
    opening = ends.get(state.pos)
    if opening is None:
        return False
    size = opening - state.pos
    same = runs[size]
    partner = bisect_left(same, opening)
    close = same[partner] if partner < len(same) else -1
    if close < 0 or close + size > state.posMax:
        if not silent:
            state.append_pending("$" * size)
        state.pos = opening
        return True
    if not certain and not _looks_like_maths(state.src, opening, close, size):
        return False
    if not silent:
        token = state.push("maths_inline", "", 0)
        token.content, token.markup = state.src[opening:close], "$" * size
    state.pos = close + size
    return True


maths_inline = partial(_scan_maths, certain=True)
likely_maths_inline = partial(_scan_maths, certain=False)


def _dollar_runs(state: StateInline) -> tuple[dict[int, list[int]], dict[int, int]]:
    cached = state.env.get("dollars")
    if cached is None or cached[0] is not state.src:
        runs: dict[int, list[int]] = {}
        ends: dict[int, int] = {}
        for run in _DOLLARS.finditer(state.src):
            runs.setdefault(run.end() - run.start(), []).append(run.start())
            ends[run.start()] = run.end()
        cached = state.env["dollars"] = (state.src, runs, ends)
    return cached[1], cached[2]


def _looks_like_maths(source: str, opening: int, close: int, size: int) -> bool:
    """Tell ``$x$`` from "$5 or $6", for sites that may not have maths enabled."""
    if size > 1:
        return True
    after = source[close + 1 : close + 2]
    return not (source[opening].isspace() or source[close - 1].isspace() or after.isdigit())
