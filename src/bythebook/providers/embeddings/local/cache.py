"""Disk cache for generated files, verified by SHA-256 and shared by processes.

A file is used only if its whole content has the expected hash, so a damaged or partial file is
generated again. It is written under a temporary name and renamed: processes that start together
may each generate it, and none reads a partial file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from bythebook.errors import EmbedderFailed

_log = logging.getLogger(__name__)


def user_cache() -> Path:
    """Return the user's cache directory (XDG Base Directory Specification)."""
    # The specification requires relative paths to be ignored.
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "bythebook"


def made_once(path: Path, sha256: str, make: Callable[[], bytes]) -> bytes:
    """Return the content of ``path``; generate and cache it if missing. Disk errors are logged."""
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    if _is_known(content, sha256):
        return content
    content = make()
    if not _is_known(content, sha256):
        raise EmbedderFailed("The embedding model could not be prepared on this machine.")
    try:
        _write(path, content)
    except OSError as error:
        _log.warning(
            "the prepared model cannot be cached in %s (%s): each start will prepare it again",
            path.parent,
            error.strerror,
        )
    return content


def _is_known(content: bytes, sha256: str) -> bool:
    return hashlib.sha256(content).hexdigest() == sha256


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as draft:
        try:
            draft.write(content)
            draft.close()
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
