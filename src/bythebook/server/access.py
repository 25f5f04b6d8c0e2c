"""API keys: each is shown once when created; afterwards only a keyed digest of it is stored.

``btk_…`` is secret, for server-side programs. ``btp_…`` is publishable: it may appear in a page's
script, is valid only for browsers on that page's origin, and allows POST requests only. A secret
key may be an author's, who reads what all readers ask.
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
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.access_stores import AccessStores, open_access_stores
from bythebook.config.sections import AccessSettings, is_origin
from bythebook.errors import ConfigurationError, InvalidInput, NotAllowed, ServiceError
from bythebook.interfaces.access import ApiKey
from bythebook.server.middleware import counted_as, is_loopback

if TYPE_CHECKING:
    from bythebook.config.settings import Settings
    from bythebook.providers.sql.access import SqlKeys

_KEY = re.compile(r"(btk|btp)_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # control characters, line ends and bytes that are no text
_RELOAD_S = 0.5  # a revoked key is refused within a second
_STALE_S = 600  # how long cached keys stay valid while the database is unavailable

_log = logging.getLogger(__name__)


def make_key(
    pepper: bytes, *, label: str = "", origins: Sequence[str] = (), is_author: bool = False
) -> tuple[str, ApiKey]:
    """Create a key; return its text for the owner, and the record to store."""
    if is_author and origins:
        raise InvalidInput(
            "A publishable key cannot be an author's.", hint="Everyone can read it in the page."
        )
    if any(unicodedata.category(char) in _CONTROLS for char in label):
        raise InvalidInput("The label has control characters.", hint="Write it on one line.")
    for origin in origins:
        if not is_origin(origin):
            raise InvalidInput(
                f"{origin!r} is not an origin.",
                hint="Write it as a browser does: https://book.example, without a path.",
            )
    key_id = secrets.token_hex(8)
    text = f"{'btp' if origins else 'btk'}_{key_id}_{secrets.token_urlsafe(32)}"
    now = datetime.now(UTC)
    made = digest(pepper, text)
    return text, ApiKey(key_id, made, label, now, tuple(origins), is_author=is_author)


def digest(pepper: bytes, text: str) -> str:
    """Return the HMAC-SHA-256 of a key; 256 random bits need no slow password hash."""
    return hmac.new(pepper, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def is_ours(text: str) -> bool:
    """Return whether the text has the prefix of our keys, valid or not."""
    return text.startswith(("btk_", "btp_"))


class KeyRing:
    """Cache of the valid keys, reloaded when older than half a second."""

    def __init__(
        self, store: SqlKeys, pepper: bytes, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._pepper = pepper
        self._clock = clock
        self._keys: Mapping[str, ApiKey] = {}
        self._read_at = float("-inf")
        self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def holder(self, text: str) -> ApiKey | None:
        """Return the key with this text, or None if it is unknown or revoked."""
        shape = _KEY.fullmatch(text)
        keys = await self._current()
        key = keys.get(shape[2]) if shape else None
        known = key.digest if key else "0" * 64  # the same code path for unknown keys
        if not hmac.compare_digest(digest(self._pepper, text), known):
            return None
        return key

    async def origins(self) -> frozenset[str]:
        """Return the origins of all publishable keys."""
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
                _log.warning("cannot reload the API keys, using the cached ones")
            self._tried_at = self._clock()
            return
        self._keys = {key.id: key for key in keys if key.revoked_at is None}
        self._read_at = self._tried_at = asked_at


def pepper_of(settings: Settings) -> bytes:
    """Return the secret for digests: from the settings, or from a file created once in the home."""
    if settings.access.pepper is not None:
        return settings.access.pepper.get_secret_value().encode()
    file = settings.home / "pepper"
    try:
        return file.read_bytes() if file.is_file() else _make_pepper(file)
    except OSError as error:
        raise ConfigurationError(
            f"The secret of the API keys cannot be read or created: {error.strerror}.",
            hint="Set BYTHEBOOK_PEPPER, or make the home writable.",
        ) from None


def _make_pepper(file: Path) -> bytes:
    """Create the secret file atomically by a link: concurrent processes all read the first one."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix="pepper.") as draft:  # mode 0600
        draft.write(secrets.token_hex(32).encode())
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, file)
    return file.read_bytes()


