"""Options that several verbs share, and how their values become settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bythebook.settings import Settings

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", help="Folder that holds the book. [env: BYTHEBOOK_HOME; default: .bythebook]"
    ),
]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="Contract to start from: book, agent, envelope, plain, chat."),
]
Embedder = Annotated[
    str | None, typer.Option("--embedder", help='Embedding model, as "provider:model".')
]
TopK = Annotated[int | None, typer.Option("--top-k", help="Passages to retrieve.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Batch = Annotated[
    Path | None,
    typer.Option(
        "--batch", help='Read JSON lines (id, question, selected_text) from a file, "-" is stdin.'
    ),
]


def load(**flags: Any) -> Settings:
    from bythebook.settings import load_settings

    return load_settings(flags)
