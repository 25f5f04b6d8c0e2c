"""PDF files with a text layer: one page of the book for each chapter.

A link to a passage is that of the file with the number of the page: ``book.pdf#page=12``. Pages of
the book need different URLs, so chapters after the first have a query, which servers of files
ignore: ``book.pdf?chapter=2#page=12``.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from bythebook.interfaces.blocks import Document
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.documents import headings_of
from bythebook.types import Metadata
from bythebook_formats.pdf.codec import decode_chapter
from bythebook_formats.pdf.model import PdfChapter
from bythebook_formats.pdf.process import WorkerLimits, run_worker

_DEFAULTS = WorkerLimits()


class PdfSource:
    def __init__(self, limits: WorkerLimits = _DEFAULTS) -> None:
        self._limits = limits

    def detects(self, path: Path, files: SourceFiles) -> bool:
        return path.suffix.lower() == ".pdf" and files.has_file(path)

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        try:
            content = files.read_bytes(path.parent, PurePosixPath(path.name))
            chapters = self._chapters(path, content, report)
        except UnreadableFile as error:
            report(Problem(path.name, error.line, error.reason, fatal=True))
            return
        yield from _pages(path.name, chapters, options)

    def _chapters(self, path: Path, content: bytes, report: Report) -> list[PdfChapter]:
        chapters: list[PdfChapter] = []
        for value in run_worker(content, path.stem, self._limits):
            if "refused" in value:
                raise UnreadableFile(str(value["refused"]))
            if "remark" in value:
                report(Problem(path.name, None, str(value["remark"])))
            else:
                chapters.append(_chapter(value))
        return chapters


def _chapter(value: dict[str, Any]) -> PdfChapter:
    try:
        return decode_chapter(value["chapter"])
    except (KeyError, TypeError, ValueError):
        raise UnreadableFile("the PDF reader failed") from None


def _pages(name: str, chapters: list[PdfChapter], options: SiteOptions) -> Iterator[SourcePage]:
    path = posixpath.join("/", options.base_url or "/", name)
    url = (options.url or "").rstrip("/") + quote(path)
    starts: Counter[int] = Counter()
    for number, chapter in enumerate(chapters, 1):
        starts[chapter.page] += 1
        copy = f"-{starts[chapter.page]}" if starts[chapter.page] > 1 else ""
        yield SourcePage(
            file=name if len(chapters) == 1 else f"{name}/page-{chapter.page}{copy}",
            title=chapter.title,
            url=url if number == 1 else f"{url}?chapter={number}",
            document=Document(
                blocks=tuple(chapter.blocks),
                headings=tuple(headings_of(chapter.blocks)),
                words=tuple(chapter.words),
                left_out=tuple(chapter.left_out),
            ),
            module=chapter.module,
            metadata=Metadata(language=options.locale or ""),
            text_fragments=False,
        )
