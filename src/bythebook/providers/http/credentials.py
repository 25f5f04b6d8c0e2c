"""Resolve the address and API key of a provider from the settings.

A key is sent only to the address that it was exported for: an address set in the settings needs a
key of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bythebook.errors import EmbedderFailed, ServiceError, WriterFailed
from bythebook.providers.http.errors import ErrorCode, ProviderError, ServiceName
from bythebook.providers.registry import HOSTED

if TYPE_CHECKING:
    from bythebook.config.sections import Accounts, Embedding, Model
    from bythebook.config.settings import Settings

_OLLAMA_PORTS = {"": 11434, "http": 80, "https": 443}  # as Ollama itself reads OLLAMA_HOST


@dataclass(frozen=True, slots=True)
class Account:
    service: ServiceName
    provider: str
    model: str
    address: str
    own: bool  # the provider's own address
    key: str | None = field(default=None, repr=False)

    def usable_key(self) -> str | None:
        """Return the key or raise; called per request, so that a book without a key still opens."""
        if self.key is None and self.own and HOSTED[self.provider].key_name:
            raise ProviderError(ErrorCode.NO_KEY)
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise ProviderError(ErrorCode.BAD_KEY)
        return self.key


def writer_account(provider: str, model: str, settings: Settings) -> Account:
    address = HOSTED[provider].chat
    return _account(provider, model, address, settings.model, settings.accounts, WriterFailed)


def embedder_account(provider: str, model: str, settings: Settings) -> Account:
    address, chosen = HOSTED[provider].embeddings, settings.embedding
    return _account(provider, model, address, chosen, settings.accounts, EmbedderFailed)


def _account(
    provider: str,
    model: str,
    address: str | None,
    chosen: Model | Embedding,
    accounts: Accounts,
    failed: type[ServiceError],
) -> Account:
    section = "model" if failed is WriterFailed else "embedding"
    key_name = HOSTED[provider].key_name
    key = getattr(accounts, f"{provider}_key", None)
    start = "Check the network."
    if provider == "openai" and accounts.openai_url:
        address = accounts.openai_url
    elif provider == "ollama":
        address = ollama_address(accounts.ollama_host or "")
        start = "Start it: ollama serve; or check OLLAMA_HOST."
    own = chosen.base_url is None
    if chosen.base_url is not None:
        address, key, key_name = chosen.base_url, None, f"{section}.api_key"
        start = "Start it, or check {section}.base_url." if provider != "ollama" else start
    key = chosen.api_key or key
    assert address is not None
    return Account(
        service=ServiceName(f"{provider}:{model}", section, key_name, failed, start),
        provider=provider,
        model=model,
        address=address,
        own=own,
        key=(key.get_secret_value().strip() or None) if key else None,
    )


def ollama_address(host: str) -> str:
    """Return the base URL for ``OLLAMA_HOST``; a wildcard listen address becomes loopback."""
    scheme, separator, rest = host.strip().rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or _OLLAMA_PORTS.get(scheme if separator else "", 11434)
    except ValueError:
        return "http://127.0.0.1:11434/v1"
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - read, not bound
    name = f"[{name}]" if ":" in name else name
    return f"{scheme or 'http'}://{name}:{port}{parts.path.rstrip('/')}/v1"
