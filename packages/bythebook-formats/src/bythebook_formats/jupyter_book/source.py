"""Jupyter Book sources: ``_toc.yml`` with ``_config.yml``, or ``myst.yml`` of Jupyter Book 2.

URLs and anchors are those of the built book: ``page.html`` and ids of docutils in Jupyter Book 1,
``/page`` and ids of mystmd in Jupyter Book 2.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from bythebook.errors import SourceError
from bythebook.interfaces.blocks import Document
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.files import matches_glob, natural_key
from bythebook.sources.markdown.frontmatter import front_text, read_yaml
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.sources.markdown.pages import Labels, PageDraft, make_page, read_draft
from bythebook_formats.jupyter_book.contents import Entry, myst_slug, read_toc
from bythebook_formats.jupyter_book.includes import labels_in, with_includes
from bythebook_formats.jupyter_book.myst import add_jupyter_book
from bythebook_formats.notebook.cells import CellReader, describe
from bythebook_formats.notebook.heading_ids import (
    DocutilsIds,
    HeadingIds,
    MystIds,
    add_heading_ids,
)
from bythebook_formats.notebook.ipynb import Notebook, read_notebook
from bythebook_formats.notebook.source import title_of

_TOC, _CONFIG, _MYST = PurePosixPath("_toc.yml"), PurePosixPath("_config.yml"), "myst.yml"
_SUFFIXES = (".md", ".ipynb", ".rst", ".myst", ".txt")
_PAGES = (".md", ".ipynb", ".rst")
_INDEXES = ("index", "readme", "main")
_SKIPPED = ("node_modules", "_build")
_RST = (
    "is reStructuredText, which is not read; build the book with `jupyter-book build BOOK`, then: "
    "bythebook ingest BOOK/_build/html"
)


class JupyterBookSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return files.has_file(path / _TOC) or files.has_file(path / _MYST)

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        if not self.detects(path, files):
            raise SourceError(
                f"There is no _toc.yml or myst.yml in {path.name!r}.",
                hint="Name the folder that holds the book's table of contents.",
            )
        try:
            book = _read_book(path, files, options, report)
        except UnreadableFile as error:
            raise SourceError(
                f"The table of contents or the configuration of {path.name!r} cannot be read: "
                f"{error.reason}" + (f" (line {error.line})." if error.line else "."),
                hint="Correct _toc.yml, _config.yml or myst.yml.",
            ) from None
        return book.pages()


@dataclass(frozen=True, slots=True)
class _Listed:
    """Page of the table of contents with its file."""

    file: PurePosixPath
    entry: Entry

    @property
    def name(self) -> str:
        return str(self.file.with_suffix(""))


@dataclass(slots=True)
class _Book:
    root: Path
    files: SourceFiles
    options: SiteOptions
    report: Report
    config: Mapping[str, Any]
    is_myst: bool  # Jupyter Book 2
    listed: list[_Listed] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # of pages and labels
    _slugs: dict[str, int] = field(default_factory=dict)
    _is_first: bool = True

    # --- pages ---

    def pages(self) -> Iterator[SourcePage]:
        drafts = [(listed, self._draft(listed)) for listed in self.listed]
        for listed, draft in drafts:
            if draft is not None:
                self._note_titles(listed, draft)
        above: dict[PurePosixPath, str] = {}
        for listed, draft in drafts:
            url = self._url(listed.file)
            if draft is None:
                continue
            document, title = self._document(listed, draft)
            given = title or listed.entry.title or listed.file.stem
            page = make_page(draft, document, url, given, Labels(None, None, self._language()))
            if title and "title" not in draft.front:
                page = replace(page, title=title)
            above[PurePosixPath(listed.entry.file)] = page.title
            yield _placed(page, listed.entry, above)

    def _draft(self, listed: _Listed) -> PageDraft | _NotebookDraft | None:
        file = listed.file
        try:
            if file.suffix == ".ipynb":
                notebook = read_notebook(self.files.read_bytes(self.root, file))
                return _NotebookDraft(file, str(file), "", {}, 0, notebook)
            if file.suffix in (".rst", ".txt"):
                raise UnreadableFile(_RST)
            draft = read_draft(self.files, self.root, file, str(file))
        except UnreadableFile as error:
            self.report(Problem(str(file), error.line, error.reason, fatal=True))
            return None
        return replace(draft, text=with_includes(draft.text, file.parent, self._open_text))

    def _open_text(self, file: PurePosixPath) -> str | None:
        try:
            return self.files.read(self.root, file)
        except UnreadableFile:
            return None

    def _note_titles(self, listed: _Listed, draft: PageDraft | _NotebookDraft) -> None:
        """Record what references to this page and its labels show."""
        texts = [draft.text]
        if isinstance(draft, _NotebookDraft):
            texts = [cell.text for cell in draft.notebook.cells if cell.kind == "markdown"]
        for text in texts:
            for label, shown in labels_in(text):
                names = (label,) if label else (listed.name, f"/{listed.name}")
                for name in names:
                    self.titles.setdefault(name, shown)

    def _document(self, listed: _Listed, draft: PageDraft | _NotebookDraft) -> tuple[Document, str]:
        parsing = self._parsing(listed, draft.front)
        if isinstance(draft, _NotebookDraft):
            reader = CellReader(parsing, cell_anchors=False)
            document = reader.read(draft.notebook)
            if left_out := describe(reader.omitted):
                self.report(Problem(draft.name, None, left_out))
            return document, title_of(document, draft.notebook.title)
        source = MdxSource.of(draft.text, skip_lines=draft.front_lines)
        document = parse(source, parsing)
        return document, title_of(document)

    def _parsing(self, listed: _Listed, front: Mapping[str, object]) -> ParseOptions:
        has_citations = bool(self.config.get("bibtex_bibfiles"))
        ids: HeadingIds = MystIds() if self.is_myst else DocutilsIds(citations=has_citations)
        env = {"heading_ids": ids, "kernel": _kernel(front), "labels": self._labels(listed)}
        return ParseOptions(
            mdx=False,
            loose=True,
            maths="on",
            notes_heading=False,
            plugins=(add_jupyter_book, add_heading_ids),
            env=env,
        )

    def _labels(self, listed: _Listed) -> Mapping[str, str]:
        folder = str(listed.file.parent)
        if folder == ".":
            return self.titles
        prefix = f"{folder}/"
        beside = {
            other.name.removeprefix(prefix): self.titles[other.name]
            for other in self.listed
            if other.name.startswith(prefix) and other.name in self.titles
        }
        return {**self.titles, **beside}

    def _language(self) -> str | None:
        sphinx = _mapping(_mapping(self.config.get("sphinx")).get("config"))
        found = self.options.locale or sphinx.get("language") or self.config.get("language")
        return found if isinstance(found, str) else None

    # --- URLs ---

    def _url(self, file: PurePosixPath) -> str:
        origin, base = self._base()
        name = self._slug(file) if self.is_myst else str(file.with_suffix(".html"))
        self._is_first = False
        return origin + quote(posixpath.join("/", base, name))

    def _base(self) -> tuple[str, str]:
        """Return the origin and the path of the site."""
        given = _mapping(self.config.get("html")).get("baseurl")
        parts = urlsplit(given) if isinstance(given, str) else urlsplit("")
        own = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
        path = self.options.base_url or (parts.path or "/" if not self.options.url else "/")
        return (self.options.url or own).rstrip("/"), path

    def _slug(self, file: PurePosixPath) -> str:
        """Return the path of a page by mystmd's rule; the first page is the index of the site."""
        if self._is_first:
            return ""
        folders = _mapping(_mapping(self.config.get("site")).get("options")).get("folders")
        parts = [*(file.parent.parts if folders else ()), file.stem]
        slug = "/".join(map(myst_slug, parts)).removesuffix("/index")
        copies = self._slugs[slug] = self._slugs.get(slug, -1) + 1
        return f"{slug}-{copies}" if copies else slug


