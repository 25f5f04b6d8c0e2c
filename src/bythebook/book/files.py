"""Reading a book's files: regular ones, inside the root, of a bearable size, and nothing else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

MAX_BYTES = 2 * 1024 * 1024
_MAX_DEPTH = 40


class UnreadableFile(Exception):
    """Why a file is not read, and on which line if that is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def read_bytes(root: Path, relative: PurePosixPath, *, limit: int = MAX_BYTES) -> bytes:
    """The content of a file below ``root``. No step of the way may be a symbolic link."""
    parts = relative.parts
    if relative.is_absolute() or not parts or ".." in parts or any("\0" in part for part in parts):
        raise UnreadableFile("the path leads out of the book")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            folder = _step_into(folder, part)
        # O_NONBLOCK: opening a FIFO would wait for a writer that never comes.
        handle = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    finally:
        os.close(folder)
    with os.fdopen(handle, "rb") as file:
        return _read_open(file.fileno(), limit)


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
    if error.errno in (40, 20):  # ELOOP, ENOTDIR: what O_NOFOLLOW says of a link
        return "a symbolic link; links are not followed"
    return (error.strerror or "not readable").lower()


def read_text(root: Path, relative: PurePosixPath) -> str:
    content = read_bytes(root, relative)
    if b"\0" in content:
        raise UnreadableFile("holds a NUL byte", content.count(b"\n", 0, content.index(b"\0")) + 1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("not valid UTF-8", line) from None


def walk(
    root: Path, wanted: Callable[[PurePosixPath], bool], refuse: Callable[[str, str], None]
) -> Iterator[PurePosixPath]:
    """Regular files below ``root``, sorted; links and other oddities go to ``refuse``."""
    folders = [PurePosixPath()]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
        except OSError as error:
            refuse(str(folder), _reason(error))
            continue
        for entry in entries:
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if len(path.parts) < _MAX_DEPTH:
                    folders.append(path)
            elif entry.is_symlink():
                if wanted(path) or entry.is_dir():
                    refuse(str(path), "a symbolic link; links are not followed")
            elif wanted(path):
                if entry.is_file(follow_symlinks=False):
                    yield path
                else:
                    refuse(str(path), "not a regular file")
