"""What the grammar's rules share: a line of the state, and the budget for scanning in vain."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from markdown_it.rules_block import StateBlock

from bythebook.book.js import Budget


def line_text(state: StateBlock, line: int) -> str:
    """A line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def budget_of(env: MutableMapping[str, Any], size: int) -> Budget:
    budget = env.get("budget")
    if not isinstance(budget, Budget):
        budget = env["budget"] = Budget(size)
    return budget
