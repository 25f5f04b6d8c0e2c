"""``bythebook serve``: serve the book's HTTP API and a web page."""

from __future__ import annotations

from typing import Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import echo

app = options.command()


@app.command()
def serve(
    home: options.Home = None,
    preset: options.Preset = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Number of worker processes.")
    ] = None,
    embedder: options.Embedder = None,
    writer: options.Writer = None,
) -> None:
    """Serve a web page at / and the HTTP API (its routes are at /docs)."""
    from bythebook.api import use_book
    from bythebook.server.access import is_reachable, needs_keys
    from bythebook.server.runner import check_free, run

    server = {"host": host, "port": port, "workers": workers}
    settings = options.load(
        home=home, preset=preset, embedder=embedder, writer=writer, server=server
    )
    use_book(settings, lambda book: book.context())  # fail early if it cannot be opened
    check_free(settings.server)
    address = f"http://{settings.server.host}:{settings.server.port}/"
    echo(f"Serving the book at {address} (Ctrl+C stops the server).", err=True)
    contract = settings.server.api_query
    echo(f"POST /api/query follows the contract {contract} (server.api_query).", err=True)
    if needs_keys(settings):
        echo("Requests need an API key. Create one: bythebook keys create", err=True)
    elif is_reachable(settings):
        echo("Everyone who can reach the server can ask without a key.", err=True)
    run(settings)
