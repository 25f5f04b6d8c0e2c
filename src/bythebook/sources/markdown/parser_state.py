"""Helpers shared by the grammar's rules: text of a line, and the budget for failed scans."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from markdown_it.rules_block import StateBlock

from bythebook.sources.js_literals import ScanBudget


def line_text(state: StateBlock, line: int) -> str:
    """Return a line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def budget_of(env: MutableMapping[str, Any], size: int) -> ScanBudget:
    budget = env.get("budget")
    if not isinstance(budget, ScanBudget):
        budget = env["budget"] = ScanBudget(size)
    return budget
