"""Order and parts of a site's pages, from its own navigation."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from bythebook.sources.files import natural_key
from bythebook_formats.html.content import classes
from bythebook_formats.html.text import one_line
from bythebook_formats.html.tree import Element, select

_MENUS = ".//nav//a[@href] | .//*[@role='navigation']//a[@href] | .//aside//a[@href]"
_LABELS = ("a", "label", "span", "p", "div", "summary", "button")


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What a page's navigation says about it."""

    following: str | None  # file of the next page
    menu: tuple[str, ...]  # files that the menus link to, in order
    labels: tuple[str, ...]  # of the parts that the page belongs to, outermost first


def read_links(root: Element, file: str, files: Mapping[str, str]) -> PageLinks:
    """Return a page's links. ``files`` maps every address of a page to its file."""
    menu: dict[str, None] = {}
    own: list[Element] = []
    for link in select(root, _MENUS):
        href = link.get("href", "")
        # Some menus lead to a chapter's PDF: the page beside it has the same place in the order.
        target = resolve(href, file, files) or resolve(href.removesuffix(".pdf"), file, files)
        if target is None:
            continue
        menu.setdefault(target)
        if target == file and "#" not in link.get("href", "").rstrip("#"):
            own.append(link)
    labels = max((_labels(link) for link in own), key=len, default=())
    return PageLinks(_following(root, file, files), tuple(menu), labels)


def _following(root: Element, file: str, files: Mapping[str, str]) -> str | None:
    # LaTeX2HTML names the next section of the same level first, and then the next page.
    links = [*reversed(select(root, ".//link[@rel='next']")), *select(root, ".//a[@rel='next']")]
    links += [
        link
        for link in select(root, ".//a[@href and contains(@class, 'next')]")
        if any(
            name.rpartition("-")[2] == "next" or name.startswith("next") for name in classes(link)
        )
    ]
    for link in links:
        target = resolve(link.get("href"), file, files)
        if target is not None and target != file:
            return target
    return None


def resolve(href: str | None, file: str, files: Mapping[str, str]) -> str | None:
    """Return the file of the site that a link on a page leads to."""
    try:
        parts = urlsplit(href or "")
    except ValueError:
        return None
    if parts.scheme and parts.scheme not in ("http", "https"):
        return None
    path = unquote(parts.path)
    if not path:
        return None if parts.netloc else file
    if path.startswith("/"):
        return _by_suffix(path, files)
    folder = posixpath.dirname(file)
    joined = posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")
    return files.get(joined) or files.get(joined.rstrip("/"))


def _by_suffix(path: str, files: Mapping[str, str]) -> str | None:
    """Return the file of an absolute path, whose first segments may be the site's base URL."""
    segments = [segment for segment in path.split("/") if segment]
    for start in range(len(segments) + 1):
        found = files.get("/".join(segments[start:]))
        if found is not None:
            return found
    return None


def addresses(files: Iterable[str]) -> dict[str, str]:
    """Return the file of each address: with and without ``.html`` and ``index.html``."""
    found: dict[str, str] = {}
    for file in files:
        stem, _ = posixpath.splitext(file)
        names = [file, stem]
        if posixpath.basename(stem) == "index":
            names.append(posixpath.dirname(file))
        for name in names:
            found.setdefault(name, file)
    return found


def _labels(link: Element) -> tuple[str, ...]:
    """Return the labels of the menu entries around a page's own, with the caption above them."""
    items = list(link.iterancestors("li"))
    if not items:
        return ()
    labels = [_label(item) or _label_before(item) for item in reversed(items)]
    if items[0].find(".//li") is None:
        labels.pop()  # the page's own; a page with others below it names a part
    outermost = items[-1].getparent()
    caption = outermost.getprevious() if outermost is not None else None
    if caption is not None and ("caption" in classes(caption) or caption.get("role") == "heading"):
        labels.insert(0, one_line(caption))
    return tuple(label for label in labels if label)


def _label_before(item: Element) -> str:
    """Return the label of the entry before; mdBook puts what is below it into one of its own."""
    before = item.getprevious()
    return "" if before is None or before.tag != "li" else _label(before)


def _label(item: Element) -> str:
    if text := " ".join((item.text or "").split()):
        return text
    for child in item.iter(*_LABELS):
        inner = next(child.iterancestors("li"), None)
        if inner is item and (text := one_line(child)):
            return text
    return ""


def reading_order(pages: Sequence[str], links: Mapping[str, PageLinks]) -> list[str]:
    """Return the pages as the site's "next" links chain them; chains by menu, then by path."""
    by_path = sorted(
        pages, key=lambda page: (page.count("/"), not _is_index(page), natural_key(page))
    )
    menu = dict.fromkeys(target for page in by_path for target in links[page].menu)
    linked = {links[page].following for page in pages}
    start = [page for page in by_path[:1] if _is_index(page)]
    first = [page for page in (*menu, *by_path) if page not in linked]
    ordered: dict[str, None] = {}
    for page in (*start, *first, *menu, *by_path):
        _follow(page, links, ordered)
    return list(ordered)


def _follow(page: str | None, links: Mapping[str, PageLinks], ordered: dict[str, None]) -> None:
    while page is not None and page in links and page not in ordered:
        ordered[page] = None
        page = links[page].following


def _is_index(page: str) -> bool:
    return posixpath.basename(page) in ("index.html", "index.htm", "index.xhtml")
