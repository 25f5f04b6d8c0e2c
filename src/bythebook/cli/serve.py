"""``bythebook serve``: serve the book's HTTP API and a web page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options

if TYPE_CHECKING:
    from bythebook.config.settings import Settings


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
    """Serve the book over HTTP: a web page at / and the API (documented at /docs)."""
    import asyncio

    from bythebook.server.access import needs_keys
    from bythebook.server.runner import check_free, run

    server = {"host": host, "port": port, "workers": workers}
    settings = options.load(home=home, embedder=embedder, writer=writer, server=server)
    asyncio.run(_look_into(settings))  # fail early if the book cannot be opened
    check_free(settings.server)
    address = f"http://{settings.server.host}:{settings.server.port}/"
    typer.echo(f"The book is open at {address} (Ctrl+C closes it).", err=True)
    if needs_keys(settings):
        typer.echo("Whoever asks needs an API key: bythebook keys create", err=True)
    run(settings)


async def _look_into(settings: Settings) -> None:
    from bythebook.wiring import open_book

    async with open_book(settings) as library:
        await library.context()
