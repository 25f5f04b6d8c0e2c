"""Options shared by several commands, and their conversion to settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.errors import InvalidInput
from bythebook.types import FILTERS, FilterValue

if TYPE_CHECKING:
    from bythebook.config.settings import Settings

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Folder that holds the book. [env: BYTHEBOOK_HOME; default: .bythebook]"
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset", help="Contract whose constants apply: query, ask, envelope, plain, chat."
    ),
]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help='Embedding model, as "provider:model", or "auto".')
]
Writer = Annotated[
    str | None,
    typer.Option("--writer", help='Who writes: extractive, or a model as "provider:model".'),
]
TopK = Annotated[int | None, typer.Option("--top-k", help="Passages to retrieve.")]
RelevanceThreshold = Annotated[
    float | None,
    typer.Option(
        "--relevance-threshold", help="Least score of a passage, 0 to 1. [default: the preset's]"
    ),
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
        help=f"Look only there; repeatable. Names: {', '.join(FILTERS)}.",
    ),
]


def read_filters(given: list[str] | None) -> dict[str, FilterValue]:
    """Convert ``["week=2", "hasCode=yes"]`` to ``{"week": 2, "hasCode": True}``."""
    return dict(_read_filter(each) for each in given or ())


def _read_filter(given: str) -> tuple[str, FilterValue]:
    name, _, value = given.partition("=")
    kind = FILTERS.get(name)
    if kind is None or not value:
        raise InvalidInput(
            f"There is no filter {given!r}.",
            hint=f"Write NAME=VALUE with one of {', '.join(FILTERS)}.",
        )
    if kind is str:
        return name, value
    known = {"yes": True, "true": True, "no": False, "false": False} if kind is bool else {}
    if kind is int and value.isdecimal():
        return name, int(value)
    if value.lower() not in known:
        wanted = "yes or no" if kind is bool else "a number"
        raise InvalidInput(f"The filter {name} is not {value!r}.", hint=f"Give it {wanted}.")
    return name, known[value.lower()]


def load(**flags: Any) -> Settings:
    from bythebook.config.settings import load_settings

    return load_settings(flags)
