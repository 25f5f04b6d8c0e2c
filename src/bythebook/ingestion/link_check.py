"""Find stored URLs that do not resolve.

URLs are checked against the routes of the book's sources, or against the pages and element ids
of a built site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bythebook.errors import SourceError
from bythebook.ingestion.pages import ParsedPage


def lost_in_sources(urls: Iterable[str], pages: Iterable[ParsedPage]) -> list[str]:
    """Return the URLs that match no page or heading of the sources."""
    valid: set[str] = set()
    for page in pages:
        valid.add(page.url)
        valid.update(f"{page.url}#{anchor}" for _, anchor in page.headings if anchor)
    return sorted(set(urls) - valid)


def lost_in_build(urls: Iterable[str], build: Path) -> list[str]:
    """Return the URLs that match no page or element id of a built site."""
    if not build.is_dir() or not any(build.rglob("*.html")):
        raise SourceError(
            f"{build} is not a built site.", hint="Name the folder that `docusaurus build` wrote."
        )
    ids: dict[Path, frozenset[str]] = {}
    return sorted(url for url in set(urls) if not _is_built(url, build, ids))


def _is_built(url: str, build: Path, ids: dict[Path, frozenset[str]]) -> bool:
    parts = urlsplit(url)
    file = _file_of(unquote(parts.path), build)
    if file is None:
        return False
    if file not in ids:
        ids[file] = _ids_of(file)
    return not parts.fragment or unquote(parts.fragment) in ids[file]


def _file_of(path: str, build: Path) -> Path | None:
    """Return the page's file. Leading segments of the base URL are not part of the build folder."""
    segments = [segment for segment in path.split("/") if segment]
    for start in range(len(segments) + 1):
        below = build.joinpath(*segments[start:])
        for file in (below, below / "index.html", below.with_name(f"{below.name}.html")):
            if file.is_file():
                return file
    return None


def _ids_of(file: Path) -> frozenset[str]:
    collector = _Ids()
    collector.feed(file.read_text("utf-8", errors="replace"))
    return frozenset(collector.ids)


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes: Mapping[str, str | None] = dict(attrs)
        if attributes.get("id"):
            self.ids.add(str(attributes["id"]))
