"""``bythebook ingest DOCS``: read the book, index it and report the result."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.progress import Progress
from bythebook.errors import InvalidInput, NotIngested

if TYPE_CHECKING:
    from bythebook.chunking.read_book import ParsedBook
    from bythebook.config.settings import Settings
    from bythebook.indexing.indexer import IngestProgress, IngestResult
    from bythebook.indexing.preview import IngestPreview
    from bythebook.interfaces.store import Catalog

_POLL_SECONDS = 1.0


def ingest(
    docs: Annotated[Path, typer.Argument(help="Folder or file of the book.", metavar="DOCS")],
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
    book_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="Format of the book, such as html, epub or pdf; detected by default."
        ),
    ] = None,
    embedder: options.Embedder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the book and say what would change.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and ingest again whenever a file changes.")
    ] = False,
    as_json: options.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print what authors should know.")
    ] = False,
) -> None:
    """Read a book's sources and make them searchable. Only changes are embedded again."""
    if dry_run and watch:
        raise InvalidInput("--dry-run and --watch do not go together.", hint="Leave one out.")
    site: dict[str, Any] = {"url": site_url, "base_url": base_url, "exclude": exclude or None}
    site["format"] = book_format
    settings = options.load(home=home, embedder=embedder, site=site)
    if dry_run:
        raise typer.Exit(_dry_run(docs, settings, as_json=as_json, verbose=verbose))
    seen = _signature(docs) if watch else {}
    code = _ingest_once(docs, settings, as_json=as_json, verbose=verbose)
    while watch:
        seen = _wait_for_change(docs, seen)
        code = _ingest_once(docs, settings, as_json=as_json, verbose=verbose)
    raise typer.Exit(code)


def _ingest_once(docs: Path, settings: Settings, *, as_json: bool, verbose: bool) -> int:
    from bythebook.api import ingest as ingest_book

    with Progress(quiet=as_json) as progress:
        result = ingest_book(docs, settings=settings, progress=_display(progress))
    typer.echo(_json(result)) if as_json else _print(result, settings, verbose=verbose)
    return result.exit_code


def _display(progress: Progress) -> IngestProgress:
    from bythebook.indexing.indexer import EmbeddingEstimate, IngestProgress

    class Display(IngestProgress):
        def pages_read(self, count: int) -> None:
            progress.show("Reading pages", count, None)

        def estimated(self, estimate: EmbeddingEstimate) -> None:
            progress.say(f"{estimate}.")

        def searchable(self) -> None:
            progress.say("The book can be asked now, by keywords; its vectors follow.")

        def embedded(self, done: int, total: int) -> None:
            progress.show("Embedding passages", done, total)

    return Display()


# --- watch mode ------------------------------------------------------------------------------


def _signature(docs: Path) -> dict[Path, tuple[int, int]]:
    """Return modification time and size of each file."""
    signature = {}
    for path in (docs, *docs.rglob("*")):
        try:
            status = path.stat()
        except OSError:  # removed meanwhile
            continue
        signature[path] = (status.st_mtime_ns, status.st_size)
    return signature


def _wait_for_change(docs: Path, seen: dict[Path, tuple[int, int]]) -> dict[Path, tuple[int, int]]:
    """Return the new signature once files have changed and then been stable for a moment."""
    now = seen
    while now == seen:
        time.sleep(_POLL_SECONDS)
        now = _signature(docs)
    while (later := _signature(docs)) != now:
        now = later
        time.sleep(_POLL_SECONDS / 4)
    return now


# --- output ----------------------------------------------------------------------------------


