"""Write the Markdown of a book to a folder, and check the links of what was written."""

from __future__ import annotations

import errno
import hashlib
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bythebook.documents.markdown.pages import (
    LIST,
    WHOLE,
    MarkdownPage,
    list_text,
    read_pages,
    site_link,
    whole_text,
)
from bythebook.errors import InvalidInput
from bythebook.language.text import clean
from bythebook.offload import offload
from bythebook.text.outline import path_of

if TYPE_CHECKING:
    from bythebook.book import Book

_LINK = re.compile(r"(?<!\\)\[(?:\\.|[^\[\]\\])*+\]\(([^()\s]+)\)")
# Too long, or a file where a folder has to be, or the other way round.
_BAD_NAMES = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)

Wrote = Callable[[int], None]  # called with the number of pages written


@dataclass(frozen=True, slots=True)
class MarkdownExport:
    """What was written to a folder."""

    folder: Path
    pages: int
    files: int
    words: int  # of all pages
    broken_links: tuple[
        str, ...
    ]  # of llms.txt, "file: target"; empty unless something else removed a file


async def export_markdown(
    book: Book, folder: Path, *, base_url: str = "/", wrote: Wrote = lambda _: None
) -> MarkdownExport:
    """Write ``llms.txt``, ``llms-full.txt`` and the Markdown of every page into the folder.

    ``base_url`` is the path of the site whose root the folder is. Each file is replaced as a
    whole, and ``llms.txt`` last, so that it never lists a page that is not there.
    """
    pages: list[MarkdownPage] = []
    async for page in read_pages(book, base_url):
        pages.append(await offload(partial(_write_page, folder, page)))
        wrote(len(pages))
    return await offload(lambda: _write_lists(folder, pages, base_url))


def _write_page(folder: Path, page: MarkdownPage) -> MarkdownPage:
    """Write a page; one whose name no file can have is named by a digest instead."""
    try:
        if clean(page.name) != page.name:  # bidi overrides and other invisible characters
            raise OSError(errno.EINVAL, page.name)
        write_file(folder, page.name, page.text)
    except OSError as error:
        if error.errno not in _BAD_NAMES:
            raise
        digest = hashlib.sha256(page.name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        page = replace(page, name=f"page-{digest}.md")
        write_file(folder, page.name, page.text)
    return page


def _write_lists(folder: Path, pages: list[MarkdownPage], base_url: str) -> MarkdownExport:
    write_file(folder, WHOLE, whole_text(pages))
    write_file(folder, LIST, list_text(pages, lambda page: site_link(page, base_url)))
    return MarkdownExport(
        folder=folder,
        pages=len(pages),
        files=len(pages) + 2,
        words=sum(len(page.text.split()) for page in pages),
        broken_links=tuple(f"{LIST}: {link}" for link in broken_links(folder, base_url)),
    )


def write_file(folder: Path, name: str, text: str) -> None:
    """Write a file below the folder under another name first, then rename it."""
    root, target = folder.resolve(), folder / name
    if not target.parent.resolve().is_relative_to(root):  # also by a symbolic link
        raise InvalidInput(f"{name!r} leads out of the folder.", hint="Choose an empty folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        draft.write_bytes(text.encode("utf-8"))
        draft.replace(target)
    except OSError:
        with suppress(OSError):
            draft.unlink()  # if this fails, too, the first error is raised
        raise


# --- links ----------------------------------------------------------------------------------------


def links_of(text: str) -> list[str]:
    """Return the targets of the links of ``llms.txt``."""
    return _LINK.findall(text)


def broken_links(folder: Path, base_url: str = "/") -> list[str]:
    """Return the links of ``llms.txt`` in the folder that lead to no file of it.

    Absolute links have the path of the site, ``base_url``, in front of the file's name.
    """
    links = links_of((folder / LIST).read_text("utf-8"))
    return [target for target in links if not _leads_to_file(folder, target, base_url)]


def _leads_to_file(folder: Path, target: str, base_url: str) -> bool:
    parts = urlsplit(target)
    path = unquote(parts.path)
    if parts.netloc:
        base, path = path_of(base_url), path_of(target)
        if base and not path.startswith(f"{base}/"):
            return False
        path = path[len(base) :].lstrip("/")
    file = folder / path
    return file.resolve().is_relative_to(folder.resolve()) and file.is_file()
