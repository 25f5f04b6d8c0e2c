"""What a widget needs to be seen: a server, an author's site of another origin, a browser."""

from __future__ import annotations

import functools
import html
import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from bythebook.ingestion.read_book import read_book
from tests.support.samples import SAMPLE_BOOK
from tests.web.test_page import _FLAGS, _wait_for

Pages = Callable[[str], tuple[str, bytes] | None]  # a path -> what stands there, and its type


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def book_server(home: Path, *, origins: str, **settings: str) -> Iterator[str]:
    port = free_port()
    command = [str(Path(sys.executable).with_name("bythebook")), "serve", "--port", str(port)]
    environ = {**os.environ, "BYTHEBOOK_ORIGINS": origins, **settings}
    process = subprocess.Popen([*command, "--home", str(home)], env=environ)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/ready")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@contextmanager
def site(pages: Pages, headers: Mapping[str, str], port: int) -> Iterator[str]:
    """An author's site, at another origin than the book's server."""

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

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
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


@contextmanager
def open_browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's Chromium: sh .ci/install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield browser
        browser.close()
