"""Checksums detect every change of a folder's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bythebook.providers.qdrant.checksums import is_sealed, seal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "vectors").write_bytes(b"12345" * 100)
    (tmp_path / "rows").write_bytes(b"abc")
    seal(tmp_path)
    return tmp_path


def test_an_unchanged_folder_is_valid(folder: Path) -> None:
    assert is_sealed(folder)


def test_files_that_the_engine_writes_later_are_ignored(folder: Path) -> None:
    (folder / ".tmpA1b2").write_bytes(b"half a configuration")
    (folder / "segments" / "segment.json").write_text("{}")
    assert is_sealed(folder)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [flip, Path.unlink, lambda file: file.write_bytes(b""), lambda file: file.write_bytes(b"x")],
    ids=["flipped", "gone", "empty", "short"],
)
@pytest.mark.parametrize("name", ["rows", "segments/vectors", "seal.json"])
def test_damage_is_detected(folder: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(folder / name)
    assert not is_sealed(folder)


def test_an_empty_checksum_file_is_invalid(folder: Path) -> None:
    (folder / "seal.json").write_text("{}")
    assert not is_sealed(folder)
