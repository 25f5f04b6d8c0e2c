"""Safe reading of a book's files: only regular files below the root, up to a size limit.

All file access of an ingest goes through one ``Files``. It opens folder by folder from the book's
own folder, follows no link, and records every probe and its result. As long as all probes give the
same results, another ingest would produce the same book.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bythebook.interfaces.source import UnreadableFile
from bythebook.language.text import well_formed

MAX_BYTES = 2 * 1024 * 1024
MAX_BINARY = 256 * 1024 * 1024
_MAX_DEPTH = 40
_NEVER = ("node_modules", ".git")  # folders with very many files, none of them a page
_FILE, _FOLDER = "file", "folder"
_CONFIGURATION = re.compile(
    r"book\.toml|docusaurus\.config\.[cm]?[jt]s|_(?:config|toc)\.yml|(?:hugo|config)\.(?:toml|ya?ml)"
)
_OUTSIDE = "the path leads out of the book"
_LINK, _NOT_REGULAR = "a symbolic link; links are not followed", "not a regular file"


class ProbeKind(StrEnum):
    READ = "read"  # a text file's content
    READ_BINARY = "read binary"  # any file's content
    PROBE = "probe"  # whether a file or a folder exists
    LIST = "list"  # a folder's entries


@dataclass(frozen=True, slots=True)
class FileProbe:
    act: ProbeKind
    root: str
    path: str  # below the root

    def look(self) -> tuple[Any, str]:
        """Return what is there, and the same as a string; raise UnreadableFile."""
        root, path = Path(self.root), PurePosixPath(self.path)
        match self.act:
            case ProbeKind.READ | ProbeKind.READ_BINARY:
                content = read_bytes(root, path, limit=_LIMITS[self.act])
                return content, _digest(content)
            case ProbeKind.PROBE:
                kind = _kind_at(root, path)
                return kind, kind
            case ProbeKind.LIST:
                entries = _entries(root, path)
                listing = "\0".join(f"{entry.kind}/{entry.name}" for entry in entries)
                return entries, _digest(listing.encode("utf-8", "surrogateescape"))

    def shows(self) -> str:
        """Return the current result as a string; equal strings mean nothing has changed."""
        try:
            return self.look()[1]
        except UnreadableFile as error:
            return error.reason


_LIMITS = {ProbeKind.READ: MAX_BYTES, ProbeKind.READ_BINARY: MAX_BINARY}


class Files:
    """File access below the book's folder that records every result (see ``SourceFiles``)."""

    def __init__(self, book: Path, exclude: tuple[str, ...] = ()) -> None:
        self._exclude = exclude
        self._roots = [book if book.is_dir() else book.parent]
        self.seen: dict[FileProbe, str] = {}

    def widen(self, root: Path) -> None:
        """Also open what is below a folder above the book's, where its configuration is."""
        if self._roots[0].is_relative_to(root):
            self._roots.append(root)

    def _below(self, path: Path) -> tuple[Path, PurePosixPath]:
        """Return the root that a path is below, and the way from there.

        A configuration file may be in a folder above the book. Anything else raises UnreadableFile.
        """
        for root in self._roots:
            if path.is_relative_to(root):
                below = PurePosixPath(path.relative_to(root))
                if ".." not in below.parts:
                    return root, below
        if path.parent in self._roots[0].parents and _CONFIGURATION.fullmatch(path.name):
            return path.parent, PurePosixPath(path.name)
        raise UnreadableFile(_OUTSIDE)

    def _look(self, kind: ProbeKind, path: Path) -> Any:
        """Look at a path, and record what is there or why it cannot be read."""
        root, below = self._below(path)
        probe = FileProbe(kind, str(root), str(below))
        try:
            found, self.seen[probe] = probe.look()
        except UnreadableFile as error:
            self.seen[probe] = error.reason
            raise
        return found

    def read(self, root: Path, relative: PurePosixPath) -> str:
        """Return the text of a file; raise UnreadableFile with the reason if it is not readable."""
        _check(relative)
        return _decoded(self._look(ProbeKind.READ, root / relative))

    def read_bytes(self, root: Path, relative: PurePosixPath) -> bytes:
        _check(relative)
        content: bytes = self._look(ProbeKind.READ_BINARY, root / relative)
        return content

    def has_file(self, path: Path) -> bool:
        return self._probe(path) == _FILE

    def has_folder(self, path: Path) -> bool:
        return self._probe(path) == _FOLDER

    def _probe(self, path: Path) -> str:
        try:
            return "" if self._is_excluded(path) else str(self._look(ProbeKind.PROBE, path))
        except UnreadableFile:
            return ""

    def names(self, folder: Path) -> list[str]:
        entries = self._listing(folder)
        names = [entry.name for entry in entries if well_formed(entry.name) == entry.name]
        return [name for name in names if not self._is_excluded(folder / name)]

    def _is_excluded(self, path: Path) -> bool:
        root = self._roots[0]
        return bool(self._exclude) and (
            path.is_relative_to(root)
            and matches_glob(path.relative_to(root).as_posix(), self._exclude)
        )

    def _listing(self, folder: Path) -> list[FolderEntry]:
        entries: list[FolderEntry] = self._look(ProbeKind.LIST, folder)
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
                entries = self._listing(root / folder)
            except UnreadableFile as error:
                refuse(str(folder), error.reason)
                continue
            for entry in entries:
                path = folder / entry.name
                if entry.name in _NEVER or self._is_excluded(root / path):
                    continue
                if well_formed(entry.name) != entry.name:
                    if entry.kind is EntryKind.FOLDER or wanted(path):
                        refuse(well_formed(str(path)), "the name is not valid UTF-8")
                elif entry.kind is EntryKind.FOLDER:
                    if len(path.parts) < _MAX_DEPTH:
                        folders.append(path)
                elif entry.kind is EntryKind.LINKED_FOLDER or (
                    entry.kind is EntryKind.LINK and wanted(path)
                ):
                    refuse(str(path), _LINK)
                elif entry.kind is EntryKind.FILE and wanted(path):
                    yield path
                elif entry.kind is EntryKind.OTHER and wanted(path):
                    refuse(str(path), _NOT_REGULAR)


