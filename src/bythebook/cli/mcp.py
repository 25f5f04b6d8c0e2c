"""``bythebook mcp``: serve the book as tools to an assistant that starts this process."""

from __future__ import annotations

from bythebook.cli import options


def mcp(home: options.Home = None, embedder: options.Embedder = None) -> None:
    """Serve the book's tools over standard input and output (Model Context Protocol)."""
    import asyncio
    from importlib.util import find_spec

    from bythebook.errors import UnknownProvider

    if find_spec("mcp") is None:
        raise UnknownProvider(
            "The MCP tools need the package mcp.", hint='Run: pip install "bythebook[mcp]"'
        )
    from bythebook.server.mcp import serve_stdio
    from bythebook.wiring import open_book

    settings = options.load(home=home, embedder=embedder)

    async def serve() -> None:
        async with open_book(settings) as library:
            await library.context()  # fail early if the book cannot be opened
            await serve_stdio(library)

    asyncio.run(serve())
