"""A server with a book, an author's site of another origin, and a browser."""

from __future__ import annotations

import functools
import html
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from bythebook.ingestion.read_book import read_book
from tests.server.running_server import PROGRAM, free_port, running
from tests.support.samples import SAMPLE_BOOK

__all__ = ["book_server", "free_port", "open_browser", "site"]

Pages = Callable[[str], tuple[str, bytes] | None]  # a path -> what stands there, and its type

_FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
_AXE = Path(os.environ.get("BYTHEBOOK_AXE", Path.home() / ".cache" / "bythebook" / "axe"))


@contextmanager
def book_server(
    home: Path, *, origins: str = "", port: int | None = None, **environ: str
) -> Iterator[str]:
    port = port or free_port()
    address = f"http://127.0.0.1:{port}"
    command = [PROGRAM, "serve", "--port", str(port), "--home", str(home)]
    settings = {"BYTHEBOOK_ORIGINS": origins, **environ}
    with (
        tempfile.NamedTemporaryFile(suffix=".log") as log,
        running(command, address, Path(log.name), environ=settings) as server,
    ):
        yield address
        assert server.stop()[0] == 0


def new_key(home: Path, *options: str) -> str:
    command = [PROGRAM, "keys", "create", "--home", str(home), "--json", *options]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    return str(json.loads(made.stdout)["key"])


@contextmanager
def open_browser(*flags: str) -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's Chromium: sh .ci/install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*_FLAGS, *flags])
        yield browser
        browser.close()


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong with the accessibility of a page."""
    file = next(_AXE.glob("axe-*.js"), None)
    if file is None:
        pytest.skip("needs axe-core from npm: sh .ci/install")
    page.wait_for_timeout(250)  # what fades in is not yet what is read
    page.evaluate(file.read_text())
    found = page.evaluate("() => axe.run(document).then((result) => result.violations)")
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found]


# --- sites of authors -----------------------------------------------------------------------------


@contextmanager
def site(pages: Pages, headers: Mapping[str, str], port: int) -> Iterator[str]:
    """Serve pages at another origin than the book's server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            media_type, body = pages(self.path) or ("text/html", b"")
            self.send_response(200 if body else 404)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with _serving(Handler, port) as address:
        yield address


@contextmanager
def folder_site(folder: Path) -> Iterator[str]:
    """Serve the files of a folder."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with _serving(functools.partial(Handler, directory=str(folder))) as address:
        yield address


@contextmanager
def _serving(
    handler: Callable[..., http.server.BaseHTTPRequestHandler], port: int = 0
) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@functools.cache
def book_pages() -> dict[str, str]:
    """The sample book as plain pages, by their paths: its sections, with their anchors."""
    passages = read_book(SAMPLE_BOOK / "docs").passages
    pages: dict[str, str] = {}
    for url, found in groupby(passages, key=lambda passage: passage.place.page_url):
        parts = []
        for passage in found:
            anchor = passage.place.url.partition("#")[2]
            heading = html.escape(passage.place.heading)
            text = "".join(
                f"<p>{html.escape(passage.unit_text(unit))}</p>" for unit in passage.units
            )
            parts.append(f'<section id="{anchor}"><h2>{heading}</h2>{text}</section>')
        path = urlsplit(url).path
        pages[path] = pages.get(path, "") + "".join(parts)
    return pages
