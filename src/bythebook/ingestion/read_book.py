"""Read a folder of sources into a book: pages in reading order, and the problems found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten

from bythebook.errors import SourceError
from bythebook.ingestion.pages import ParsedPage, split_page
from bythebook.interfaces.source import Problem, SiteOptions
from bythebook.sources.files import FileProbe, Files
from bythebook.sources.inventory import Unread, check_choice, find_unread
from bythebook.sources.mixed import ListedSources
from bythebook.sources.registry import detect_format, find_source
from bythebook.text.links import BookLinks
from bythebook.types import Passage

__all__ = ["LeftOutTotal", "ParsedBook", "ParsedPage", "Problem", "SiteOptions", "read_book"]

_DEFAULTS = SiteOptions()
_EXAMPLE = 80  # characters


@dataclass(frozen=True, slots=True)
class LeftOutTotal:
    """What was left out of all pages for one reason."""

    reason: str
    words: int
    pages: int
    example: str


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
        """Return the share of visible words that are in some passage; None if there are none.

        A file that could not be read counts as one with as many words as the pages have.
        """
        visible = sum(page.visible_words for page in self.pages)
        lost = {file.file for file in self.unread.files if file.lost}
        lost |= {problem.file for problem in self.problems if problem.fatal}
        visible += len(lost - {page.file for page in self.pages}) * max(
            1, visible // max(1, len(self.pages))
        )
        return sum(page.covered_words for page in self.pages) / visible if visible else None

    @property
    def left_out(self) -> tuple[LeftOutTotal, ...]:
        """Return what was left out of the pages on purpose, by reason."""
        texts: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for page in self.pages:
            for each in page.left_out:
                texts[each.reason].append((page.file, each.text))
        return tuple(
            LeftOutTotal(
                reason,
                words=sum(len(text.split()) for _, text in found),
                pages=len({file for file, _ in found}),
                example=shorten(found[0][1], _EXAMPLE, placeholder=" …"),
            )
            for reason, found in sorted(texts.items())
        )


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
    links = BookLinks((page.file, page.url) for page in pages)
    pages = [_with_links(page, links) for page in pages]
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


def _with_links(page: ParsedPage, links: BookLinks) -> ParsedPage:
    passages = (links.resolved(passage, page.base) for passage in page.passages)
    return replace(page, passages=tuple(passages))


def _same_urls(pages: list[ParsedPage]) -> list[Problem]:
    first: dict[str, str] = {}
    return [
        Problem(page.file, None, f"has the same URL as {other}: {page.url}")
        for page in pages
        if (other := first.setdefault(page.url, page.file)) != page.file
    ]
