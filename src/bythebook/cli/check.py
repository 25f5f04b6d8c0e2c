"""``bythebook check …``: is what was ingested still true?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options

if TYPE_CHECKING:
    from bythebook.book.site import Book

app = typer.Typer(
    help="Check that what was ingested is still true.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def check() -> None:
    """Check that what was ingested is still true."""


@app.command("links")
def links(
    home: options.Home = None,
    build: Annotated[
        Path | None, typer.Option("--build", help="Also look into this built Docusaurus site.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check that every stored address leads to a page and a heading. Exit code 1: some do not."""
    from bythebook.assemble import not_ingested, open_catalog
    from bythebook.book.links import lost_in_build, lost_in_sources

    catalog = open_catalog(options.load(home=home))
    current = catalog.current()
    if current is None:
        raise not_ingested()
    urls = {passage.place.url for passage in catalog.passages().values()}
    lost = {"sources": lost_in_sources(urls, _sources(current.origin).pages)}
    if build is not None:
        lost["build"] = lost_in_build(urls, build)
    if as_json:
        typer.echo(json.dumps({"checked": len(urls), **lost}, ensure_ascii=False, indent=2))
    else:
        for where, missing in lost.items():
            for url in missing:
                typer.echo(f"not in the {where}: {url}")
        total = sum(map(len, lost.values()))
        typer.echo(f"{len(urls)} addresses checked against {' and '.join(lost)}: {total} lost.")
    raise typer.Exit(1 if any(lost.values()) else 0)


def _sources(origin: str) -> Book:
    from bythebook.book.site import SiteOptions, read_book

    known = json.loads(origin)
    site = {**known["site"], "exclude": tuple(known["site"]["exclude"])}
    return read_book(Path(known["docs"]), SiteOptions(**site))
