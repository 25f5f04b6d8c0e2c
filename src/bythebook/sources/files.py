"""Safe reading of a book's files: only regular files below the root, up to a size limit.

All file access of an ingest goes through one ``Files``, which records every probe and its result.
As long as all probes give the same results, another ingest would produce the same book.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

MAX_BYTES = 2 * 1024 * 1024
_MAX_DEPTH = 40
_FILE, _FOLDER = "file", "folder"


class UnreadableFile(Exception):
    """Reason why a file is not read, with the line number if known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class ProbeKind(StrEnum):
    READ = "read"  # a file's content
    PROBE = "probe"  # whether a file or a folder exists
    LIST = "list"  # a folder's entries


@dataclass(frozen=True, slots=True)
class FileProbe:
    act: ProbeKind
    root: str
    path: str  # below the root

    def shows(self) -> str:
        """Return the current result as a string; equal strings mean nothing has changed."""
        root, path = Path(self.root), PurePosixPath(self.path)
        match self.act:
            case ProbeKind.READ:
                try:
                    return _digest(read_bytes(root, path))
                except UnreadableFile as error:
                    return error.reason
            case ProbeKind.PROBE:
                return _probe(root / path)
            case ProbeKind.LIST:
                try:
                    return _told(_entries(root / path))
                except UnreadableFile as error:
                    return error.reason


class Files:
    """File access that records every probe and its result."""

    def __init__(self) -> None:
        self.seen: dict[FileProbe, str] = {}

    def read(self, root: Path, relative: PurePosixPath) -> str:
        """Return the text of a file; raise UnreadableFile with the reason if it is not readable."""
        look = FileProbe(ProbeKind.READ, str(root), str(relative))
        try:
            content = read_bytes(root, relative)
        except UnreadableFile as error:
            self.seen[look] = error.reason
            raise
        self.seen[look] = _digest(content)
        return _decoded(content)

    def has_file(self, path: Path) -> bool:
        return self._probe(path) == _FILE

    def has_folder(self, path: Path) -> bool:
        return self._probe(path) == _FOLDER

    def _probe(self, path: Path) -> str:
        found = self.seen[FileProbe(ProbeKind.PROBE, str(path), "")] = _probe(path)
        return found

    def entries(self, folder: Path) -> list[Entry]:
        """Return the entries of a folder, sorted by name."""
        look = FileProbe(ProbeKind.LIST, str(folder), "")
        try:
            entries = _entries(folder)
        except UnreadableFile as error:
            self.seen[look] = error.reason
            raise
        self.seen[look] = _told(entries)
        return entries

    def walk(
        self,
        root: Path,
        wanted: Callable[[PurePosixPath], bool],
        refuse: Callable[[str, str], None],
    ) -> Iterator[PurePosixPath]:
        """Yield regular files below ``root``, sorted; report links and others to ``refuse``."""
        folders = [PurePosixPath()]
        while folders:
            folder = folders.pop()
            try:
                entries = self.entries(root / folder)
            except UnreadableFile as error:
                refuse(str(folder), error.reason)
                continue
            for entry in entries:
                path = folder / entry.name
                if entry.kind is Kind.FOLDER:
                    if len(path.parts) < _MAX_DEPTH:
                        folders.append(path)
                elif entry.kind is Kind.LINKED_FOLDER or (entry.kind is Kind.LINK and wanted(path)):
                    refuse(str(path), "a symbolic link; links are not followed")
                elif entry.kind is Kind.FILE and wanted(path):
                    yield path
                elif entry.kind is Kind.OTHER and wanted(path):
                    refuse(str(path), "not a regular file")


class Kind(StrEnum):
    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    LINKED_FOLDER = "linked folder"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """Directory entry."""

    name: str
    kind: Kind


def _entries(folder: Path) -> list[Entry]:
    try:
        with os.scandir(folder) as found:
            return sorted((Entry(each.name, _kind(each)) for each in found), key=lambda e: e.name)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return Kind.LINKED_FOLDER if entry.is_dir() else Kind.LINK
    if entry.is_dir():
        return Kind.FOLDER
    return Kind.FILE if entry.is_file() else Kind.OTHER


def _told(entries: list[Entry]) -> str:
    told = "\0".join(f"{entry.kind}/{entry.name}" for entry in entries)
    return _digest(told.encode("utf-8", "surrogateescape"))


def _probe(path: Path) -> str:
    if path.is_dir():
        return _FOLDER
    return _FILE if path.is_file() else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _decoded(content: bytes) -> str:
    if b"\0" in content:
        raise UnreadableFile("holds a NUL byte", content.count(b"\n", 0, content.index(b"\0")) + 1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("not valid UTF-8", line) from None


def read_bytes(root: Path, relative: PurePosixPath, *, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file below ``root``. No path component may be a symbolic link."""
    parts = relative.parts
    if relative.is_absolute() or not parts or ".." in parts or any("\0" in part for part in parts):
        raise UnreadableFile("the path leads out of the book")
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    try:
        for part in parts[:-1]:
            folder = _step_into(folder, part)
        # O_NONBLOCK: opening a FIFO would block until a writer opens it.
        handle = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    finally:
        os.close(folder)
    try:
        return _read_open(handle, limit)
    finally:
        os.close(handle)


def _step_into(folder: int, part: str) -> int:
    inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    os.close(folder)
    return inner


def _read_open(handle: int, limit: int) -> bytes:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile("not a regular file")
    if status.st_size > limit:
        raise UnreadableFile(f"larger than {limit // 1024} KiB")
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(handle, 1 << 16):
        size += len(piece)
        if size > limit:
            raise UnreadableFile(f"larger than {limit // 1024} KiB")
        pieces.append(piece)
    return b"".join(pieces)


def _reason(error: OSError) -> str:
    if error.errno in (40, 20):  # ELOOP, ENOTDIR: errors of O_NOFOLLOW for a link
        return "a symbolic link; links are not followed"
    return (error.strerror or "not readable").lower()
