"""``bythebook mcp``: the book as tools for an assistant that starts this program."""

from __future__ import annotations

from bythebook.cli import options


def mcp(home: options.Home = None, embedder: options.Embedder = None) -> None:
    """Serve the book's tools over standard input and output (Model Context Protocol)."""
    import asyncio

    from bythebook.assemble import open_library
    from bythebook.serve.mcp import check_installed, serve_stdio

    check_installed()
    settings = options.load(home=home, embedder=embedder)

    async def serve() -> None:
        async with open_library(settings) as library:
            await library.desk()  # a book that cannot be opened is said so now
            await serve_stdio(library)

    asyncio.run(serve())
