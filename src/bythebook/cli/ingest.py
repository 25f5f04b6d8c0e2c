"""``bythebook ingest DOCS``: read the book, index it and report the result."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.progress import Progress
from bythebook.errors import InvalidInput, NotIngested

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.chunking.read_book import ParsedBook, SiteOptions
    from bythebook.config.settings import Settings
    from bythebook.indexing.indexer import IngestResult
    from bythebook.indexing.passage_records import Change

_POLL_SECONDS = 1.0


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
    started = time.perf_counter()
    with Progress(quiet=as_json) as progress:
        result = _unchanged(docs, settings) or _read_and_ingest(docs, settings, progress)
    result = replace(result, seconds=time.perf_counter() - started)
    typer.echo(_json(result)) if as_json else _print(result, settings, verbose=verbose)
    return result.exit_code


def _unchanged(docs: Path, settings: Settings) -> IngestResult | None:
    """Return the last result if nothing has changed since that ingest, else None."""
    from bythebook.indexing.source_manifest import find_receipt
    from bythebook.wiring import open_book

    receipt = find_receipt(settings.home, _origin(docs, settings))
    if receipt is None or not receipt.holds():
        return None
    try:
        library = open_book(settings)
    except NotIngested:
        return None
    return receipt.again if asyncio.run(_serves(library, receipt.generation)) else None


async def _serves(library: Book, generation: str) -> bool:
    async with library:
        return await library.serves(generation)


def _read_and_ingest(docs: Path, settings: Settings, progress: Progress) -> IngestResult:
    from bythebook.indexing.source_manifest import Receipt
    from bythebook.wiring import open_book

    book = _read(docs, settings, progress)
    library = open_book(settings, new=True, book=book)
    origin = _origin(docs, settings)
    if (order := _order(book, settings)) is not None:
        progress.say(f"{order}.")

    async def embed() -> IngestResult:
        async with library:
            return await library.ingest(
                book,
                on_progress=lambda done, total: progress.show("Embedding passages", done, total),
                on_searchable=lambda: progress.say(
                    "The book can be asked now, by its words; its vectors follow."
                ),
                origin=origin,
            )

    result = asyncio.run(embed())
    Receipt(result.generation, origin, book.seen, result).keep(settings.home)
    return result


@dataclass(frozen=True, slots=True)
class _Order:
    """Amount of text to send to a remote embedder, and its estimated cost."""

    passages: int
    tokens: int
    cost_usd: float | None

    def __str__(self) -> str:
        cost = "" if self.cost_usd is None else f", about ${self.cost_usd:.4f}"
        return f"To embed: {self.passages} passages, about {self.tokens:,} tokens{cost}"


def _order(book: ParsedBook, settings: Settings) -> _Order | None:
    """Estimate the embedding cost; None for local embedders, which are free."""
    from bythebook.config.settings import AUTO
    from bythebook.indexing.indexer import tokens_to_embed
    from bythebook.indexing.passage_records import vector_key
    from bythebook.wiring import open_catalog

    if settings.embedder == AUTO or settings.embedder.startswith("local:"):
        return None
    try:
        known = open_catalog(settings).known_vectors(settings.embedder)
    except NotIngested:
        known = set()
    missing = {vector_key(p): p for p in book.passages if vector_key(p) not in known}
    tokens, price = tokens_to_embed(list(missing.values())), settings.embedding.price_in
    return _Order(len(missing), tokens, None if price is None else tokens * price / 1e6)


def _read(docs: Path, settings: Settings, progress: Progress) -> ParsedBook:
    from bythebook.chunking.read_book import read_book

    pages = 0

    def count(page: object) -> None:
        nonlocal pages
        pages += 1
        progress.show("Reading pages", pages, None)

    return read_book(docs, _site_options(settings), on_page=count)


def _origin(docs: Path, settings: Settings) -> str:
    where = {"docs": str(docs.resolve()), "site": settings.site.model_dump(mode="json")}
    return json.dumps(where, ensure_ascii=False, sort_keys=True)


def _site_options(settings: Settings) -> SiteOptions:
    from bythebook.chunking.read_book import SiteOptions

    return SiteOptions(**settings.site.model_dump())


# --- watch mode ------------------------------------------------------------------------------


def _signature(docs: Path) -> dict[Path, tuple[int, int]]:
    """Return modification time and size of each file."""
    signature = {}
    for path in docs.rglob("*"):
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
    from bythebook.indexing.indexer import describe, notes_on, warnings_on

    with Progress(quiet=as_json) as progress:
        book = _read(docs, settings, progress)
    change, order = _change(book, settings), _order(book, settings)
    errors = [describe(problem) for problem in book.problems if problem.fatal]
    warnings = warnings_on(book.passages)
    if as_json:
        document = {**_dry_document(book, change, errors), "warnings": list(warnings)}
        if order is not None:
            document["to_embed"] = asdict(order)
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        for page in book.pages:
            typer.echo(
                f"{page.file}: {len(page.passages)} passages, "
                f"{sum(passage.tokens for passage in page.passages)} tokens, "
                f"{_share(page.covered_words, page.visible_words):.2%} of "
                f"{page.visible_words} words, {page.url}"
            )
        _print_notes(errors, warnings, notes_on(book), verbose=verbose)
        typer.echo(
            f"{len(book.pages)} pages, {len(book.passages)} passages. Would change "
            f"{change.changed}, remove {change.removed}, keep {change.unchanged}."
        )
        if order is not None:
            typer.echo(f"{order}.")
    return 1 if errors else 0


def _change(book: ParsedBook, settings: Settings) -> Change:
    from bythebook.indexing.passage_records import diff
    from bythebook.wiring import open_catalog

    try:
        known = open_catalog(settings).passages()
    except NotIngested:
        known = {}
    return diff(known, book.passages)


def _dry_document(book: ParsedBook, change: Change, errors: list[str]) -> dict[str, Any]:
    from bythebook.indexing.indexer import describe

    return {
        "files_processed": len(book.pages),
        "chunks_created": len(book.passages),
        "errors": errors,
        "exit_code": 1 if errors else 0,
        "unchanged": change.unchanged,
        "changed": change.changed,
        "removed": change.removed,
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
    }


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
