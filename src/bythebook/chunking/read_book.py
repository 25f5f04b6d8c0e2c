"""Read a folder of sources into a book: pages in reading order, and the problems found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bythebook.chunking.pages import ParsedPage, split_page
from bythebook.errors import SourceError
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import FileProbe, Files
from bythebook.sources.inventory import Unread, check_choice, find_unread
from bythebook.sources.mixed import ListedSources
from bythebook.sources.registry import detect_format, find_source
from bythebook.types import Passage

__all__ = ["ParsedBook", "ParsedPage", "Problem", "SiteOptions", "read_book"]

_DEFAULTS = SiteOptions()


@dataclass(frozen=True, slots=True)
class ParsedBook:
    pages: tuple[ParsedPage, ...]
    problems: tuple[Problem, ...]
    seen: Mapping[FileProbe, str] = field(default_factory=dict)  # every file access and result
    unread: Unread = field(default_factory=Unread)

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(passage for page in self.pages for passage in page.passages)

    @property
    def coverage(self) -> float | None:
        """Return the share of visible words that are in some passage; None if there are none."""
        visible = sum(page.visible_words for page in self.pages)
        return sum(page.covered_words for page in self.pages) / visible if visible else None


def check_exists(docs: Path, files: Files | None = None) -> None:
    """Raise SourceError if there is neither a folder nor a file at this path."""
    files = files or Files(docs)
    if not (files.has_folder(docs) or files.has_file(docs)):
        raise SourceError(
            f"There is no folder or file {docs.name!r}.",
            hint="Name the folder that holds the book's pages, or the book's file.",
        )


def read_book(
    docs: Path,
    options: SiteOptions = _DEFAULTS,
    *,
    on_page: Callable[[ParsedPage], None] | None = None,
) -> ParsedBook:
    """Read every page. An unreadable file becomes a problem; the others are still read."""
    docs = docs.resolve()
    files = Files(docs, options.exclude)
    check_exists(docs, files)
    name = options.format or ("" if options.sources else detect_format(docs, files))
    source = ListedSources() if options.sources else find_source(docs, files, name)
    pages: list[ParsedPage] = []
    problems: list[Problem] = []
    for source_page in source.read(docs, files, options, problems.append):
        for remark in source_page.document.remarks:
            problems.append(Problem(source_page.file, remark.line, remark.text))
        page = split_page(source_page)
        pages.append(page)
        if on_page is not None:
            on_page(page)
    problems += _same_urls(pages)
    names = {page.file for page in pages}
    unread = find_unread(docs, files, files.seen, problems, names, name or "listed")
    if not pages and not any(problem.fatal for problem in problems):
        others = ", ".join(sorted({file.kind for file in unread.files}))
        raise SourceError(
            f"The folder {docs.name!r} holds no pages"
            + (f" that can be read as {name} (there are {others} files)." if others else "."),
            hint="Pages are .md, .mdx, .html, .ipynb, .epub and .pdf files whose names do not "
            "start with an underscore.",
        )
    if not options.format and not options.sources:
        check_choice(docs, files, unread, problems, name)
    return ParsedBook(tuple(pages), tuple(problems), files.seen, unread)


def _same_urls(pages: list[ParsedPage]) -> list[Problem]:
    first: dict[str, str] = {}
    return [
        Problem(page.file, None, f"has the same URL as {other}: {page.url}")
        for page in pages
        if (other := first.setdefault(page.url, page.file)) != page.file
    ]
