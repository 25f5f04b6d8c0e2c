"""mdBook sources: chapters from ``SUMMARY.md``, includes, URLs and anchors.

Follows mdBook's documentation: chapters are the links of the summary, in its order; parts are its
headings; ``README.md`` becomes ``index.html``; anchors have a rule of their own.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bythebook.errors import SourceError
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.files import matches_glob
from bythebook.sources.markdown.folder import read_summary
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.pages import Imports, Labels, make_page, read_draft

_INCLUDE = re.compile(
    r"(?<!\\)\{\{\s*#(?:include|rustdoc_include|playground)"
    r"\s+([^\s:}]++)(?::([^\s}]*+))?+[^{}]*+\}\}"
)
_ANCHOR_LINE = re.compile(r"ANCHOR(?:_END)?:\s*([\w-]+)")
_MAX_INCLUDED = 2 * 1024 * 1024  # characters of all includes in one page

OpenText = Callable[[PurePosixPath], str | None]


class MdBookSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        has_config = any(files.has_file(home / "book.toml") for home in (path, path.parent))
        return has_config and find_mdbook(files, path) is not None

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        book = find_mdbook(files, path)
        if book is None:
            raise SourceError(
                f"There is no SUMMARY.md in {path.name!r}.", hint="Name the folder of book.toml."
            )
        imports = Imports(files, book.folder)
        parsing = ParseOptions(mdx=False, maths="guess", slug=mdbook_slug)

        def open_text(file: PurePosixPath) -> str | None:
            try:
                return files.read(book.folder, file)
            except UnreadableFile:
                return None

        try:
            summary = files.read(book.folder, PurePosixPath("SUMMARY.md"))
        except UnreadableFile as error:
            raise SourceError(
                f"SUMMARY.md of the mdBook is not read: {error.reason}.",
                hint="Put a file there, in UTF-8: it lists the chapters.",
            ) from None
        for chapter in read_summary(summary):
            name = str(chapter.file)
            if matches_glob(name, options.exclude):
                continue
            try:
                draft = read_draft(files, book.folder, chapter.file, name)
            except UnreadableFile as error:
                report(Problem(name, error.line, error.reason, fatal=True))
                continue
            text = with_includes(draft.text, chapter.file.parent, open_text)
            for lost in _INCLUDE.finditer(text):
                report(Problem(name, None, f"{lost[1]} is not included: no text file of the book"))
            draft = replace(draft, text=text)
            document = imports.document(draft, chapter.file.parent, parsing)
            labels = Labels(
                module=chapter.part or chapter.above,
                chapter=chapter.above,
                language=options.locale or book.language,
            )
            url = book.url(chapter.file, options.url or "", options.base_url)
            yield make_page(draft, document, url, chapter.title, labels)


@dataclass(frozen=True, slots=True)
class MdBook:
    folder: Path  # contains SUMMARY.md
    base_url: str
    language: str | None

    def url(self, file: PurePosixPath, origin: str, base_url: str | None) -> str:
        name = "index" if file.stem.lower() == "readme" else file.stem
        path = posixpath.join("/", base_url or self.base_url, str(file.with_name(f"{name}.html")))
        return origin.rstrip("/") + quote(path)


def find_mdbook(files: SourceFiles, docs: Path) -> MdBook | None:
    """Return the mdBook of which this is the root or source folder, or None."""
    for home, folder in ((docs, None), (docs.parent, docs)):
        config = _read_config(files, home / "book.toml")
        named = _below(config, "book").get("src")
        source = folder or home / posixpath.normpath(str(named or "src"))
        _check_readable(files, source, is_named=folder is None and bool(named))
        if files.has_file(source / "SUMMARY.md"):
            html = _below(_below(config, "output"), "html")
            language = _below(config, "book").get("language")
            return MdBook(
                folder=source,
                base_url=str(html.get("site-url", "/")),
                language=language if isinstance(language, str) else None,
            )
    return None


def _check_readable(files: SourceFiles, source: Path, *, is_named: bool) -> None:
    try:
        files.names(source)
    except UnreadableFile as error:
        if is_named or files.has_folder(source):
            raise SourceError(
                f"The folder {source.name!r} of the mdBook is not read: {error.reason}.",
                hint="Correct `src` in book.toml: it names a folder below the book's.",
            ) from None


def _read_config(files: SourceFiles, file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(files.read(file.parent, PurePosixPath(file.name)))
    except (UnreadableFile, tomllib.TOMLDecodeError):
        return {}


def _below(table: dict[str, object], name: str) -> dict[str, object]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def with_includes(text: str, folder: PurePosixPath, open_text: OpenText) -> str:
    """Expand ``{{#include file}}``, also with lines (``:2:10``) or an anchor (``:name``)."""
    left = _MAX_INCLUDED

    def put(directive: re.Match[str]) -> str:
        nonlocal left
        path = posixpath.normpath(posixpath.join(str(folder), directive.group(1)))
        included = None if path.startswith(("..", "/")) else open_text(PurePosixPath(path))
        if included is None or len(included) > left:
            return directive.group(0)
        left -= len(included)
        return _part_of(included, directive.group(2) or "")

    return _INCLUDE.sub(put, text)


def _part_of(text: str, part: str) -> str:
    lines = text.splitlines()
    if re.fullmatch(r"\d*(?::\d*)?", part):
        first, _, last = part.partition(":")
        start = int(first or 1) - 1
        end = int(last) if last else (start + 1 if first and ":" not in part else len(lines))
        chosen = lines[start:end]
    else:
        chosen = _between_anchors(lines, part.partition(":")[0])
    return "\n".join(line for line in chosen if not _ANCHOR_LINE.search(line))


def _between_anchors(lines: list[str], name: str) -> list[str]:
    inside, chosen = False, []
    for line in lines:
        anchor = _ANCHOR_LINE.search(line)
        if anchor and anchor.group(1) == name:
            inside = "ANCHOR_END" not in line
        elif inside:
            chosen.append(line)
    return chosen


def mdbook_slug(text: str) -> str:
    """Return the id of a heading by mdBook's rule."""
    kept = (char for char in text.strip() if char.isalnum() or char.isspace() or char in "_-")
    return "".join("-" if char.isspace() else char.lower() for char in kept)
