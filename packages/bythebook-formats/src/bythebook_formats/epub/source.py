"""EPUB books: one page for each document of the spine, with the outline's titles."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bythebook.errors import SourceError
from bythebook.interfaces.blocks import Block, Document, Heading
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.language.text import clean
from bythebook.sources.documents import headings_of
from bythebook.types import Metadata
from bythebook_formats.epub.package import EpubArchive, OutlineLink, Package, read_package
from bythebook_formats.html.source import PageContent, is_list_of_links, is_made
from bythebook_formats.html.text import one_line
from bythebook_formats.html.tree import Element, parse_html, parse_xml

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NUMERAL = re.compile(r"(?:chapter|part|book)?\s*(?:[IVXLC]+|[0-9]{1,3})[.:]?", re.I)
_CHAPTER_WORDS = 150  # a page with fewer is the title of a part, not a chapter with sections


class EpubSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return path.suffix.lower() == ".epub" and files.has_file(path)

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        if not files.has_file(path):
            raise SourceError(f"There is no EPUB file {path.name!r}.", hint="Name the .epub file.")
        try:
            archive = EpubArchive(files.read_bytes(path.parent, PurePosixPath(path.name)))
            archive.check_encryption()
            package = read_package(archive)
        except UnreadableFile as error:
            report(Problem(path.name, error.line, error.reason, fatal=True))
            return
        chapters: set[str] = set()  # labels of entries with a text of their own
        if not package.documents:
            report(Problem(path.name, None, "holds no documents", fatal=True))
        for document in package.documents:
            if is_made(PurePosixPath(PurePosixPath(document).name)):
                continue
            name = f"{path.name}/{document}"
            try:
                tree = _parse(archive.read(document), name, report)
            except UnreadableFile as error:
                report(Problem(name, error.line, error.reason, fatal=True))
                continue
            page = _page(name, tree, document, package, options, chapters)
            if page is not None:
                if len(page.document.words) >= _CHAPTER_WORDS:
                    labels = (each.label for each in package.outline if each.path == document)
                    chapters.add(next(labels, ""))
                yield page


def _parse(content: bytes, name: str, report: Report) -> Element:
    """Parse a document as XML, which EPUB demands, or else as browsers do."""
    try:
        return parse_xml(content)
    except UnreadableFile as error:
        if not error.reason.startswith("not well-formed"):
            raise
        tree = parse_html(content)
        report(Problem(name, error.line, error.reason))
        return tree


def _page(
    name: str,
    tree: Element,
    path: str,
    package: Package,
    options: SiteOptions,
    chapters: Set[str],
) -> SourcePage | None:
    links = [link for link in package.outline if link.path == path and link.label]
    body = tree.find(".//body")
    body = tree if body is None else body
    content = PageContent.of(body, body)
    _join_headings(body)
    _mark_headings(body, links)
    document = content.document(package.language)
    known = {name: name for name in package.documents}
    if not document.words or is_list_of_links(body, document.words, path, known):
        return None  # a cover or a table of contents
    title = _title(document, links, tree, path)
    parents = links[0].parents if links else _parents_above(path, package)
    if len(parents) == 1 and parents[0] in chapters:
        parents = ("", *parents)  # a section in a file of its own: the book has no parts
    first, *rest = [*parents, ""]
    return SourcePage(
        file=name,
        title=title,
        url=_url(name, options),
        document=_with_title(document, title),
        module=first or package.title,
        chapter=rest[0] if rest else "",
        metadata=Metadata(language=options.locale or package.language),
    )


def _join_headings(body: Element) -> None:
    """Join a numeral with the title that stands below it in the same group of headings."""
    for group in list(body.iter("hgroup")):
        first = next(iter(group), None)
        if first is None or first.tag not in _HEADINGS or not _NUMERAL.fullmatch(one_line(first)):
            continue
        others = [text for each in group if each is not first and (text := one_line(each))]
        for each in [each for each in group if each is not first]:
            group.remove(each)
        text = ": ".join([one_line(first).rstrip(".:"), *others])
        for each in list(first):
            first.remove(each)
        first.text = text


def _mark_headings(body: Element, links: Sequence[OutlineLink]) -> None:
    """Turn the paragraphs that the outline names into headings, if the book has none there."""
    wanted = {link.anchor: link for link in links if link.anchor}
    if not wanted:
        return
    for element in list(body.iter()):
        link = wanted.get(element.get("id", ""))
        if link is None or element.tag in _HEADINGS:
            continue
        title = _same_text(element, link.label)
        if title is not None and title.tag not in _HEADINGS:
            title.tag = _HEADINGS[min(len(link.parents) + 1, 5)]
            title.set("id", link.anchor)


def _same_text(element: Element, label: str) -> Element | None:
    """Return the element itself, or one of the first inside it, whose text is the label."""
    label = label.casefold()
    near = [element, *list(element.iterdescendants("p", "div", *_HEADINGS))[:3]]
    near += list(element.itersiblings("p", *_HEADINGS))[:1]
    return next((each for each in near if one_line(each).casefold() == label), None)


def _title(document: Document, links: Sequence[OutlineLink], tree: Element, path: str) -> str:
    first = document.headings[0] if document.headings else None
    written = clean(" ".join((tree.findtext(".//title") or "").split()))
    if first is not None and first.level == min(each.level for each in document.headings):
        number = clean(first.text)
        if not _NUMERAL.fullmatch(number):
            return number
        names = (clean(links[0].label) if links else "", written)
        title = next((each for each in names if each and not _NUMERAL.fullmatch(each)), "")
        return title if number.rstrip(".:") in title else ": ".join(filter(None, (number, title)))
    if links:
        return clean(links[0].label)
    return written or PurePosixPath(path).stem


def _parents_above(path: str, package: Package) -> tuple[str, ...]:
    """Return the outline's position of the document before this one: it continues there."""
    known: dict[str, OutlineLink] = {}
    for entry in package.outline:
        known.setdefault(entry.path, entry)
    before = package.documents[: package.documents.index(path)]
    link = next((known[each] for each in reversed(before) if each in known), None)
    return () if link is None else (*link.parents, link.label)


def _with_title(document: Document, title: str) -> Document:
    """Make the first heading the page's title if it is."""
    blocks: list[Block] = list(document.blocks)
    for index, block in enumerate(blocks):
        if isinstance(block, Heading):
            if clean(block.text) == title or _NUMERAL.fullmatch(clean(block.text)):
                blocks[index] = replace(block, level=1, text=title)
            break
    return replace(document, blocks=tuple(blocks), headings=tuple(headings_of(blocks)))


def _url(name: str, options: SiteOptions) -> str:
    return (options.url or "").rstrip("/") + quote(
        posixpath.join("/", options.base_url or "/", name)
    )
