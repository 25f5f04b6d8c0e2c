"""Read the files in an EPUB archive, within limits. Nothing is extracted to disk."""

from __future__ import annotations

import io
import lzma
import posixpath
import zipfile
import zlib
from urllib.parse import unquote

from bythebook.interfaces.source import UnreadableFile
from bythebook_formats.html.tree import MAX_BYTES, Element, parse_xml

_MAX_FILES = 20_000
_MAX_TOTAL = 256 * 1024 * 1024  # bytes of all files that are read
_MAX_RATIO = 200  # of a file's size to its compressed size, for files above _SMALL
_SMALL = 1024 * 1024
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
)
_ENCRYPTION = "META-INF/encryption.xml"
# Encrypted fonts are common and harmless: the text can be read.
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


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
