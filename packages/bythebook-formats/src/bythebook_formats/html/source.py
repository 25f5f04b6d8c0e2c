"""Built HTML: the pages of any static site, or single files."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from lxml import etree

from bythebook.errors import SourceError
from bythebook.interfaces.blocks import Document, Heading, LeftOut
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.language.text import clean, word_set
from bythebook.sources.documents import headings_of
from bythebook.sources.files import matches_glob
from bythebook.sources.inventory import HTML, is_template, pages_by_kind
from bythebook.types import Metadata
from bythebook_formats.html.blocks import BlockReader
from bythebook_formats.html.content import body_of, find_chrome, find_content, remove
from bythebook_formats.html.navigation import (
    PageLinks,
    addresses,
    read_links,
    reading_order,
    resolve,
)
from bythebook_formats.html.page_words import page_words
from bythebook_formats.html.text import BLOCKS, one_line
from bythebook_formats.html.tree import Element, parse_html, select

SUFFIXES = HTML
_OTHER_FORMATS = (".md", ".mdx", ".ipynb", ".epub", ".pdf")
# Pages that generators make of the others.
_MADE = word_set(
    "404 search genindex py-modindex modindex bookindex print toc sitemap http-routingtable"
)
_COPIED = 0.95  # share of the words
_REPEATED = 0.8  # share of the words: headings of parts and links differ
_LINKED = 0.7
_SAMPLE = 60  # pages
_SITE_NAME = re.compile(" [|—–·-] ")  # after it, in the title of a page
_EDGE = 12  # blocks at either end of a page
_SHARE = 0.6  # of the pages, on which a text is repeated
LEAST = 4  # pages
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


class HtmlSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        if not files.has_folder(path):
            return path.suffix.lower() in SUFFIXES and files.has_file(path)
        names = files.names(path)
        found = {PurePosixPath(name).suffix.lower() for name in names}
        has_index = any(re.fullmatch(r"index\..*html|404\.html", name) for name in names)
        only_pages = bool(found.intersection(SUFFIXES)) and found.isdisjoint(_OTHER_FORMATS)
        if not has_index and not only_pages:
            return False
        # Sources with a page or a template of HTML among them are not a built site.
        pages, sources = pages_by_kind(path, files)
        return len(pages) > len(sources)

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        root = path if files.has_folder(path) else path.parent
        names = _page_files(path, files, options, report)
        if not names:
            raise SourceError(
                f"There is no HTML page in {path.name!r}.",
                hint="Name the folder of the built site, such as _build/html, site or build.",
            )
        trees = _Trees(files, root, report)
        known = addresses(names)
        # Enough to see what all pages repeat; of a few, nothing is said to be repeated.
        some = names[:: -(-len(names) // _SAMPLE)] if len(names) >= LEAST else []
        edges = [edge_texts(stripped_content(tree)) for _, tree in trees.parse(some)]
        repeated = repeated_texts(edges)
        read = {name: _read_page(tree, name, known, repeated) for name, tree in trees.parse(names)}
        pages = {name: page for name, page in read.items() if page.document.words}
        for name in [name for name in pages if _repeats_its_folder(name, pages)]:
            report(Problem(name, None, "repeats the other pages of its folder: left out"))
            del pages[name]
        for name, original in _copies(pages):
            if _same_place(name, original):
                report(Problem(name, None, f"has the same text as {original}: left out"))
                del pages[name]
            else:
                report(Problem(name, None, f"has the same text as {original}: is it an old page?"))
        links = {name: page.links for name, page in read.items()}  # also of pages left out
        for name in reading_order(list(read), links):
            if name in pages:
                yield _source_page(name, pages[name], options)


@dataclass(slots=True)
class _Trees:
    """Parser of a site's pages, some of them twice: all trees would need too much memory."""

    files: SourceFiles
    root: Path
    report: Report
    _unreadable: set[str] = field(default_factory=set)

    def parse(self, names: Sequence[str]) -> Iterator[tuple[str, Element]]:
        for name in names:
            if name in self._unreadable:
                continue
            try:
                content = self.files.read_bytes(self.root, PurePosixPath(name))
                if is_template(content):
                    self._unreadable.add(name)
                    self.report(Problem(name, None, "a template, not a page: left out"))
                    continue
                yield name, parse_html(content)
            except UnreadableFile as error:
                self._unreadable.add(name)
                self.report(Problem(name, error.line, error.reason, fatal=True))


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    language: str
    canonical: str
    document: Document
    links: PageLinks


