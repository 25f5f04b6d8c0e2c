"""``bythebook check …``: check the configured providers, the stored links and the index."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import echo, print_json
from bythebook.errors import BookError, InvalidInput

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.ingestion.integrity import IndexReport
    from bythebook.ingestion.read_book import ParsedBook

_TIMEOUT_S = 5.0

# Raises a BookError with a hint if the check fails.
HealthCheck = Callable[["Settings"], Awaitable[None]]

app = options.command(
    help="Check the providers, the stored URLs and the index.",
    invoke_without_command=True,
)


@app.callback()
def check(context: typer.Context, home: options.Home = None, as_json: options.Json = False) -> None:
    """Check that the providers work and that the ingested data is still correct.

    Without a COMMAND: check the providers.
    """
    if context.invoked_subcommand is None:
        providers(home, as_json)
    elif home is not None or as_json:
        raise InvalidInput(
            f"Options of {context.invoked_subcommand} belong after it.",
            hint=f"Write: bythebook check {context.invoked_subcommand} …",
        )


@app.command("providers")
def providers(home: options.Home = None, as_json: options.Json = False) -> None:
    """Check each configured provider and store. Exit code 2: wrong setting; 3: unavailable."""
    settings = options.load(home=home)
    records, code = [], 0
    with asyncio.Runner() as runner:
        for name, check_it in _checks(settings).items():
            began = time.perf_counter()
            error = runner.run(_failure_of(check_it, settings))
            code = max(code, error.exit_code if error else 0)
            record = {
                "name": name,
                "ok": error is None,
                "message": error.message if error else None,
                "cure": error.hint if error else None,
                "milliseconds": round((time.perf_counter() - began) * 1000),
            }
            records.append(record)
            if not as_json:
                echo(f"✗ {name}: {error}" if error else f"✓ {name}", fg="red" if error else None)
    if as_json:
        print_json({"checks": records})
    raise typer.Exit(code)


def _checks(settings: Settings) -> dict[str, HealthCheck]:
    """Return a check of each configured store and provider, by role and kind."""
    from bythebook.wiring import Providers

    kind = (settings.database_url or "sqlite").partition(":")[0]
    checks: dict[str, HealthCheck] = {f"database {kind.partition('+')[0]}": _check_database}
    if settings.store == "qdrant":
        checks["store qdrant"] = _check_qdrant
    checks["index"] = _check_index
    if settings.access.rate_limit_store.startswith("redis"):
        checks["counts redis"] = _check_rate_limits
    try:
        embedder = Providers(settings).embedder_name
    except BookError:  # its name is in the catalog, which cannot be read: the check says why
        return {**checks, f"embedder {settings.embedder}": _check_embedder}
    checks[f"embedder {embedder}"] = _check_embedder
    if settings.reader != "none":
        checks[f"reader {settings.reader}"] = _check_reader
    if settings.writer != "extractive":
        checks[f"writer {settings.writer}"] = _check_writer
    return checks


async def _failure_of(check: HealthCheck, settings: Settings) -> BookError | None:
    try:
        await check(settings)
    except BookError as error:
        return error
    return None


async def _check_database(settings: Settings) -> None:
    from bythebook.wiring import open_catalog

    await asyncio.to_thread(lambda: open_catalog(settings).served())


async def _check_qdrant(settings: Settings) -> None:
    from bythebook.providers.qdrant.nodes import Nodes
    from bythebook.wiring import qdrant_server

    nodes = Nodes(qdrant_server(settings))
    try:
        await nodes.call(lambda node: node.get_collections(), seconds=_TIMEOUT_S)
    finally:
        await nodes.close()


async def _check_index(settings: Settings) -> None:
    from bythebook.book import Book

    async with await asyncio.to_thread(Book, settings) as book:
        await book.context()


async def _check_rate_limits(settings: Settings) -> None:
    from bythebook.access_stores import redis_counter

    counter = redis_counter(settings.access.rate_limit_store)
    try:
        await counter.take("check", limit=1, seconds=1)
    finally:
        await counter.close()


async def _check_embedder(settings: Settings) -> None:
    from bythebook.retrieval.embeddings import embed
    from bythebook.wiring import Providers

    async with Providers(settings) as providers:
        await embed(["Is the book open?"], providers.embedder, role="query")


async def _check_reader(settings: Settings) -> None:
    from bythebook.wiring import Providers

    async with Providers(settings) as providers:
        if providers.reader is not None:
            await providers.reader.prepare()


async def _check_writer(settings: Settings) -> None:
    from bythebook.wiring import Providers

    async with Providers(settings) as providers:
        if (probe := getattr(providers.writer, "probe", None)) is not None:
            await probe()


@app.command("links")
def links(
    home: options.Home = None,
    build: Annotated[
        Path | None, typer.Option("--build", help="Also check this built Docusaurus site.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check that every stored URL leads to a page and a heading. Exit code 1: some do not."""
    from bythebook.ingestion.integrity import lost_in_build, lost_in_sources
    from bythebook.wiring import not_ingested, open_catalog

    catalog = open_catalog(options.load(home=home))
    current = catalog.current()
    if current is None:
        raise not_ingested()
    urls = {passage.place.url for passage in catalog.passages().values()}
    lost = {"sources": lost_in_sources(urls, _sources(current.origin).pages)}
    if build is not None:
        lost["build"] = lost_in_build(urls, build)
    if as_json:
        print_json({"checked": len(urls), **lost})
    else:
        for where, missing in lost.items():
            for url in missing:
                echo(f"not in the {where}: {url}")
        total = sum(map(len, lost.values()))
        echo(f"{len(urls)} URLs checked against {' and '.join(lost)}: {total} lost.")
    raise typer.Exit(1 if any(lost.values()) else 0)


