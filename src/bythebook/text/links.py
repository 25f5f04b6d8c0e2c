"""Resolve the links of a book: what leads to another of its files leads to that file's page."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote, urljoin, urlsplit

from bythebook.text.outline import path_of
from bythebook.types import Mark, MarkKind, Passage, Place

_SCHEMES = ("http", "https", "mailto")


def is_safe_link(target: str) -> bool:
    """Return whether a link leads to the web, to an e-mail address or to another page."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    is_relative = not parts.scheme and not target.startswith(("//", "/\\", "\\"))
    return parts.scheme in _SCHEMES or is_relative


class BookLinks:
    """Pages of a book by their files and by their paths."""

    def __init__(self, pages: Iterable[tuple[str, str]]) -> None:
        """Take the file and the URL of each page."""
        self._by_file: dict[str, str] = {}
        self._by_path: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}  # paths by their last part
        for file, url in pages:
            self._by_file.setdefault(file, url)
            path = path_of(url)
            if self._by_path.setdefault(path, url) is url:
                self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def resolved(self, passage: Passage, base: str = "") -> Passage:
        """Return the passage with links that can be followed from anywhere.

        ``base`` is the URL that paths from "/" start at. Only images of a site can be shown.
        """
        marks = passage.marks or ()
        if not any(mark.kind in (MarkKind.LINK, MarkKind.IMAGE) for mark in marks):
            return passage
        kept: list[Mark] = []
        for mark in marks:
            if mark.kind in (MarkKind.LINK, MarkKind.IMAGE):
                target = self.resolve(mark.target, passage.place, base)
                if target and (mark.kind is MarkKind.LINK or is_on_the_web(target)):
                    kept.append(mark._replace(target=target))
            else:
                kept.append(mark)
        return replace(passage, marks=tuple(kept))

    def resolve(self, target: str, place: Place, base: str = "") -> str:
        """Return a link as it works from anywhere; empty if it leads nowhere or is not safe."""
        if not target or not is_safe_link(target):
            return ""
        parts = urlsplit(target)
        if parts.scheme:
            return target
        path, fragment = unquote(parts.path), f"#{parts.fragment}" if parts.fragment else ""
        if not path:
            return place.page_url + fragment
        beside = posixpath.join("/", posixpath.dirname(place.file), path)
        url = urljoin(place.page_url, target)
        if path.startswith("/") and base and not path.startswith(urlsplit(base).path):
            url = urljoin(base, target.lstrip("/"))
        page = self._by_file.get(posixpath.normpath(beside).lstrip("/"))
        page = page or self._by_path.get(path_of(url)) or self._below(path)
        if page is None:
            return url if is_on_the_web(url) else ""
        return page + fragment

    def _below(self, path: str) -> str | None:
        """Return the page for a path from the root of a site, where the book is a part of it."""
        wanted = path.rstrip("/")
        near = self._by_name.get(wanted.rpartition("/")[2], ()) if path.startswith("/") else ()
        found = [known for known in near if f"/{known}".endswith(wanted)]
        return self._by_path[found[0]] if len(found) == 1 else None


def is_on_the_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))
