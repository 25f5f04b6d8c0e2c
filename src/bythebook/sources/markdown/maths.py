"""markdown-it rules for ``$…$`` (token ``maths_inline``) and ``$$…$$`` (``maths_block``)."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import partial

from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from bythebook.sources.markdown.parser_state import budget_of, line_text

_DOLLARS = re.compile(r"\$+")


def maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    text = line_text(state, start)
    opening = _DOLLARS.match(text)
    if opening is None or len(opening.group()) < 2 or "$" in text[opening.end() :]:
        return False
    close = _maths_end(state, start, end, len(opening.group()))
    if close is None:
        return False
    if silent:
        return True
    token = state.push("maths_block", "", 0)
    token.content = state.getLines(start + 1, close, state.sCount[start], False)
    state.line = close + 1
    token.map = [start, state.line]
    return True


def _maths_end(state: StateBlock, start: int, end: int, dollars: int) -> int | None:
    budget = budget_of(state.env, len(state.src))
    for line in range(start + 1, end):
        if budget.left <= 0 or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return None
        budget.left -= state.eMarks[line] - state.bMarks[line] + 1
        text = line_text(state, line).rstrip()
        if len(text) >= dollars and not text.strip("$"):
            return line
    return None


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
