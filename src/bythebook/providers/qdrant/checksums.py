"""Checksums of a finished generation folder, to detect later changes.

The embedded engine does not detect every byte changed on disk; it answers from what is left.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

_SEAL = "seal.json"
# The engine rewrites these when it opens a folder; it checks the first two itself.
_REWRITTEN = frozenset({"edge_config.json", "segment.json", "tracker_journal.dat", _SEAL})
_BLOCK = 1 << 16
_READ_AT_MOST = 256 << 20  # bytes; larger folders are not checksummed on open


def seal(folder: Path) -> None:
    """Write size and checksum of every file to the seal file, then fsync the whole folder."""
    with (folder / _SEAL).open("w") as file:
        json.dump({name: [size, _checksum(folder / name)] for name, size in _sizes(folder)}, file)
    for path in folder.rglob("*"):
        make_durable(path)
    make_durable(folder)


def make_durable(path: Path) -> None:
    """Flush a file or a directory entry to disk, so that it survives a power cut."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def is_sealed(folder: Path) -> bool:
    """Return whether all sealed files exist with the same size and, if not too large, checksum.

    Additional files are ignored: another process that opens the folder creates some temporarily.
    """
    try:
        sealed = json.loads((folder / _SEAL).read_bytes())
        states = {name: (folder / name).stat() for name in sealed}
        if not sealed or any(states[name].st_size != size for name, (size, _) in sealed.items()):
            return False
        if sum(state.st_blocks * 512 for state in states.values()) > _READ_AT_MOST:
            return True
        return all(_checksum(folder / name) == value for name, (_, value) in sealed.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in _REWRITTEN:
            yield path.relative_to(folder).as_posix(), path.stat().st_size


def _checksum(path: Path) -> int:
    """Return a checksum of the non-zero blocks: the engine allocates far more than it fills."""
    checksum = 0
    with path.open("rb", buffering=0) as file:
        for start in _filled(file.fileno(), path.stat().st_size):
            file.seek(start)
            block = file.read(_BLOCK)
            if block.strip(b"\0"):
                checksum = zlib.crc32(block, zlib.crc32(str(start).encode(), checksum))
    return checksum


def _filled(file: int, size: int) -> Iterator[int]:
    """Yield offsets of blocks that are not holes, whatever the file system's hole size."""
    start = 0
    while start < size:
        try:
            data = os.lseek(file, start, os.SEEK_DATA)
        except OSError:  # only a hole is left
            return
        start = data - data % _BLOCK
        yield start
        start += _BLOCK