@dataclass(frozen=True, slots=True)
class _NotebookDraft(PageDraft):
    notebook: Notebook


def _placed(page: SourcePage, entry: Entry, titles: Mapping[PurePosixPath, str]) -> SourcePage:
    """Return the page with the part of the book and the chapter that it belongs to."""
    outermost = entry.above.file if entry.above else entry.file
    is_listed = bool(entry.above or entry.part)
    chapter = titles.get(PurePosixPath(outermost), "") if is_listed else ""
    return replace(
        page,
        module=page.module or entry.part or chapter,
        chapter=page.chapter or chapter,
    )


def _kernel(front: Mapping[str, object]) -> str:
    kernel = _mapping(front.get("kernelspec"))
    name = front_text(kernel, "language") or front_text(kernel, "name") or "python"
    return "python" if name.startswith("python") else name


# --- table of contents ----------------------------------------------------------------------------


def _read_book(path: Path, files: SourceFiles, options: SiteOptions, report: Report) -> _Book:
    is_myst = not files.has_file(path / _TOC)
    if is_myst:
        config = _mapping(read_yaml(files.read(path, PurePosixPath(_MYST))))
        toc = _mapping(config.get("project")).get("toc")
    else:
        toc = read_yaml(files.read(path, _TOC))
        has_config = files.has_file(path / _CONFIG)
        config = _mapping(read_yaml(files.read(path, _CONFIG))) if has_config else {}
    book = _Book(path, files, options, report, config, is_myst)
    entries = list(read_toc(toc)) if toc is not None else _all_pages(path, files)
    book.listed = list(_found(book, entries, str(_MYST if is_myst else _TOC)))
    return book


