"""A generation's finished folder in, its seal out; and later, whether it still holds the same.

The embedded engine does not notice every byte that a disk changed, and answers from what is left.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

_SEAL = "seal.json"
# The engine writes these anew when it opens a folder; it checks the first two itself.
_REWRITTEN = frozenset({"edge_config.json", "segment.json", "tracker_journal.dat", _SEAL})
_BLOCK = 1 << 16
_READ_AT_MOST = 256 << 20  # bytes of a folder that are worth reading whenever it is opened


def seal(folder: Path) -> None:
    """Write down what every file holds; then have the disk hold all of them."""
    with (folder / _SEAL).open("w") as file:
        json.dump({name: [size, _checksum(folder / name)] for name, size in _sizes(folder)}, file)
    for path in folder.rglob("*"):
        make_durable(path)
    make_durable(folder)


def make_durable(path: Path) -> None:
    """A file's bytes, or a folder's names, survive a power cut from now on."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def is_sealed(folder: Path) -> bool:
    """Whether every file is there, as long as it was and, unless that is a lot, byte by byte.

    Files beyond those are left out of account: another process that opens the folder at this
    moment makes some, for a moment.
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
    """Of the blocks that are not zero: the engine reserves far more room than it fills."""
    checksum = 0
    with path.open("rb", buffering=0) as file:
        for start in _filled(file.fileno(), path.stat().st_size):
            file.seek(start)
            block = file.read(_BLOCK)
            if block.strip(b"\0"):
                checksum = zlib.crc32(block, zlib.crc32(str(start).encode(), checksum))
    return checksum


def _filled(file: int, size: int) -> Iterator[int]:
    """Where the blocks begin that are not holes, whatever the disk calls a hole."""
    start = 0
    while start < size:
        try:
            data = os.lseek(file, start, os.SEEK_DATA)
        except OSError:  # nothing but a hole is left
            return
        start = data - data % _BLOCK
        yield start
        start += _BLOCK
