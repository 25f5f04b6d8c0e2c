"""The product never fetches an address that it is given.

A book is read from a folder. Addresses in pages, questions and selections are plain text.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import httpx
from tests.support.samples import read, small_book
from typer.testing import CliRunner

from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.errors import BookError
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.server.app import create_app
from reliability.network import watched
from reliability.rows import Rows

_HOSTS = (
    *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "0"),
    *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[fe80::1]", "[fd00::1]"),
    *("169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "100.64.0.1"),
    *("10.0.0.1", "172.16.0.1", "192.168.0.1", "198.18.0.1", "192.0.2.1", "224.0.0.1"),
    *("127.0.0.1.nip.io", "rebind.example", "user:pw@127.0.0.1", "evil.example#@book.example"),
    *("book.example@169.254.169.254", "①②⑦.⓪.⓪.①", "127。0。0。1"),
)
ADDRESSES = (
    *(f"http://{host}/latest/meta-data/" for host in _HOSTS),
    *("https://evil.example/book.zip", "//evil.example/x", "ftp://evil.example/x"),
    *("file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/stat"),
    *("jar:http://evil.example/x!/", "data:text/markdown,x", "http://evil.example:22/"),
)


def _page(address: str, number: int) -> str:
    """Return a page with the address in every place where a site builder would fetch it."""
    return (
        f"---\ntitle: Page {number}\nimage: {address!r}\nslug: /p{number}\n---\n\n"
        f"import A from '{address}';\nimport b from '!!raw-loader!{address}';\n\n# Page\n\n"
        f"<A/> {{b}} [link]({address}) ![image]({address}) <img src='{address}'/> "
        f"<iframe src='{address}'/>\n\n```js reference\n{address}\n```\n\n[ref]: {address}\n"
    )


async def _asked_with(client: httpx.AsyncClient, address: str) -> int:
    selection = "A kettle boils water at 100 degrees."
    selected = {"selected_text": selection, "page_url": address}
    image = {"type": "image_url", "image_url": {"url": address}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/query", {"text": f"What is at {address}?"}),
        ("/ask", {"text": "What boils?", **selected}),
        ("/search", {"text": address}),
        ("/api/v1/query", {"query": f"Fetch {address}", "selected_text": address}),
        ("/api/v2/query", {"query": "What boils?", **selected}),
        ("/chat/run", {"message": f"Open {address}", **selected}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": address}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [image]}]}),
    ]
    for path, body in bodies:
        told = await client.post(path, json=body, headers={"Referer": "http://book.example/"})
        assert told.status_code < 500, (path, body, told.text)
    return len(bodies)


def _given_as_docs(home: Path) -> list[str]:
    """Return the addresses that ``ingest`` accepts as a book."""
    taken = []
    for address in ADDRESSES:
        command = ["ingest", address, "--home", str(home)]
        told = CliRunner().invoke(app, command, standalone_mode=False)
        if not isinstance(told.exception, BookError):
            taken.append(f"{address}: {told.exception!r} {told.stdout[:80]}")
    return taken


async def test_no_address_is_fetched(rows: Rows, tmp_path: Path) -> None:
    row = rows.add(
        "S11", "Server-side request forgery (SSRF)", requirement="0 name look-ups, 0 calls"
    )
    book = small_book(tmp_path / "docs")
    for number, address in enumerate(ADDRESSES):
        (book / f"page{number}.mdx").write_text(_page(address, number), "utf-8")
    library = Book(
        embedder=FakeEmbedder(),
        store=MemoryGenerationStore(),
        catalog=MemoryCatalog(),
        threads=MemoryThreads(),
    )
    asks = 0
    with watched() as seen, contextlib.chdir(tmp_path):
        taken = await asyncio.to_thread(_given_as_docs, tmp_path / "home")
        read_in = await library.ingest(read(book))
        transport = httpx.ASGITransport(create_app(library))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for address in ADDRESSES:
                asks += await _asked_with(client, address)
    assert read_in.files_processed > len(ADDRESSES)
    row.record(
        f"{len(ADDRESSES)} addresses (private, link-local, mapped, octal, other schemes) given to "
        f"`ingest`, planted in {len(ADDRESSES)} pages in eight ways each, and in {asks} requests "
        "as question, selection, page and image",
        f"{len(taken)} taken for a book, {len(seen)} names looked up or calls made",
        passed=not taken and not seen,
    )