def _found(book: _Book, entries: Sequence[Entry], toc: str) -> Iterator[_Listed]:
    """Yield the files of the entries, each once; report those that do not exist."""
    seen: set[PurePosixPath] = set()
    for entry in entries:
        found = _matching(book, entry.glob) if entry.glob else _file_of(book, entry.file)
        if not found:
            named = entry.glob or entry.file
            book.report(Problem(toc, None, f"lists {named!r}, which is not in the book"))
        for file in found:
            if file not in seen and not matches_glob(str(file), book.options.exclude):
                seen.add(file)
                yield _Listed(file, entry if entry.file else replace(entry, file=str(file)))


def _file_of(book: _Book, name: str) -> list[PurePosixPath]:
    path = posixpath.normpath(name)
    if path.startswith(("..", "/")) or "\0" in path:
        return []
    given = PurePosixPath(path)
    tried = [given] if given.suffix in _SUFFIXES else []
    tried += [given.with_name(given.name + suffix) for suffix in _SUFFIXES if given.name]
    return [file for file in tried if book.files.has_file(book.root / file)][:1]


def _matching(book: _Book, glob: str) -> list[PurePosixPath]:
    def matches(file: PurePosixPath) -> bool:
        return matches_glob(str(file), [glob]) or matches_glob(str(file.with_suffix("")), [glob])

    return [file for file in _walk(book.root, book.files) if matches(file)]


def _walk(root: Path, files: SourceFiles) -> list[PurePosixPath]:
    def wanted(file: PurePosixPath) -> bool:
        hidden = any(part.startswith(".") or part in _SKIPPED for part in file.parts)
        return file.suffix in _PAGES and not hidden

    found = files.walk(root, wanted, lambda _file, _reason: None)
    return sorted(found, key=lambda file: natural_key(str(file)))


def _all_pages(root: Path, files: SourceFiles) -> list[Entry]:
    """Return all pages of a book without a table of contents; the index comes first."""
    found = _walk(root, files)
    order = sorted(found, key=lambda file: (len(file.parts) > 1, file.stem.lower() not in _INDEXES))
    return [Entry(file=str(file)) for file in order]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
