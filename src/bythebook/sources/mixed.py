"""Books of several sources: a folder of files in several formats, or a list of parts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath

from bythebook.errors import SourceError
from bythebook.interfaces.source import Problem, Report, SiteOptions, SourceFiles, SourcePage
from bythebook.sources.files import matches_glob, natural_key
from bythebook.sources.inventory import MARKDOWN, READABLE, UNBUILT, is_hidden
from bythebook.sources.markdown.folder import MarkdownFolder, find_site
from bythebook.sources.registry import INSTALL_FORMATS, detect_format, find_source, needs_formats

# Formats whose own configuration has the path of the site.
_CONFIGURED = ("docusaurus", "mdbook", "jupyter-book")


class MixedFolder:
    """Folder with files in several formats, read in the order of their paths."""

    def detects(self, path: Path, files: SourceFiles) -> bool:
        if not files.has_folder(path):
            return bool(_reason(path)) and files.has_file(path)
        if find_site(files, path, SiteOptions()).root != path:
            return False  # a site of Hugo: other files are beside its pages
        return any(
            file.suffix.lower() not in MARKDOWN for file in _files(path, files, SiteOptions())
        )

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        if not files.has_folder(path):
            if not _reason(path):
                raise SourceError(
                    f"{path.name!r} is not a folder.",
                    hint="The format mixed is for folders: leave out --format.",
                )
            raise SourceError(f"{path.name!r} {_reason(path)}.", hint=_hint(path))
        options = replace(options, format=None)  # of the folder, not of its files
        found = list(_files(path, files, options))
        unread = {file: reason for file in found if (reason := _reason(file))}
        if unread and len(unread) == len(found):
            raise SourceError(
                f"{path.name!r} holds {found[0].suffix.lower()} files only: {_reason(found[0])}.",
                hint=_hint(found[0]),
            )
        markdown: dict[str, SourcePage] = {}
        if any(file.suffix.lower() in MARKDOWN for file in found):
            pages = MarkdownFolder().read(path, files, options, report)
            markdown = {page.file: page for page in pages}
        if find_site(files, path, options).routes.kind in ("jekyll", "gitbook"):
            yield from markdown.values()  # in the order of the site
            markdown = {}
        for file in sorted(found, key=_path_order):
            if file in unread:
                told = f"{unread[file]}; {_hint(file)}"
                report(Problem(str(file), None, told, fatal=True))
            elif file.suffix.lower() not in MARKDOWN:
                yield from read_part(path, file, files, options, report)
            elif str(file) in markdown:
                yield markdown[str(file)]


class ListedSources:
    """Parts that the author has listed in ``site.sources``, read in that order."""

    def detects(self, path: Path, files: SourceFiles) -> bool:
        return False  # chosen by the setting alone

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        for part in options.sources:
            relative = PurePosixPath(posixpath.normpath(part.path))
            if relative.is_absolute() or ".." in relative.parts:
                raise SourceError(
                    f"The source {part.path!r} is not below the book's folder.",
                    hint="Correct `path` in [[site.sources]] of bythebook.toml.",
                )
            if not (files.has_folder(path / relative) or files.has_file(path / relative)):
                raise SourceError(
                    f"There is no folder or file {part.path!r} below {path.name!r}.",
                    hint="Correct `path` in [[site.sources]] of bythebook.toml.",
                )
            own = replace(options, format=part.format)
            for page in read_part(path, relative, files, own, report):
                yield replace(page, module=part.title) if part.title else page


def read_part(
    root: Path, part: PurePosixPath, files: SourceFiles, options: SiteOptions, report: Report
) -> Iterator[SourcePage]:
    """Yield the pages of a folder or file below the root, named by their path from the root."""
    folder = part if files.has_folder(root / part) else part.parent
    prefix = "" if str(folder) == "." else f"{folder}/"
    name = options.format or detect_format(root / part, files)
    below = replace(options, format=None, sources=())
    if name not in _CONFIGURED:
        below = replace(below, base_url=posixpath.join(options.base_url or "/", prefix))
    source = find_source(root / part, files, name)

    def report_below(problem: Problem) -> None:
        report(replace(problem, file=prefix + problem.file))

    for page in source.read(root / part, files, below, report_below):
        yield replace(page, file=prefix + page.file)


def _files(root: Path, files: SourceFiles, options: SiteOptions) -> Iterator[PurePosixPath]:
    suffixes = (*READABLE, *UNBUILT)

    def wanted(path: PurePosixPath) -> bool:
        excluded = is_hidden(path) or matches_glob(str(path), options.exclude)
        return path.suffix.lower() in suffixes and not excluded

    return files.walk(root, wanted, lambda _file, _reason: None)


def _path_order(path: PurePosixPath) -> list[tuple[bool, list[tuple[int, str]]]]:
    """Sort by path; the index of a folder comes before its other files."""
    *folders, name = path.parts
    is_index = PurePosixPath(name).stem.lower() in ("index", "readme")
    return [*((True, natural_key(part)) for part in folders), (not is_index, natural_key(name))]


def _reason(file: PurePath) -> str:
    """Return why a file cannot be read, or an empty string."""
    suffix = file.suffix.lower()
    if suffix in UNBUILT:
        return f"is a source that has to be built first ({suffix})"
    return "needs the package bythebook-formats" if needs_formats(file.name) else ""


def _hint(file: PurePath) -> str:
    command = UNBUILT.get(file.suffix.lower())
    return (
        f"Build it with `{command}`, then: bythebook ingest BUILD" if command else INSTALL_FORMATS
    )
