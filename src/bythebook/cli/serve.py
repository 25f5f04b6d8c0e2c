"""``bythebook serve``: the book over HTTP, and a page to ask it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options

if TYPE_CHECKING:
    from bythebook.settings import Settings


def serve(
    home: options.Home = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Processes that answer side by side.")
    ] = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
) -> None:
    """Serve the book: a page at /, and its contracts beside it (docs/api.md lists the routes)."""
    import asyncio

    from bythebook.serve.door import needs_keys
    from bythebook.serve.run import check_free, run

    server = {"host": host, "port": port, "workers": workers}
    settings = options.load(home=home, embedder=embedder, writer=writer, server=server)
    asyncio.run(_look_into(settings))  # a book that cannot be opened is said so now
    check_free(settings.server)
    address = f"http://{settings.server.host}:{settings.server.port}/"
    typer.echo(f"The book is open at {address} (Ctrl+C closes it).", err=True)
    if needs_keys(settings):
        typer.echo("Whoever asks needs an API key: bythebook keys create", err=True)
    run(settings)


async def _look_into(settings: Settings) -> None:
    from bythebook.assemble import open_library

    async with open_library(settings) as library:
        await library.desk()
