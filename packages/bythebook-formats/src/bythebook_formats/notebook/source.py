"""Single notebook, with the anchors of the page that ``jupyter nbconvert --to html`` makes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bythebook.errors import SourceError
from bythebook.interfaces.blocks import Document, Heading
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.language.text import clean
from bythebook.sources.markdown.maths import add_latex_maths
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.types import Metadata
from bythebook_formats.notebook.cells import CellReader, describe
from bythebook_formats.notebook.heading_ids import NbconvertIds, add_heading_ids
from bythebook_formats.notebook.ipynb import read_notebook

SUFFIX = ".ipynb"


class NotebookSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return path.suffix == SUFFIX and files.has_file(path)

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        if not files.has_file(path):
            raise SourceError(f"There is no file {path.name!r}.", hint="Name one .ipynb file.")
        try:
            notebook = read_notebook(files.read_bytes(path.parent, PurePosixPath(path.name)))
        except UnreadableFile as error:
            report(Problem(path.name, error.line, error.reason, fatal=True))
            return
        parsing = ParseOptions(
            mdx=False,
            loose=True,
            maths="guess",
            notes_heading=False,
            plugins=(add_latex_maths, add_heading_ids),
            env={"heading_ids": NbconvertIds()},
        )
        reader = CellReader(parsing, cell_anchors=True)
        document = reader.read(notebook)
        if left_out := describe(reader.omitted):
            report(Problem(path.name, None, left_out))
        yield SourcePage(
            file=path.name,
            title=title_of(document, notebook.title) or path.stem,
            url=_url(path.stem, options),
            document=document,
            metadata=Metadata(language=options.locale or ""),
        )


def title_of(document: Document, given: str = "") -> str:
    """Return the given title, or else the first heading if it is an H1, or ""."""
    first = next((block for block in document.blocks if isinstance(block, Heading)), None)
    written = first.text if first is not None and first.level == 1 else ""
    return clean(given or written)


def _url(name: str, options: SiteOptions) -> str:
    path = posixpath.join("/", options.base_url or "/", f"{name}.html")
    return (options.url or "").rstrip("/") + quote(path)