def _dry_run(docs: Path, settings: Settings, *, as_json: bool, verbose: bool) -> int:
    from bythebook.indexing.preview import preview

    book = _read(docs, settings, quiet=as_json)
    price = settings.embedding.price_in
    plan = preview(book, _catalog(settings), embedder=settings.embedder, price_in=price)
    if as_json:
        document = _dry_document(book, plan)
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return 1 if plan.errors else 0
    for page in book.pages:
        typer.echo(
            f"{page.file}: {len(page.passages)} passages, "
            f"{sum(passage.tokens for passage in page.passages)} tokens, "
            f"{_share(page.covered_words, page.visible_words):.2%} of "
            f"{page.visible_words} words, {page.url}"
        )
    _print_notes(plan.errors, plan.warnings, plan.notes, verbose=verbose)
    typer.echo(
        f"{len(book.pages)} pages, {len(book.passages)} passages. Would change "
        f"{plan.change.changed}, remove {plan.change.removed}, keep {plan.change.unchanged}."
    )
    if plan.estimate is not None:
        typer.echo(f"{plan.estimate}.")
    return 1 if plan.errors else 0


def _read(docs: Path, settings: Settings, *, quiet: bool) -> ParsedBook:
    from bythebook.chunking.read_book import SiteOptions
    from bythebook.indexing.source_manifest import read_sources

    with Progress(quiet=quiet) as progress:
        site = SiteOptions.of(settings.site.model_dump())
        return asyncio.run(read_sources(docs, site, _display(progress)))


def _catalog(settings: Settings) -> Catalog | None:
    from bythebook.wiring import open_catalog

    try:
        return open_catalog(settings)
    except NotIngested:
        return None


def _dry_document(book: ParsedBook, plan: IngestPreview) -> dict[str, Any]:
    from bythebook.indexing.indexer import describe

    document = {
        "files_processed": len(book.pages),
        "chunks_created": len(book.passages),
        "errors": plan.errors,
        "exit_code": 1 if plan.errors else 0,
        **asdict(plan.change),
        "coverage": round(book.coverage, 6),
        "notes": [describe(problem) for problem in book.problems if not problem.fatal],
        "pages": [
            {
                "filename": page.file,
                "title": page.title,
                "url": page.url,
                "chunks": len(page.passages),
                "tokens": sum(passage.tokens for passage in page.passages),
                "words": page.visible_words,
                "coverage": round(_share(page.covered_words, page.visible_words), 6),
                "missing": list(page.missing),
            }
            for page in book.pages
        ],
        "warnings": plan.warnings,
    }
    return document if plan.estimate is None else {**document, "to_embed": asdict(plan.estimate)}


def _json(result: IngestResult) -> str:
    document = {
        "files_processed": result.files_processed,
        "chunks_created": result.chunks_created,
        "errors": list(result.errors),
        "warnings": list(result.warnings),
        "exit_code": result.exit_code,
        "embedded": result.embedded,
        "unchanged": result.unchanged,
        "changed": result.changed,
        "removed": result.removed,
        "coverage": round(result.coverage, 6),
        "seconds": round(result.seconds, 3),
    }
    return json.dumps(document, ensure_ascii=False, indent=2)


def _print(result: IngestResult, settings: Settings, *, verbose: bool) -> None:
    hidden = _print_notes(result.errors, result.warnings, result.notes, verbose=verbose)
    typer.echo(
        f"{result.files_processed} pages, {result.chunks_created} passages in {settings.home}: "
        f"{result.changed} new or changed, {result.removed} removed, "
        f"{result.unchanged} unchanged, {result.embedded} embedded."
    )
    typer.echo(f"{result.coverage:.2%} of the visible words, {result.seconds:.1f} s.{hidden}")


def _print_notes(
    errors: Sequence[str], warnings: Sequence[str], notes: Sequence[str], *, verbose: bool
) -> str:
    """Print errors and warnings, and notes if verbose; return a hint if notes were not printed."""
    for error in errors:
        typer.echo(f"error: {error}", err=True)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    for note in notes if verbose else ():
        typer.echo(f"note: {note}", err=True)
    return f" {len(notes)} notes: --verbose shows them." if notes and not verbose else ""


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
