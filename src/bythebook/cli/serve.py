"""``bythebook serve`` and ``mcp``: the book over HTTP, and as tools of an assistant."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import options
from bythebook.cli.output import echo
from bythebook.errors import UnknownProvider

if TYPE_CHECKING:
    from bythebook.book import Book


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
    from bythebook.server.access import is_reachable, needs_keys
    from bythebook.server.runner import check_free, run

    server = {"host": host, "port": port, "workers": workers}
    settings = options.load(
        home=home, preset=preset, embedder=embedder, writer=writer, server=server
    )
    options.with_book(settings, lambda book: book.context())  # fail early if it cannot be opened
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


# --- mcp -----------------------------------------------------------------------------------------


@app.command()
def mcp(home: options.Home = None, embedder: options.Embedder = None) -> None:
    """Serve the book's tools over standard input and output (Model Context Protocol)."""
    if find_spec("mcp") is None:
        raise UnknownProvider(
            "The MCP tools need the package mcp.", hint='Run: pip install "bythebook[mcp]"'
        )
    from bythebook.server.mcp import serve_stdio

    async def serve(book: Book) -> None:
        await book.context()  # fail early if the book cannot be opened
        await serve_stdio(book)

    options.with_book(options.load(home=home, embedder=embedder), serve)
