"""Options shared by several commands, their conversion to settings, and batches of questions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bythebook.cli.output import echo, print_json
from bythebook.errors import BookError, InvalidInput
from bythebook.types import FILTERS, FilterValue, TextKind

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.config.settings import Settings
    from bythebook.types import Question

T = TypeVar("T")

AnswerRow = Callable[["Book", dict[str, Any]], Awaitable[dict[str, Any]]]

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Folder of the ingested book. [env: BYTHEBOOK_HOME; default: .bythebook]"
    ),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="Contract to use: query, ask, envelope, plain, chat."),
]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help='Embedding model, as "provider:model", or "auto".')
]
Writer = Annotated[
    str | None,
    typer.Option("--writer", help='Writer: extractive, or a model as "provider:model".'),
]
TopK = Annotated[int | None, typer.Option("--top-k", help="Passages to retrieve.")]
RelevanceThreshold = Annotated[
    float | None,
    typer.Option(
        "--relevance-threshold", help="Minimum score of a passage, 0 to 1. [default: the preset's]"
    ),
]
SelectedText = Annotated[
    str | None,
    typer.Option("--selected-text", help="Answer only from this text of the book."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Batch = Annotated[
    Path | None,
    typer.Option(
        "--batch", help='Read JSON lines (id, question, selected_text) from a file, "-" is stdin.'
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME=VALUE",
        help=f"Search only there; repeatable. Names: {', '.join(FILTERS)}.",
    ),
]


def command(**more: Any) -> typer.Typer:
    """Return the app of a command, with or without subcommands."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, **more)


def load(**flags: Any) -> Settings:
    """Load the settings; say on stderr which of them are from the file in this folder."""
    from bythebook.config.settings import FILE, load_settings

    settings = load_settings(flags)
    if settings.from_file:
        echo(f"settings from ./{FILE}: {', '.join(settings.from_file)}", err=True)
    return settings


def with_book(settings: Settings, work: Callable[[Book], Awaitable[T]]) -> T:
    """Open the book, run the coroutine with it, and close it."""
    from bythebook.book import Book

    async def whole() -> T:
        async with Book(settings) as book:
            return await work(book)

    return asyncio.run(whole())


def question_maker(
    settings: Settings,
    top_k: int | None,
    relevance_threshold: float | None,
    filters: list[str] | None = None,
) -> Callable[..., Question]:
    """Return a function that builds a question from its text and an optional selection."""
    return partial(
        settings.limits.question,
        filters=dict(map(_read_filter, filters or ())),
        top_k=top_k,
        relevance_threshold=relevance_threshold,
    )


def _read_filter(given: str) -> tuple[str, FilterValue]:
    """Convert ``week=2`` to ``("week", 2)``, and ``hasCode=yes`` to ``("hasCode", True)``."""
    name, _, value = given.partition("=")
    kind = FILTERS.get(name)
    if kind is None or not value:
        raise InvalidInput(
            f"There is no filter {given!r}.",
            hint=f"Write NAME=VALUE with one of {', '.join(FILTERS)}.",
        )
    if kind is str or (kind is TextKind and value in set(TextKind)):
        return name, value
    if kind is int and value.isdecimal():
        return name, int(value)
    words = {"yes": True, "true": True, "no": False, "false": False} if kind is bool else {}
    if value.lower() not in words:
        expected = "yes or no" if kind is bool else "a number"
        expected = f"one of {', '.join(TextKind)}" if kind is TextKind else expected
        raise InvalidInput(
            f"The filter {name} cannot be {value!r}.", hint=f"Its value is {expected}."
        )
    return name, words[value.lower()]


# --- batches -------------------------------------------------------------------------------------


def run_batch(path: Path, settings: Settings, answer: AnswerRow, *instead: str | None) -> int:
    """Write one line per line read; return the last error's exit code, or 0.

    ``instead`` are the texts of the command line, which must not be given as well.
    """
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

    return with_book(settings, answer_lines)


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
