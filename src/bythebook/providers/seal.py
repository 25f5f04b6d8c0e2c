"""A folder of finished files in, its seal out; and later, whether they are still the same.

The embedded engine does not notice every byte that a disk changed, and answers from what is left.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

_SEAL = "seal.json"
_PIECE = 1 << 20
_READ_AT_MOST = 256 << 20  # bytes of a folder that are worth reading whenever it is opened


def seal(folder: Path) -> None:
    """Write down what every file holds, durably."""
    with (folder / _SEAL).open("w") as file:
        json.dump({name: [size, _checksum(folder / name)] for name, size in _sizes(folder)}, file)
        file.flush()
        os.fsync(file.fileno())


def is_sealed(folder: Path) -> bool:
    """Whether every file is there, as long as it was and, unless it is a lot, with every byte."""
    try:
        sealed = json.loads((folder / _SEAL).read_bytes())
        if {name: size for name, (size, _) in sealed.items()} != dict(_sizes(folder)):
            return False
        if sum(_stored(folder / name) for name in sealed) > _READ_AT_MOST:
            return True
        return all(_checksum(folder / name) == value for name, (_, value) in sealed.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _SEAL:
            yield path.relative_to(folder).as_posix(), path.stat().st_size


def _stored(path: Path) -> int:
    return path.stat().st_blocks * 512


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb", buffering=0) as file:
        for start, end in _written(file.fileno(), path.stat().st_size):
            file.seek(start)
            while start < end and (piece := file.read(min(_PIECE, end - start))):
                start += len(piece)
                # What is zero may be a hole on one disk and written on another.
                if piece.strip(b"\0"):
                    checksum = zlib.crc32(piece, zlib.crc32(str(start).encode(), checksum))
    return checksum


def _written(file: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are not holes: the engine reserves far more than it fills."""
    end = 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # nothing but a hole is left
            return
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end