class EntryKind(StrEnum):
    FOLDER = "folder"
    FILE = "file"
    LINK = "link"
    LINKED_FOLDER = "linked folder"
    OTHER = "other"


class FolderEntry(NamedTuple):
    name: str
    kind: EntryKind


def _entries(root: Path, folder: PurePosixPath) -> list[FolderEntry]:
    with _opened(root, folder.parts) as handle:
        try:
            with os.scandir(handle) as items:
                return sorted(FolderEntry(item.name, _kind(item)) for item in items)
        except OSError as error:
            raise UnreadableFile(_reason(error)) from None


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return EntryKind.LINKED_FOLDER if entry.is_dir() else EntryKind.LINK
    if entry.is_dir():
        return EntryKind.FOLDER
    return EntryKind.FILE if entry.is_file() else EntryKind.OTHER


def _kind_at(root: Path, path: PurePosixPath) -> str:
    """Return what is at a path. A link counts as what it leads to: opening it gives the reason."""
    try:
        with _opened(root, path.parts[:-1]) as handle:
            mode = os.stat(path.name or ".", dir_fd=handle).st_mode
    except (OSError, ValueError, UnreadableFile):
        return ""
    return _FOLDER if stat.S_ISDIR(mode) else _FILE if stat.S_ISREG(mode) else ""


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


def read_json(text: str) -> Any:
    """Parse JSON; its texts are well-formed, whatever their escapes say."""
    parsed = json.loads(text)
    return json.loads(well_formed(json.dumps(parsed, ensure_ascii=False)))


def _check(relative: PurePosixPath) -> None:
    parts = relative.parts
    if relative.is_absolute() or not parts or ".." in parts or any("\0" in part for part in parts):
        raise UnreadableFile(_OUTSIDE)


def read_bytes(root: Path, relative: PurePosixPath, *, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file below ``root``. No path component may be a symbolic link."""
    _check(relative)
    *folders, name = relative.parts
    with _opened(root, folders) as folder:
        try:
            # O_NONBLOCK: opening a FIFO would block until a writer opens it.
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            raise UnreadableFile(_reason(error)) from None
    try:
        return _read_open(handle, limit)
    finally:
        os.close(handle)


@contextmanager
def _opened(root: Path, folders: Sequence[str]) -> Iterator[int]:
    """Open a folder below ``root``, one by one, so that no link is followed."""
    handle = None
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for name in folders:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
    except (OSError, ValueError) as error:
        if handle is not None:
            os.close(handle)
        raise UnreadableFile(_reason(error) if isinstance(error, OSError) else _OUTSIDE) from None
    try:
        yield handle
    finally:
        os.close(handle)


def _read_open(handle: int, limit: int) -> bytes:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableFile(_NOT_REGULAR)
    with os.fdopen(handle, "rb", closefd=False) as file:
        content = file.read(limit + 1) if status.st_size <= limit else b""
    if max(status.st_size, len(content)) > limit:
        raise UnreadableFile(f"larger than {limit // 1024} KiB")
    return content


def _reason(error: OSError) -> str:
    if error.errno in (40, 20):  # ELOOP, ENOTDIR: errors of O_NOFOLLOW for a link
        return _LINK
    return (error.strerror or "not readable").lower()


def natural_key(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts ``chapter2`` before ``chapter10``."""
    parts = re.split(r"([0-9]+)", path)
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]


# --- glob patterns --------------------------------------------------------------------------------


def matches_glob(path: str, patterns: Iterable[str]) -> bool:
    return any(_glob(pattern).match(path) for pattern in patterns)


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob with ``**``, ``*``, ``?`` and ``{a,b}``, as in Docusaurus."""
    pieces = re.findall(r"\*\*/|\*+|\?|\{[^{}]*\}|.", pattern.removeprefix("./"), re.S)
    return re.compile("".join(map(_glob_piece, pieces)) + r"\Z", re.S)


def _glob_piece(piece: str) -> str:
    if piece[0] == "{" and len(piece) > 1:
        return f"(?:{'|'.join(map(re.escape, piece[1:-1].split(',')))})"
    other = "[^/]*" if piece[0] == "*" else re.escape(piece)
    return {"**/": "(?:[^/]+/)*", "**": ".*", "?": "[^/]"}.get(piece, other)