def _page_files(path: Path, files: SourceFiles, options: SiteOptions, report: Report) -> list[str]:
    if not files.has_folder(path):
        return [path.name] if files.has_file(path) else []

    def wanted(file: PurePosixPath) -> bool:
        if file.suffix.lower() not in SUFFIXES or _is_hidden(file):
            return False
        if is_made(file):
            report(Problem(str(file), None, "made by the generator from other pages: left out"))
            return False
        return not matches_glob(str(file), options.exclude)

    def refuse(file: str, reason: str) -> None:
        report(Problem(file, None, reason, fatal=True))

    return sorted(str(file) for file in files.walk(path, wanted, refuse))


def is_made(file: PurePosixPath) -> bool:
    """Return whether a page at the root of a site is a search, an index or an error page."""
    if file.stem == "index" and len(file.parts) == 2:
        return file.parent.name in _MADE  # `search/index.html`
    return file.stem == "404" or (len(file.parts) == 1 and file.stem in _MADE)


def _is_hidden(file: PurePosixPath) -> bool:
    folders = file.parts[:-1]
    return file.name.startswith(".") or any(
        part.startswith(("_", ".")) or part == "node_modules" for part in folders
    )


def _read_page(
    root: Element, name: str, known: Mapping[str, str], repeated: frozenset[str]
) -> _Page:
    """Read a page; without words if it only redirects or only lists other pages."""
    redirects = select(root, ".//meta[translate(@http-equiv, 'REFSH', 'refsh')='refresh']")
    links = read_links(root, name, known)
    content = PageContent.of(body_of(root), find_content(root))
    content.leave_out_repeated(repeated)
    is_left_out = bool(redirects) or is_list_of_links(content.element, content.words, name, known)
    language = root.get("lang") or root.get("xml:lang") or ""
    document = Document((), (), ()) if is_left_out else content.document(language)
    return _Page(
        title=_title(root, document) or PurePosixPath(name).stem,
        language=language,
        canonical=_canonical(root),
        document=document,
        links=links,
    )


def is_list_of_links(
    content: Element, words: Sequence[str], name: str, known: Mapping[str, str]
) -> bool:
    """Return whether a page has hardly any words of its own: a generated table of contents."""
    linked = sum(
        len(one_line(link).split())
        for link in content.iter("a")
        if resolve(link.get("href"), name, known) not in (None, name)
    )
    return linked > 0 and linked >= _LINKED * len(words)


def _copies(pages: dict[str, _Page]) -> list[tuple[str, str]]:
    """Return the pages that repeat another one: untranslated pages of a language, old files."""
    originals: dict[str, list[str]] = {}
    copies = []
    for name in sorted(pages, key=lambda name: (name.count("/"), name)):
        same_title = originals.setdefault(pages[name].title, [])
        words = pages[name].document.words
        found = [other for other in same_title if _overlap(words, pages[other].document.words)]
        found.sort(key=lambda other: not _same_place(name, other))
        original = next(iter(found), None)
        if original is None:
            same_title.append(name)
        else:
            copies.append((name, original))
    return copies


def _repeats_its_folder(name: str, pages: Mapping[str, _Page]) -> bool:
    """Return whether a page is a folder in one piece, as mdBook makes one to be printed."""
    if PurePosixPath(name).stem != "print":
        return False
    folder = name.rpartition("/")[0]
    others: Counter[str] = Counter()
    for other, page in pages.items():
        if other != name and other.startswith(f"{folder}/"):
            others.update(page.document.words)
    words = Counter(pages[name].document.words)
    shared = (words & others).total()
    return shared >= _REPEATED * max(words.total(), others.total())


def _same_place(name: str, other: str) -> bool:
    """Return whether two paths differ in a folder of a language or version alone."""
    _, _, below = name.partition("/")
    _, _, below_other = other.partition("/")
    return other in (name, below) or bool(below and below == below_other)


