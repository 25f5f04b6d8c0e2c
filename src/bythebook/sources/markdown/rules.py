"""Helpers that the grammar's rules share."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock

from bythebook.sources.js_literals import ScanBudget

MAX_LEVEL = 24  # deeper quotes, lists and boxes stay text: no loss and no stack overflow
INTERRUPTS = ["paragraph", "reference", "blockquote", "list"]


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