@app.command("index")
def index(
    home: options.Home = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild the index from the catalog.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare catalog, index and sources. Exit code 1: they differ."""
    report, repaired, sources = asyncio.run(_compare(options.load(home=home), repair=repair))
    if as_json:
        print_json({**asdict(report), "repaired": repaired, "sources_read": sources is not None})
    else:
        _print(report, repaired=repaired, sources_read=sources is not None)
    raise typer.Exit(0 if report.index_is_right and report.is_current else 1)


async def _compare(
    settings: Settings, *, repair: bool
) -> tuple[IndexReport, bool, ParsedBook | None]:
    """Return the report, whether the index was repaired, and the sources if they exist."""
    from bythebook.book import Book

    async with Book(settings) as book:
        sources = _sources_if_there(await book.ingesting().origin())
        report = await book.ingesting().check_index(sources)
        repaired = repair and not report.index_is_right
        if repaired:
            await book.ingesting().repair_index()
            report = await book.ingesting().check_index(sources)
        return report, repaired, sources


def _print(report: IndexReport, *, repaired: bool, sources_read: bool) -> None:
    if repaired:
        echo("The index was rebuilt from the catalog.")
    if report.unreadable:
        echo(f"The index cannot be read: {report.unreadable}")
    counts = {
        "in the catalog, but not in the index": len(report.missing),
        "different in the index": len(report.different),
        "in the index, but not in the catalog": report.surplus,
        "without vectors": len(report.without_vectors),
        "in the sources, but not ingested": len(report.not_ingested),
        "ingested, but no longer in the sources": len(report.gone),
    }
    for what, count in counts.items():
        if count:
            echo(f"{count} passages are {what}.")
    if not sources_read:
        echo("The sources were not found; only catalog and index were compared.")
    if not report.index_is_right:
        echo("Run: bythebook check index --repair")
    elif not report.is_current:
        echo("Ingest the book again.")
    else:
        compared = "catalog, index and sources" if sources_read else "catalog and index"
        echo(f"{report.passages} passages: {compared} agree.")


def _sources_if_there(origin: str) -> ParsedBook | None:
    from bythebook.errors import SourceError

    try:
        return _sources(origin) if origin else None
    except SourceError:
        return None


def _sources(origin: str) -> ParsedBook:
    from bythebook.ingestion.read_book import SiteOptions, read_book

    stored = json.loads(origin)
    return read_book(Path(stored["docs"]), SiteOptions.of(stored["site"]))
