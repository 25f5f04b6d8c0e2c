"""``bythebook ingest DOCS``: read the book, index it and report the result."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.cli import options
from bythebook.cli.output import Progress, echo, print_json
from bythebook.errors import BookError, InvalidInput, NotIngested
from bythebook.language.text import one_line

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.contracts.plain import IngestResult as Document
    from bythebook.ingestion.indexer import IngestProgress, IngestResult
    from bythebook.ingestion.read_book import ParsedBook
    from bythebook.interfaces.store import Catalog

_POLL_SECONDS = 1.0
_SHOWN = 10  # files that were not read: more would push the result off the screen

app = options.command()


@app.command()
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
    allow_removal: Annotated[
        bool, typer.Option("--allow-removal", help="Serve the result even if it has lost its text.")
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
    once = partial(
        _ingest_once, docs, settings, allow_removal=allow_removal, as_json=as_json, verbose=verbose
    )
    code = once()
    while watch:
        seen = _wait_for_change(docs, seen)
        try:
            code = once()
        except BookError as error:  # such as a folder that is empty during a checkout
            echo(f"error: {error}", err=True)
    raise typer.Exit(code)


def _ingest_once(
    docs: Path, settings: Settings, *, allow_removal: bool, as_json: bool, verbose: bool
) -> int:
    from bythebook.api import ingest as ingest_book

    with Progress(quiet=as_json) as progress:
        shown = _display(progress)
        result = ingest_book(docs, settings=settings, progress=shown, allow_removal=allow_removal)
    if as_json:
        print_json(_document(result).model_dump(mode="json"))
    else:
        _print(result, settings, verbose=verbose)
    return result.exit_code


def _display(progress: Progress) -> IngestProgress:
    from bythebook.ingestion.indexer import EmbeddingEstimate, IngestProgress

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
    from bythebook.ingestion.indexer import preview

    book = _read(docs, settings, quiet=as_json)
    price = settings.embedding.price_in
    plan = preview(book, _catalog(settings), embedder=settings.embedder, price_in=price)
    if as_json:
        print_json(_dry_document(book, plan))
        return plan.exit_code
    for page in book.pages:
        echo(
            f"{one_line(page.file)}: {len(page.passages)} passages, "
            f"{sum(passage.tokens for passage in page.passages)} tokens, "
            f"{_percent(_share(page.covered_words, page.visible_words))} of "
            f"{page.visible_words} words, {page.url}"
        )
    _print_remarks(plan, verbose=verbose)
    echo(
        f"{len(book.pages)} pages, {len(book.passages)} passages. Would change "
        f"{plan.changed}, remove {plan.removed}, keep {plan.unchanged}."
    )
    if plan.to_embed is not None:
        echo(f"{plan.to_embed}.")
    return plan.exit_code


def _read(docs: Path, settings: Settings, *, quiet: bool) -> ParsedBook:
    from bythebook.ingestion.ingest import read_sources
    from bythebook.ingestion.read_book import SiteOptions

    with Progress(quiet=quiet) as progress:
        site = SiteOptions.of(settings.site.model_dump())
        return asyncio.run(read_sources(docs, site, _display(progress)))


def _catalog(settings: Settings) -> Catalog | None:
    from bythebook.wiring import open_catalog

    try:
        return open_catalog(settings)
    except NotIngested:
        return None


def _dry_document(book: ParsedBook, plan: IngestResult) -> dict[str, Any]:
    from bythebook.ingestion.indexer import describe

    pages = [
        {
            "filename": page.file,
            "title": page.title,
            "url": page.url,
            "chunks": len(page.passages),
            "tokens": sum(passage.tokens for passage in page.passages),
            "words": page.visible_words,
            "coverage": _rounded(_share(page.covered_words, page.visible_words)),
            "missing": list(page.missing),
        }
        for page in book.pages
    ]
    notes = [describe(problem) for problem in book.problems if not problem.fatal]
    cost = {} if plan.to_embed is None else {"to_embed": asdict(plan.to_embed)}
    counts = _document(plan).model_dump(mode="json", exclude={"embedded", "seconds"})
    return {**counts, "notes": notes, "pages": pages, **cost}


def _document(result: IngestResult) -> Document:
    from bythebook.contracts.plain import show_ingest
    from bythebook.ingestion.indexer import MOST_LISTED

    return show_ingest(result, most_listed=MOST_LISTED)


def _print(result: IngestResult, settings: Settings, *, verbose: bool) -> None:
    _print_remarks(result, verbose=verbose)
    if not result.published:
        return
    echo(
        f"{result.files_processed} pages, {result.chunks_created} passages in {settings.home}: "
        f"{result.changed} new or changed, {result.removed} removed, "
        f"{result.unchanged} unchanged, {result.embedded} embedded."
    )
    unseen = 0 if verbose else len(result.notes)
    hidden = f" {unseen} notes: --verbose shows them." if unseen else ""
    echo(f"{_percent(result.coverage)} of the visible words, {result.seconds:.1f} s.{hidden}")


def _print_remarks(report: IngestResult, *, verbose: bool) -> None:
    """Print what an author should know: problems, and what of the folder is in no page."""
    lines = [f"error: {error}" for error in report.errors]
    lines += [f"warning: {warning}" for warning in report.warnings]
    lines += [f"note: {note}" for note in report.notes if verbose]
    shown = report.not_read if verbose else report.not_read[:_SHOWN]
    lines += [f"not read: {one_line(file.file)}: {file.reason}" for file in shown]
    unshown = report.not_read_total - len(shown)
    more = [f"{unshown} more files"] * (unshown > 0)
    more += [f"text in {report.images} images"] * (report.images > 0)
    lines += [f"not read: {' and '.join(more)}"] * bool(more)
    for each in report.left_out if verbose else ():
        counts = f"{each.words} words on {each.pages} pages"
        lines.append(f"left out: {each.reason}: {counts}, such as “{each.example}”")
    for line in lines:
        echo(line, err=True)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


def _percent(share: float | None) -> str:
    return "No share" if share is None else f"{share:.2%}"
