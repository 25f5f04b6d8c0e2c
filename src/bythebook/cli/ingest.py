"""``bythebook ingest DOCS``: read the book, index it, say how it went."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options

if TYPE_CHECKING:
    from bythebook.book.site import Book, SiteOptions
    from bythebook.index.ingest import IngestResult
    from bythebook.settings import Settings


def ingest(
    docs: Annotated[Path, typer.Argument(help="Folder of the book's sources.", metavar="DOCS")],
    home: options.Home = None,
    site_url: Annotated[
        str | None, typer.Option("--site-url", help="Where the book is published.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Path of the site on its host.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Glob of files to leave out; repeatable.")
    ] = None,
    embedder: options.Embedder = None,
    as_json: options.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print what authors should know.")
    ] = False,
) -> None:
    """Read a book's sources and make them searchable. Only what changed costs time."""
    from bythebook.assemble import open_library
    from bythebook.book.site import read_book

    started = time.perf_counter()
    site: dict[str, Any] = {"url": site_url, "base_url": base_url, "exclude": exclude or None}
    settings = options.load(home=home, embedder=embedder, site=site)
    book = read_book(docs, _site_options(settings))
    library = open_library(settings, new=True)
    with _Progress(quiet=as_json) as progress:
        result = asyncio.run(library.ingest(book, on_progress=progress.show, started=started))
    typer.echo(_json(result)) if as_json else _print(result, book, settings, verbose=verbose)
    raise typer.Exit(result.exit_code)


def _site_options(settings: Settings) -> SiteOptions:
    from bythebook.book.site import SiteOptions

    return SiteOptions(**settings.site.model_dump())


class _Progress:
    """A bar on a terminal, a plain line every few seconds elsewhere."""

    _EVERY = 5.0

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._said = time.perf_counter()

    def __enter__(self) -> _Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        console = Console(stderr=True)
        if console.is_terminal and not self._quiet:
            columns = ("Embedding", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int) -> None:
        if self._bar is not None:
            if self._task is None:
                self._task = self._bar.add_task("", total=total)
            self._bar.update(self._task, completed=done)
        elif not self._quiet and time.perf_counter() - self._said > self._EVERY:
            self._said = time.perf_counter()
            typer.echo(f"embedded {done} of {total} passages", err=True)


def _json(result: IngestResult) -> str:
    document = {
        "files_processed": result.files_processed,
        "chunks_created": result.chunks_created,
        "errors": list(result.errors),
        "exit_code": result.exit_code,
        "embedded": result.embedded,
        "unchanged": result.unchanged,
        "changed": result.changed,
        "removed": result.removed,
        "coverage": round(result.coverage, 6),
        "seconds": round(result.seconds, 3),
    }
    return json.dumps(document, ensure_ascii=False, indent=2)


def _print(result: IngestResult, book: Book, settings: Settings, *, verbose: bool) -> None:
    from bythebook.index.ingest import describe

    for error in result.errors:
        typer.echo(f"error: {error}", err=True)
    notes = [describe(problem) for problem in book.problems if not problem.fatal]
    notes += [
        f"{page.file}: {len(page.missing)} visible words were not kept: {', '.join(page.missing)}"
        for page in book.pages
        if page.covered_words < 0.99 * page.visible_words
    ]
    for note in notes if verbose else ():
        typer.echo(f"note: {note}", err=True)
    typer.echo(
        f"{result.files_processed} pages, {result.chunks_created} passages in {settings.home}: "
        f"{result.changed} new or changed, {result.removed} removed, "
        f"{result.unchanged} unchanged, {result.embedded} embedded."
    )
    hidden = f" {len(notes)} notes: --verbose shows them." if notes and not verbose else ""
    typer.echo(f"{result.coverage:.2%} of the visible words, {result.seconds:.1f} s.{hidden}")