def _overlap(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two pages have nearly all their words in common."""
    shared = sum((Counter(words) & Counter(others)).values())
    return shared >= _COPIED * max(len(words), len(others))


def stripped_content(root: Element) -> Element:
    """Return the content of a page without what the theme adds to it."""
    content = find_content(root)
    for element in find_chrome(content):
        remove(element)
    return content


@dataclass(slots=True)
class PageContent:
    """Content of a page without what the theme adds to it, and its words before that."""

    element: Element
    words: list[str]
    left_out: list[LeftOut]

    @classmethod
    def of(cls, body: Element, content: Element) -> PageContent:
        chrome = find_chrome(content)
        words, left_out = page_words(body, content, chrome)
        for element in chrome:
            remove(element)
        return cls(content, words, left_out)

    def leave_out_repeated(self, repeated: frozenset[str]) -> None:
        gone: Counter[str] = Counter()
        for element in find_repeated(self.element, repeated):
            gone.update(page_words(element, element, ())[0])
            self.left_out.append(LeftOut("repeated on most pages", one_line(element)))
            remove(element)
        if gone:
            self.words = list((Counter(self.words) - gone).elements())

    def document(self, language: str) -> Document:
        blocks = tuple(BlockReader(language).read(self.element)) if self.words else ()
        headings = tuple(headings_of(blocks))
        return Document(blocks, headings, tuple(self.words), left_out=tuple(self.left_out))


def _title(root: Element, document: Document) -> str:
    first = next(iter(document.headings), None)
    if isinstance(first, Heading) and first.level == 1 and first.text:
        return clean(first.text)
    written = root.findtext(".//title") or ""
    return clean(_SITE_NAME.split(" ".join(written.split()))[0]) or (first.text if first else "")


def _canonical(root: Element) -> str:
    for link in select(
        root, ".//link[@rel='canonical']/@href | .//meta[@property='og:url']/@content"
    ):
        if str(link).startswith(("http://", "https://")):
            return str(link)
    return ""


def _source_page(name: str, page: _Page, options: SiteOptions) -> SourcePage:
    labels = [label for label in page.links.labels if label != page.title]
    return SourcePage(
        file=name,
        title=page.title,
        url=_url(name, page.canonical, options),
        document=page.document,
        module=labels[0] if labels else "",
        chapter=labels[1] if len(labels) > 1 else "",
        metadata=Metadata(language=options.locale or page.language.partition("-")[0]),
    )


def _url(name: str, canonical: str, options: SiteOptions) -> str:
    """Return the page's published address, or else its path below the base URL."""
    try:
        parts = urlsplit(canonical)
    except ValueError:
        parts = urlsplit("")
    is_own = bool(parts.netloc) and _same_page(unquote(parts.path), name)
    if is_own and options.base_url is None:
        origin = options.url or f"{parts.scheme}://{parts.netloc}"
        return origin.rstrip("/") + parts.path
    folder, _, last = name.rpartition("/")
    path = f"{folder}/" if last in ("index.html", "index.htm") and folder else name
    path = "" if name in ("index.html", "index.htm") else path
    origin = (options.url or "").rstrip("/")
    return origin + quote(posixpath.join("/", options.base_url or "/", path))


def _same_page(path: str, name: str) -> bool:
    """Return whether a canonical path is that of a file; others name a main version of it."""
    stem = name.removesuffix("index.html").removesuffix(".html").strip("/")
    return path.removesuffix(".html").removesuffix("index").strip("/").endswith(stem)


# --- what themes repeat on every page -------------------------------------------------------------


def edge_texts(content: Element) -> frozenset[str]:
    """Return the texts of the blocks at the top and bottom of a page."""
    leaves = _leaves(content)
    return frozenset(text for _, text in (*_top(leaves), *_first(reversed(leaves))))


def repeated_texts(pages: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the texts that most pages have at an edge."""
    counts = Counter(text for page in pages for text in page)
    least = max(LEAST, _SHARE * len(pages))
    return frozenset(text for text, count in counts.items() if count >= least)


def find_repeated(content: Element, repeated: frozenset[str]) -> list[Element]:
    """Return the repeated blocks before the first and after the last block of a page's own.

    A repeated section with its heading is the author's.
    """
    if not repeated:
        return []
    leaves = _leaves(content)
    top = list(_until_own(_top(leaves), repeated))
    bottom = list(_until_own(_first(reversed(leaves)), repeated))
    if any(element.tag in _HEADINGS for element in bottom):
        bottom = []
    return [*top, *bottom]


def _until_own(edge: Iterable[tuple[Element, str]], repeated: frozenset[str]) -> Iterator[Element]:
    for element, text in edge:
        if text not in repeated:
            return
        yield element


def _top(leaves: Sequence[Element]) -> list[tuple[Element, str]]:
    """Return the blocks before the first heading."""
    return list(takewhile(lambda leaf: leaf[0].tag not in _HEADINGS, _first(leaves)))


def _first(leaves: Iterable[Element]) -> list[tuple[Element, str]]:
    """Return the first blocks that have text, with it."""
    found = ((element, text) for element in leaves if (text := one_line(element)))
    return list(islice(found, _EDGE))


def _leaves(content: Element) -> list[Element]:
    """Return the blocks without blocks inside, in page order."""
    leaves: list[Element] = []
    innermost: Element | None = None
    element: Element
    for event, element in etree.iterwalk(content, events=("start", "end"), tag=tuple(BLOCKS)):
        if event == "start":
            innermost = element
        elif element is innermost:
            innermost = None
            leaves.append(element)
    return leaves
