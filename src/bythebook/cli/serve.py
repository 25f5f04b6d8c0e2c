"""``bythebook serve``: the book over HTTP, and a page to ask it on."""

from __future__ import annotations

from typing import Annotated

import typer

from bythebook.cli import options


def serve(
    home: options.Home = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    embedder: options.Embedder = None,
) -> None:
    """Serve the book: a page at /, POST /ask, POST /search, POST /chat/run, GET /health."""
    import asyncio

    from bythebook.assemble import open_library
    from bythebook.serve.run import check_free, run

    server = {"host": host, "port": port}
    settings = options.load(home=home, embedder=embedder, server=server)
    asyncio.run(open_library(settings).desk())  # a book that cannot be opened is said so now
    check_free(settings.server)
    address = f"http://{settings.server.host}:{settings.server.port}/"
    typer.echo(f"The book is open at {address} (Ctrl+C closes it).", err=True)
    run(settings)
