"""``bythebook export --markdown DIR``: write the book as files for other programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import Progress, echo, print_json
from bythebook.errors import InvalidInput

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.documents.markdown.files import MarkdownExport

app = options.command()


@app.command()
def export(
    markdown: Annotated[
        Path,
        typer.Option(
            "--markdown",
            metavar="DIR",
            help="Write llms.txt, llms-full.txt and a .md file for each page to this folder.",
        ),
    ],
    home: options.Home = None,
    base_url: Annotated[
        str,
        typer.Option(
            "--base-url", help="Path of the site whose root DIR is; other pages are left out."
        ),
    ] = "/",
    as_json: options.Json = False,
) -> None:
    """Write the ingested book as Markdown, for assistants that read files. No server is needed."""
    from bythebook.documents.markdown.files import export_markdown

    if markdown.exists() and not markdown.is_dir():
        raise InvalidInput(f"{markdown} is not a folder.", hint="Name a folder to write to.")
    settings = options.load(home=home)
    with Progress(quiet=as_json) as progress:

        async def work(book: Book) -> MarkdownExport:
            total = len((await book.contents()).pages)
            return await export_markdown(
                book,
                markdown,
                base_url=base_url,
                wrote=lambda count: progress.show("Writing pages", count, total),
            )

        result = options.with_book(settings, work)
    _report(result, as_json=as_json)
    raise typer.Exit(1 if result.broken_links or not result.pages else 0)


def _report(result: MarkdownExport, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(result), "folder": str(result.folder)})
        return
    for link in result.broken_links:
        echo(f"error: broken link in {link}", err=True)
    if not result.pages:
        echo("warning: the book has no page below this --base-url.", err=True)
    echo(f"{result.files} files with {result.words} words in {result.folder}.")