# --- the key of a request -------------------------------------------------------------------------


class AuthenticationMiddleware:
    """Identify the key of a request; reject requests without one if keys are required."""

    def __init__(self, app: ASGIApp, *, ring: KeyRing, required: bool) -> None:
        self._app = app
        self._ring = ring
        self._required = required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["state"]
        key = await self._key(scope) if state["contract"] else None
        address = counted_as(state["address"])
        state["owner"] = key.id if key else None
        state["is_author"] = key is not None and key.is_author
        # Clients with a shared (publishable) key or without one are told apart by address.
        shared = key is None or key.origins
        state["caller"] = f"{key.id if key else 'open'} {address if shared else ''}"
        await self._app(scope, receive, send)

    async def _key(self, scope: Scope) -> ApiKey | None:
        headers = Headers(scope=scope)
        text = _presented(headers)
        required = self._required and not scope["state"]["contract"].is_public
        if not required and not is_ours(text):
            return None  # keys are optional: ignore foreign credentials
        if not text:
            raise NotAllowed(
                "An API key is needed.", hint="Send it as Authorization: Bearer or as X-API-Key."
            )
        key = await self._ring.holder(text)
        if key is None:
            raise NotAllowed(
                "This API key is not known or has been revoked.", hint="Ask for a new one."
            )
        if key.origins and headers.get("origin") not in key.origins:
            raise NotAllowed(
                "This key holds only on its own page.", hint="Use a secret key outside of it."
            )
        if key.origins and scope["method"] != "POST":
            raise NotAllowed("This key may only ask.", hint="Use a secret key, on a server.")
        return key


def _presented(headers: Headers) -> str:
    scheme, _, text = headers.get("authorization", "").partition(" ")
    bearer = text.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "").strip()


# --- the access control of a server ---------------------------------------------------------------


def needs_keys(settings: Settings) -> bool:
    """Return whether API keys are required: by default, if other machines can reach the server."""
    if settings.access.keys != "auto":
        return settings.access.keys == "required"
    return is_reachable(settings)


def is_reachable(settings: Settings) -> bool:
    """Return whether other machines can reach the server, directly or through a proxy."""
    return not is_loopback(settings.server.host) or bool(settings.access.trusted_proxies)


@dataclass
class AccessControl:
    """The rules of access, and the stores behind them."""

    rules: AccessSettings
    stores: AccessStores
    needs_keys: bool
    pepper: bytes  # secret of all digests
    ring: KeyRing = field(init=False)

    def __post_init__(self) -> None:
        self.ring = KeyRing(self.stores.keys, self.pepper)

    async def origins(self) -> frozenset[str]:
        """Return the origins whose pages may use this server."""
        try:
            return frozenset(self.rules.origins) | await self.ring.origins()
        except ServiceError:
            return frozenset(self.rules.origins)

    async def close(self) -> None:
        for store in (self.stores.keys, self.stores.counter, self.stores.replies):
            await store.close()


def open_access(settings: Settings) -> AccessControl:
    required = needs_keys(settings)
    try:
        pepper = pepper_of(settings)
    except ConfigurationError:
        if required:
            raise
        pepper = secrets.token_bytes(32)  # without keys, no digest must outlive this process
    return AccessControl(settings.access, open_access_stores(settings), required, pepper)


def open_local_access() -> AccessControl:
    """Open access control for local use: no keys, no persistent counters or replies."""
    return AccessControl(
        AccessSettings(), open_access_stores(), needs_keys=False, pepper=secrets.token_bytes(32)
    )
