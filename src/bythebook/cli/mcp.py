"""``bythebook mcp``: serve the book as tools to an assistant that starts this process."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from bythebook.cli import options
from bythebook.errors import UnknownProvider

if TYPE_CHECKING:
    from bythebook.book import Book

app = options.command()


@app.command()
def mcp(home: options.Home = None, embedder: options.Embedder = None) -> None:
    """Serve the book's tools over standard input and output (Model Context Protocol)."""
    if find_spec("mcp") is None:
        raise UnknownProvider(
            "The MCP tools need the package mcp.", hint='Run: pip install "bythebook[mcp]"'
        )
    from bythebook.api import use_book
    from bythebook.server.mcp import serve_stdio

    async def serve(book: Book) -> None:
        await book.context()  # fail early if the book cannot be opened
        await serve_stdio(book)

    use_book(options.load(home=home, embedder=embedder), serve)
