"""Batch mode: read questions as JSON lines and write replies as JSON lines, in one process."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.cli.output import print_json
from bythebook.errors import BookError, InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.config.settings import Settings

AnswerRow = Callable[["Book", dict[str, Any]], Awaitable[dict[str, Any]]]


def run_batch(path: Path, settings: Settings, answer: AnswerRow, *instead: str | None) -> int:
    """Write one line per line read; return the last error's exit code, or 0.

    ``instead`` are the texts of the command line, which must not be given as well.
    """
    from bythebook.api import use_book

    if any(text is not None for text in instead):
        raise InvalidInput("--batch reads the questions from a file.", hint="Give no other text.")

    async def answer_lines(book: Book) -> int:
        code = 0
        for number, line in lines_of(path):
            row_id: object = None
            try:
                row = parse_line(line, number)
                row_id = row.get("id")
                result = await answer(book, row)
            except BookError as error:
                code = error.exit_code
                result = {"error": str(error)}
            print_json({"id": row_id, **result}, indent=None)
            sys.stdout.flush()
        return code

    return use_book(settings, answer_lines)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(
            f"{path} cannot be read: {reason}.", hint="Give a file of JSON lines."
        ) from None
    # Not splitlines(): JSON strings may contain U+2028 and similar line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def parse_line(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"Line {number} is not JSON: {error.msg}.") from None
    except RecursionError:
        raise InvalidInput(f"Line {number} is nested too deeply.") from None
    if not isinstance(row, dict) or not isinstance(row.get("question"), str):
        raise InvalidInput(f'Line {number} has no "question".')
    if not isinstance(row.get("selected_text", ""), str | None):
        raise InvalidInput(f'The "selected_text" of line {number} is not a text.')
    return row
