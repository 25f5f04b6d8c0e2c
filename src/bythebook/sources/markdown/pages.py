"""Read one Markdown file with its front matter and imports into a page of a book."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from bythebook.interfaces.blocks import Document, Heading, Span
from bythebook.interfaces.source import SourceFiles, SourcePage, UnreadableFile
from bythebook.language.text import clean
from bythebook.sources.markdown.frontmatter import front_text, read_front_matter
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.types import Metadata

_MAX_PARTIAL_DEPTH = 5
_MAX_INLINED = 2 * 1024 * 1024  # characters of partials per page
_DIGITS = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class PageDraft:
    """Source file that has been read but not yet parsed."""

    file: PurePosixPath  # relative to its folder
    name: str  # file name used in the book
    text: str
    front: Mapping[str, object]
    front_lines: int


def read_draft(files: SourceFiles, root: Path, file: PurePosixPath, name: str) -> PageDraft:
    """Read a file and its front matter; raise UnreadableFile if either is not readable."""
    text = files.read(root, file)
    front: dict[str, object] = {}
    lines = 0
    if text.startswith(("---", "\ufeff---", "+++", "%{")):
        front, lines = read_front_matter(text)
    return PageDraft(file, name, text, front, lines)


@dataclass(slots=True)
class Imports:
    """Resolver of the files that pages import; nothing outside the root is opened."""

    files: SourceFiles
    root: Path
    site_prefix: str = ""  # path from "@site/" to the root, if the root is not the site folder
    _depth: int = 0
    _inlined: int = 0

    def document(self, draft: PageDraft, folder: PurePosixPath, reading: ParseOptions) -> Document:
        """Parse a page with its imports. ``folder`` is the file's folder, relative to the root."""
        self._depth, self._inlined = 0, 0
        values = {f"frontMatter.{name}": value for name, value in draft.front.items()}
        return self._parse(draft, folder, replace(reading, values=values))

    def _parse(self, draft: PageDraft, folder: PurePosixPath, reading: ParseOptions) -> Document:
        reading = replace(
            reading,
            open_partial=partial(self._open, folder, reading),
            open_text=partial(self._open_text, folder),
        )
        return parse(MdxSource.of(draft.text, skip_lines=draft.front_lines), reading)

    def _open(
        self,
        folder: PurePosixPath,
        outer: ParseOptions,
        path: str,
        properties: Mapping[str, object],
        span: Span,
    ) -> Document | None:
        file = self._resolve(folder, path) if path.endswith((".md", ".mdx")) else None
        if file is None or self._depth >= _MAX_PARTIAL_DEPTH or self._inlined > _MAX_INLINED:
            return None
        try:
            draft = read_draft(self.files, self.root, file, str(file))
        except UnreadableFile:
            return None
        self._inlined += len(draft.text)
        self._depth += 1
        reading = replace(outer, mdx=True, values=properties, used_at=span)
        document = self._parse(draft, file.parent, reading)
        self._depth -= 1
        return document

    def _open_text(self, folder: PurePosixPath, path: str) -> str | None:
        """Return a file for a path from the page's folder, or else from one above it."""
        for base in (folder, *folder.parents):
            if (file := self._resolve(base, path)) is None:
                continue
            for ending in ("", ".js", ".jsx", ".ts", ".tsx"):
                try:
                    return clean(self.files.read(self.root, file.with_name(file.name + ending)))
                except UnreadableFile:
                    continue
        return None

    def _resolve(self, folder: PurePosixPath, path: str) -> PurePosixPath | None:
        if path.startswith("@site/"):
            below = path.removeprefix("@site/")
            if not below.startswith(self.site_prefix):
                return None
            resolved = posixpath.normpath(below.removeprefix(self.site_prefix))
        elif path.startswith("."):
            resolved = posixpath.normpath(posixpath.join(str(folder), path))
        else:
            return None
        return None if resolved.startswith(("..", "/")) else PurePosixPath(resolved)


@dataclass(frozen=True, slots=True)
class Labels:
    """Module, chapter and language that a page gets from its folders."""

    module: str | None
    chapter: str | None
    language: str | None = None


def make_page(
    draft: PageDraft, document: Document, url: str, base_id: str, labels: Labels
) -> SourcePage:
    front = draft.front
    week = _DIGITS.search(front_text(front, "week") or "")
    language = front_text(front, "language") or front_text(front, "lang") or labels.language
    return SourcePage(
        file=draft.name,
        title=_title(front, document, base_id),
        url=url,
        document=document,
        module=front_text(front, "module") or labels.module or "",
        chapter=front_text(front, "chapter") or labels.chapter or "",
        metadata=Metadata(
            language=language or "",
            week=int(week.group()) if week else None,
            difficulty=front_text(front, "difficulty") or front_text(front, "level"),
            keywords=_keywords(front.get("keywords") or front.get("tags")),
        ),
    )


def _title(front: Mapping[str, object], document: Document, base_id: str) -> str:
    first = document.blocks[0] if document.blocks else None
    written = first.text if isinstance(first, Heading) and first.level == 1 else ""
    return clean(front_text(front, "title") or written or base_id)


def _keywords(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    texts = (front_text({"word": item}, "word") for item in value)
    return tuple(text.strip() for text in texts if text and text.strip())
