"""Markdown of the pages of a book, and the lists of them that assistants read first.

``llms.txt`` follows the format of https://llmstxt.org: a title, a summary and links to Markdown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from bythebook.offload import offload
from bythebook.text.markdown import escape, escape_heading, markdown
from bythebook.text.outline import HeadingTrail, OutlineEntry, path_of
from bythebook.text.section_text import join
from bythebook.text.text_fragments import folded
from bythebook.types import Passage, UnitKind

if TYPE_CHECKING:
    from bythebook.book import Book

LIST = "llms.txt"
WHOLE = "llms-full.txt"
_DEEPEST = 6  # level of a heading
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STOPS = (".", "!", "?", "…", "。", "！", "？", "؟", "۔", "।")


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """One page of the book as Markdown."""

    name: str  # of its file, relative to the root of the site: docs/intro.md
    url: str  # of the page itself
    title: str
    module: str
    language: str
    text: str
    description: str  # its first sentence
    introduction: str  # its first paragraph


Link = Callable[[MarkdownPage], str]


# --- names and links ------------------------------------------------------------------------------


def file_names(pages: Iterable[OutlineEntry], base_url: str = "/") -> dict[str, OutlineEntry]:
    """Return the pages by the name of their Markdown file: the path of the URL, and ``.md``.

    The name is relative to ``base_url``; pages outside of it are left out. No name leads out of
    the folder that it is written to, and no two pages have the same name.
    """
    base = path_of(base_url)
    named: dict[str, OutlineEntry] = {}
    for page in pages:
        path = path_of(page.url)
        if base and path != base and not path.startswith(f"{base}/"):
            continue
        named[_free_name(_safe_path(path[len(base) :]), named)] = page
    return named


def _safe_path(path: str) -> str:
    segments = _CONTROL.sub("", path).replace("\\", "/").replace("?", "-").split("/")
    return "/".join(each for each in segments if each.strip() not in ("", ".", "..")) or "index"


def _free_name(path: str, taken: dict[str, OutlineEntry]) -> str:
    name, number = f"{path}.md", 1
    while name in taken:
        number += 1
        name = f"{path}-{number}.md"
    return name


def relative_link(page: MarkdownPage) -> str:
    """Return the link of a page's Markdown from the folder of ``llms.txt``."""
    return quote(page.name)


def site_link(page: MarkdownPage, base_url: str = "/") -> str:
    """Return the URL of a page's Markdown on the book's site; a relative link without a site."""
    site = urlsplit(page.url)
    if not (site.scheme and site.netloc):
        return relative_link(page)
    base = f"{path_of(base_url)}/".lstrip("/")
    return f"{site.scheme}://{site.netloc}/{quote(base + page.name)}"


# --- pages ----------------------------------------------------------------------------------------


async def read_pages(book: Book, base_url: str = "/") -> AsyncIterator[MarkdownPage]:
    """Yield every page of the served generation as Markdown, in reading order."""
    async with book.reading_pages() as (contents, read):
        for name, page in file_names(contents.pages, base_url).items():
            passages = await read(page.url)
            yield await offload(partial(markdown_page, name, page, passages))


def markdown_page(name: str, page: OutlineEntry, passages: Sequence[Passage]) -> MarkdownPage:
    sentences = _first_sentences(passages)
    return MarkdownPage(
        name=name,
        url=page.url,
        title=page.title,
        module=page.module,
        language=page.language,
        text=page_text(page, passages),
        description=sentences[0] if sentences else "",
        introduction=" ".join(sentences),
    )


def page_text(page: OutlineEntry, passages: Sequence[Passage]) -> str:
    """Return a page as Markdown: its title, the URL of the page, and its sections."""
    parts = [f"# {escape_heading(page.title)}", f"Source: {page.url}"]
    trail = HeadingTrail()
    for place, section in groupby(passages, key=lambda passage: passage.place):
        joined = join(list(section))
        new = list(trail.new(place))
        for depth, text, _ in new:
            parts.append(f"{'#' * min(depth + 1, _DEEPEST)} {escape_heading(text)}")
        is_empty = folded(joined.text) == folded(place.heading)  # its text repeats the heading
        if not (is_empty and (new or not place.section)):
            parts.append(markdown(joined.text, joined.marks))
    return _joined(parts)


def _first_sentences(passages: Sequence[Passage]) -> list[str]:
    """Return the sentences of the first paragraph that has one; titles of blocks have none."""
    for passage in passages:
        found: list[str] = []
        line_end = -1
        for unit in passage.units:
            text = passage.unit_text(unit)
            if unit.kind is not UnitKind.SENTENCE or (found and unit.start > line_end):
                if found:
                    break
            elif text.endswith(_STOPS):
                line_end = passage.text.find("\n", unit.end)
                line_end = len(passage.text) if line_end < 0 else line_end
                found.append(text)
        if found:
            return found
    return []


# --- lists of pages -------------------------------------------------------------------------------


def list_text(pages: Sequence[MarkdownPage], link: Link) -> str:
    """Return ``llms.txt``: the title of the book, its introduction, and the pages by module."""
    if not pages:
        return ""
    first = pages[0]
    parts = [f"# {escape_heading(first.title)}"]
    if first.introduction:
        parts.append(f"> {escape(first.introduction)}")
    for (module, _), group in groupby(pages, key=lambda page: (page.module, page.language)):
        parts.append(f"## {escape_heading(module or first.title)}")
        parts.append("\n".join(_entry(page, link(page)) for page in group))
    return _joined(parts)


def _entry(page: MarkdownPage, target: str) -> str:
    title = escape(" ".join(page.title.split()), in_link=True)
    description = f": {escape(page.description)}" if page.description else ""
    return f"- [{title}]({target}){description}"


def whole_text(pages: Iterable[MarkdownPage]) -> str:
    """Return ``llms-full.txt``: all pages, one after the other."""
    return "\n".join(page.text for page in pages)


def _joined(parts: Sequence[str]) -> str:
    """Join blocks; lone surrogates, which no file can hold, become question marks."""
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace").decode("utf-8")
