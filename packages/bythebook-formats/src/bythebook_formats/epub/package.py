"""Files of an EPUB, read within limits, and its package document: reading order and outline."""

from __future__ import annotations

import io
import lzma
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from bythebook.interfaces.source import UnreadableFile
from bythebook_formats.html.text import one_line
from bythebook_formats.html.tree import MAX_BYTES, Element, parse_xml

_CONTAINER = "META-INF/container.xml"
_DOCUMENTS = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_DEEPEST = 12  # levels of an outline
_MAX_ENTRIES = 20_000
_MAX_FILES = 20_000
_MAX_TOTAL = 256 * 1024 * 1024  # bytes of all files that are read
_MAX_RATIO = 200  # of a file's size to its compressed size, for files above _SMALL
_SMALL = 1024 * 1024
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # by zipfile: a compression that it does not know
    OSError,
    ValueError,
)
_ENCRYPTION = "META-INF/encryption.xml"
# Encrypted fonts are common and harmless: the text can be read.
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


@dataclass(frozen=True, slots=True)
class OutlineLink:
    """Entry of the table of contents."""

    label: str
    path: str  # in the archive
    anchor: str
    parents: tuple[str, ...]  # labels of the entries above


@dataclass(frozen=True, slots=True)
class Package:
    title: str
    language: str
    documents: tuple[str, ...]  # paths in the archive, in reading order
    outline: tuple[OutlineLink, ...]


def read_package(archive: EpubArchive) -> Package:
    """Read the package document; raise UnreadableFile if there is none."""
    container = archive.read_xml(_CONTAINER)
    name = next((file.get("full-path", "") for file in container.iter("rootfile")), "")
    if not name:
        raise UnreadableFile("not an EPUB file: META-INF/container.xml names no package")
    root = archive.read_xml(name)
    folder = posixpath.dirname(name)
    items = {
        item.get("id", ""): (resolve_href(folder, item.get("href", ""))[0], item)
        for item in root.iter("item")
    }
    navigation = next(
        (path for path, item in items.values() if "nav" in item.get("properties", "").split()), ""
    )
    spine = [items[ref] for each in root.iter("itemref") if (ref := each.get("idref")) in items]
    documents = [
        path
        for path, item in spine
        if path and path != navigation and item.get("media-type") in _DOCUMENTS
    ]
    return Package(
        title=_first(root, "title"),
        language=_first(root, "language").partition("-")[0].lower(),
        documents=tuple(dict.fromkeys(documents)),
        outline=tuple(_outline(archive, root, items, navigation)),
    )


def _first(root: Element, name: str) -> str:
    return next((" ".join((each.text or "").split()) for each in root.iter(name)), "")


def _outline(
    archive: EpubArchive, root: Element, items: dict[str, tuple[str, Element]], navigation: str
) -> Iterator[OutlineLink]:
    """Yield the entries of the navigation document, or else of the NCX."""
    try:
        if navigation:
            tree = archive.read_xml(navigation)
            menus = list(tree.iter("nav"))
            menu = next((each for each in menus if each.get("type") == "toc"), None)
            menu = menu if menu is not None else next(iter(menus), None)
            top = None if menu is None else menu.find(".//ol")
            found = () if top is None else _nav_entries(top, posixpath.dirname(navigation), ())
        else:
            spine = root.find(".//spine")
            path, _ = items.get("" if spine is None else spine.get("toc", ""), ("", None))
            tree_map = archive.read_xml(path).find(".//navMap") if path else None
            found = () if tree_map is None else _ncx_entries(tree_map, posixpath.dirname(path), ())
        for count, entry in enumerate(found):
            if count >= _MAX_ENTRIES:
                return
            yield entry
    except UnreadableFile:
        return  # the headings of the documents are enough


def _nav_entries(items: Element, folder: str, parents: tuple[str, ...]) -> Iterator[OutlineLink]:
    for item in items.iterchildren("li"):
        link = next(item.iterchildren("a", "span"), None)
        label = "" if link is None else one_line(link)
        path, anchor = resolve_href(folder, "" if link is None else link.get("href", ""))
        yield OutlineLink(label, path, anchor, parents)
        for inner in item.iterchildren("ol"):
            if len(parents) < _DEEPEST:
                yield from _nav_entries(inner, folder, (*parents, label))


def _ncx_entries(point: Element, folder: str, parents: tuple[str, ...]) -> Iterator[OutlineLink]:
    for inner in point.iterchildren("navPoint"):
        text, content = inner.find("navLabel/text"), inner.find("content")
        label = "" if text is None else " ".join((text.text or "").split())
        path, anchor = resolve_href(folder, "" if content is None else content.get("src", ""))
        yield OutlineLink(label, path, anchor, parents)
        if len(parents) < _DEEPEST:
            yield from _ncx_entries(inner, folder, (*parents, label))


# --- archive --------------------------------------------------------------------------------------


class EpubArchive:
    """Files of an EPUB by their path in the archive."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _DAMAGE as error:
            raise UnreadableFile(f"not an EPUB file: {str(error)[:200]}") from None
        self._infos = {info.filename: info for info in self._zip.infolist()}
        self._left = _MAX_TOTAL
        if len(self._infos) > _MAX_FILES:
            raise UnreadableFile(f"holds more than {_MAX_FILES} files")

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def read(self, name: str) -> bytes:
        """Return a file's content, or raise UnreadableFile."""
        info = self._infos.get(name)
        if info is None:
            raise UnreadableFile("missing from the archive")
        if info.flag_bits & 0x1:
            raise UnreadableFile("encrypted with a password")
        limit = min(MAX_BYTES, self._left)
        too_dense = info.file_size > _SMALL and info.file_size > _MAX_RATIO * info.compress_size
        if info.file_size > limit or too_dense:
            raise UnreadableFile("unpacks to more than is allowed")
        try:
            with self._zip.open(info) as file:
                content = file.read(limit + 1)
        except _DAMAGE as error:
            raise UnreadableFile(f"damaged in the archive: {str(error)[:200]}") from None
        except RuntimeError:
            raise UnreadableFile("encrypted with a password") from None
        if len(content) > limit:
            raise UnreadableFile("unpacks to more than is allowed")
        self._left -= len(content)
        return content

    def read_xml(self, name: str) -> Element:
        return parse_xml(self.read(name))

    def check_encryption(self) -> None:
        """Raise UnreadableFile if the text is protected against copying."""
        if _ENCRYPTION not in self:
            return
        for data in self.read_xml(_ENCRYPTION).iter("EncryptedData"):
            method = data.find(".//EncryptionMethod")
            algorithm = "" if method is None else method.get("Algorithm", "")
            if algorithm not in _FONTS:
                raise UnreadableFile(
                    "encrypted (digital rights management); use a file without copy protection"
                )


def resolve_href(folder: str, href: str) -> tuple[str, str]:
    """Return the path in the archive and the id of a link; an empty path leads out of it."""
    path, _, anchor = href.partition("#")
    joined = posixpath.normpath(posixpath.join(folder, unquote(path)))
    if joined.startswith(("..", "/")) or "\\" in joined or "://" in href:
        return "", ""
    return joined, unquote(anchor)
