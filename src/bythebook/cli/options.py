"""Options shared by several commands, and their conversion to settings and questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli.output import echo
from bythebook.errors import InvalidInput
from bythebook.types import FILTERS, FilterValue, TextKind

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.types import Question

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


def question_maker(
    settings: Settings,
    top_k: int | None,
    relevance_threshold: float | None,
    filters: list[str] | None = None,
) -> Callable[..., Question]:
    """Return a function that builds a question from its text and an optional selection."""
    from functools import partial

    from bythebook.api import question_for

    return partial(
        question_for,
        settings=settings,
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
