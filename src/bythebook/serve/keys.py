"""API keys: made once and shown once; afterwards only a keyed digest of each is known.

``btk_…`` is secret and belongs in a program on a server. ``btp_…`` is publishable: it stands in a
page's script, holds only for browsers on that page's origin, and may only ask.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError, InvalidInput, ServiceError
from bythebook.ports import ApiKey, KeyStore
from bythebook.settings import is_origin

if TYPE_CHECKING:
    from bythebook.settings import Settings

_KEY = re.compile(r"(btk|btp)_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_RELOAD_S = 0.5  # a revoked key is refused within a second
_STALE_S = 600  # how long the keys last seen hold while the database is away

_log = logging.getLogger(__name__)


def make_key(pepper: bytes, *, label: str = "", origins: Sequence[str] = ()) -> tuple[str, ApiKey]:
    """A new key: the text for its holder, and what we keep of it."""
    for origin in origins:
        if not is_origin(origin):
            raise InvalidInput(
                f"{origin!r} is not an origin.",
                cure="Write it as a browser does: https://book.example, without a path.",
            )
    key_id = secrets.token_hex(8)
    text = f"{'btp' if origins else 'btk'}_{key_id}_{secrets.token_urlsafe(32)}"
    now = datetime.now(UTC)
    return text, ApiKey(key_id, digest(pepper, text), label, now, tuple(origins))


def digest(pepper: bytes, text: str) -> str:
    """A slow hash would protect a guessable password; 256 random bits need none."""
    return hmac.new(pepper, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def is_ours(text: str) -> bool:
    """Whether it means to be one of our keys, whoever made it."""
    return text.startswith(("btk_", "btp_"))


class KeyRing:
    """The keys that hold now, read again when they are older than half a second."""

    def __init__(
        self, store: KeyStore, pepper: bytes, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._pepper = pepper
        self._clock = clock
        self._keys: Mapping[str, ApiKey] = {}
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def holder(self, text: str) -> ApiKey | None:
        """The key that this text is, if it holds."""
        shape = _KEY.fullmatch(text)
        keys = await self._current()
        key = keys.get(shape[2]) if shape else None
        known = key.digest if key else "0" * 64  # an unknown key takes the same path
        if not hmac.compare_digest(digest(self._pepper, text), known):
            return None
        return key

    async def origins(self) -> frozenset[str]:
        """Pages for which a publishable key holds."""
        keys = await self._current()
        return frozenset(origin for key in keys.values() for origin in key.origins)

    async def _current(self) -> Mapping[str, ApiKey]:
        async with self._reading:
            if self._clock() - self._tried_at >= _RELOAD_S:
                await self._read()
            return self._keys

    async def _read(self) -> None:
        asked_at = self._clock()
        try:
            keys = await self._store.all()
        except ServiceError:
            if asked_at - self._read_at > _STALE_S:
                raise
            if self._tried_at == self._read_at:
                _log.warning("the keys could not be read again; the last ones known still hold")
            self._tried_at = self._clock()
            return
        self._keys = {key.id: key for key in keys if key.revoked_at is None}
        self._read_at = self._tried_at = asked_at


def pepper_of(settings: Settings) -> bytes:
    """The secret under which keys are kept: from the settings, or made once in the home."""
    if settings.door.pepper is not None:
        return settings.door.pepper.get_secret_value().encode()
    file = settings.home / "pepper"
    try:
        return file.read_bytes() if file.is_file() else _make_pepper(file)
    except OSError as error:
        raise ConfigurationError(
            f"The secret of the keys cannot be read or made: {error.strerror}.",
            cure="Set BYTHEBOOK_PEPPER, or make the home writable.",
        ) from None


def _make_pepper(file: Path) -> bytes:
    """Linked into place: of two that make it at once, both read the first one's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix="pepper.") as draft:  # mode 0600
        draft.write(secrets.token_hex(32).encode())
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, file)
    return file.read_bytes()
