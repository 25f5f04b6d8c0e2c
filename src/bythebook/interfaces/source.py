"""Interface of book formats: files in, pages with block trees out, in reading order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

from bythebook.interfaces.blocks import Document
from bythebook.types import Metadata

SITE_URL = re.compile(r"https?://[^\s/?#]+/?")  # origin of a site; other schemes run or open things
_NO_METADATA = Metadata(language="")


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """Part of a book that consists of several sources."""

    path: str  # below the book's folder
    title: str | None = None  # of the part; None: from the source
    format: str | None = None  # registered name; None: detected


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Site settings given by the author. None: read from the site, or use the default."""

    url: str | None = None
    base_url: str | None = None
    route_base_path: str | None = None
    trailing_slash: bool | None = None
    locale: str | None = None
    exclude: tuple[str, ...] = ()
    markdown_format: str | None = None
    format: str | None = None  # registered name of the book's format; None: detected
    sources: tuple[SourceEntry, ...] = ()  # parts of the book, in order; empty: the whole folder

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SiteOptions:
        """Make options from settings or from JSON."""
        sources = tuple(SourceEntry(**entry) for entry in values.get("sources", ()))
        return cls(**{**values, "exclude": tuple(values.get("exclude", ())), "sources": sources})


@dataclass(frozen=True, slots=True)
class Problem:
    """File that could not be read, or a remark for its author."""

    file: str
    line: int | None
    reason: str
    fatal: bool = False  # the file was skipped


Report = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Page of a book before it is split into passages."""

    file: str  # name in the book, part of the passages' ids: the same on every machine
    title: str
    url: str  # without anchor; empty if the page is not on a site
    document: Document
    module: str = ""  # part of the book; empty: the page's title
    chapter: str = ""
    metadata: Metadata = _NO_METADATA  # an empty language is detected from the words
    base: str = ""  # URL that links from "/" start at, if it is not the root of the host
    text_fragments: bool = True  # whether a browser can highlight the words of a link


class UnreadableFile(Exception):
    """Reason why a file is not read, with the line number if known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class SourceFiles(Protocol):
    """File access that records every result: a book is read again only if one of them changes.

    A source opens nothing in any other way. Only the book's folder can be read, and configuration
    files above it; nothing that a path or a link in the book names outside.
    """

    def widen(self, root: Path) -> None:
        """Also open what is below ``root``, a folder above the book's with its configuration."""
        ...

    def read(self, root: Path, relative: PurePosixPath) -> str:
        """Return the text of a file below ``root``, or raise UnreadableFile."""
        ...

    def read_bytes(self, root: Path, relative: PurePosixPath) -> bytes:
        """Return the content of a binary file below ``root``, or raise UnreadableFile."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder, or raise UnreadableFile."""
        ...

    def walk(
        self,
        root: Path,
        wanted: Callable[[PurePosixPath], bool],
        refuse: Callable[[str, str], None],
    ) -> Iterator[PurePosixPath]:
        """Yield regular files below ``root``, sorted; report links and others to ``refuse``."""
        ...

    def has_file(self, path: Path) -> bool: ...

    def has_folder(self, path: Path) -> bool: ...


@runtime_checkable
class Source(Protocol):
    """Reader of one book format."""

    def detects(self, path: Path, files: SourceFiles) -> bool:
        """Return whether the folder (or single file) is a book in this format."""
        ...

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        """Yield the pages in reading order. Report a file that cannot be read, and go on."""
        ...
