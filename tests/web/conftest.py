"""A browser, and a server with the sample book, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.browser_fixtures import book_server, open_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(sample_home: Path) -> Iterator[str]:
    with book_server(sample_home) as address:
        yield address
