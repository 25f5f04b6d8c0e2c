"""One file of the book to a page: its words, its title, its passages, and how much was kept."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from bythebook.book.blocks import Document, Heading, Span
from bythebook.book.coverage import compare
from bythebook.book.files import Files, UnreadableFile
from bythebook.book.frontmatter import UnreadableFrontMatter, read_front_matter
from bythebook.book.language import language_of
from bythebook.book.letters import clean, words
from bythebook.book.mdx import Reading, Source, parse
from bythebook.book.passages import passages_of
from bythebook.book.routes import front_text
from bythebook.model import Metadata, Passage, Place

_MAX_PARTIAL_DEPTH = 5
_MAX_INLINED = 2 * 1024 * 1024  # characters of partials in one page
_MDX_SIGNS = re.compile(
    r"^(?:import\s[^\n]{0,200}\sfrom\s*['\"]|export\s+(?:const|default|function)\s)|^\{/\*", re.M
)
_DIGITS = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Page:
    file: str
    title: str
    url: str
    passages: tuple[Passage, ...]
    visible_words: int
    covered_words: int
    missing: tuple[str, ...]
    headings: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that has been read but not yet parsed."""

    file: PurePosixPath  # below its folder
    name: str  # as the book calls it
    text: str
    front: Mapping[str, object]
    front_lines: int


def read_draft(files: Files, root: Path, file: PurePosixPath, name: str) -> Draft:
    """Raises UnreadableFile or UnreadableFrontMatter."""
    text = files.read(root, file)
    front: dict[str, object] = {}
    lines = 0
    if text.startswith(("---", "\ufeff---")):
        front, lines = read_front_matter(text)
    return Draft(file, name, text, front, lines)


@dataclass(slots=True)
class Imports:
    """Opens the files that pages import, all of them below one root."""

    files: Files
    root: Path
    site_prefix: str = ""  # what stands between "@site/" and the root, if that is not the site's
    _depth: int = 0
    _inlined: int = 0

    def document(self, draft: Draft, folder: PurePosixPath, reading: Reading) -> Document:
        """``folder`` is the file's own, below the root."""
        self._depth, self._inlined = 0, 0
        values = {f"frontMatter.{name}": value for name, value in draft.front.items()}
        return self._parse(draft, folder, replace(reading, values=values))

    def _parse(self, draft: Draft, folder: PurePosixPath, reading: Reading) -> Document:
        reading = replace(
            reading,
            open_partial=partial(self._open, folder, reading),
            open_text=partial(self._open_text, folder),
        )
        return parse(Source.of(draft.text, skip_lines=draft.front_lines), reading)

    def _open(
        self,
        folder: PurePosixPath,
        outer: Reading,
        path: str,
        properties: Mapping[str, object],
        span: Span,
    ) -> Document | None:
        file = self._resolve(folder, path) if path.endswith((".md", ".mdx")) else None
        if file is None or self._depth >= _MAX_PARTIAL_DEPTH or self._inlined > _MAX_INLINED:
            return None
        try:
            draft = read_draft(self.files, self.root, file, str(file))
        except (UnreadableFile, UnreadableFrontMatter):
            return None
        self._inlined += len(draft.text)
        self._depth += 1
        reading = replace(outer, mdx=True, values=properties, place=span)
        document = self._parse(draft, file.parent, reading)
        self._depth -= 1
        return document

    def _open_text(self, folder: PurePosixPath, path: str) -> str | None:
        file = self._resolve(folder, path)
        for ending in ("", ".js", ".jsx", ".ts", ".tsx"):
            try:
                if file is not None:
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
    """What the folders say about a page."""

    module: str | None
    chapter: str | None
    language: str | None = None


def looks_like_mdx(text: str) -> bool:
    """Whether a ``.md`` file of unknown origin imports components or comments as MDX does."""
    return _MDX_SIGNS.search(text) is not None


def make_page(draft: Draft, document: Document, url: str, base_id: str, labels: Labels) -> Page:
    title = title_of(draft.front, document, base_id)
    place = Place(
        file=draft.name,
        title=title,
        url=url,
        module=front_text(draft.front, "module") or labels.module or title,
        chapter=front_text(draft.front, "chapter") or labels.chapter or title,
        section=(),
    )
    passages = passages_of(document, place, metadata_of(draft, document, labels.language))
    covered, missing = compare(document.words, _kept_words(passages, title, document))
    return Page(
        file=draft.name,
        title=title,
        url=url,
        passages=passages,
        visible_words=len(document.words),
        covered_words=covered,
        missing=missing,
        headings=tuple((heading.text, heading.anchor) for heading in document.headings),
    )


def _kept_words(passages: tuple[Passage, ...], title: str, document: Document) -> list[str]:
    """Words of the texts and of each heading that some passage carries in its path, once."""
    carried = {heading for passage in passages for heading in passage.place.section}
    headings = [heading.text for heading in document.headings if heading.text in carried]
    texts = [title, *headings, *(passage.text for passage in passages)]
    return [word for text in texts for word in words(text)]


def title_of(front: Mapping[str, object], document: Document, base_id: str) -> str:
    first = document.blocks[0] if document.blocks else None
    written = first.text if isinstance(first, Heading) and first.level == 1 else ""
    return clean(front_text(front, "title") or written or base_id)


def metadata_of(draft: Draft, document: Document, language: str | None) -> Metadata:
    front = draft.front
    week = _DIGITS.search(front_text(front, "week") or "")
    return Metadata(
        language=front_text(front, "language")
        or front_text(front, "lang")
        or language
        or language_of(document.words),
        week=int(week.group()) if week else None,
        difficulty=front_text(front, "difficulty") or front_text(front, "level"),
        keywords=_keywords(front.get("keywords") or front.get("tags")),
    )


def _keywords(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    texts = (front_text({"word": item}, "word") for item in value)
    return tuple(text.strip() for text in texts if text and text.strip())
