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

if TYPE_CHECKING:
    from pydantic import SecretStr

    from bythebook.config.sections import Accounts, Embedding, Model
    from bythebook.config.settings import Settings

_CHAT = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
}
_EMBEDDINGS = {
    "openai": "https://api.openai.com/v1",
    "cohere": "https://api.cohere.com/v2",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
_KEY_NAMES = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "cohere": "COHERE_API_KEY",
}
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
        if self.key is None and self.own and self.provider in _KEY_NAMES:
            raise ProviderError(ErrorCode.NO_KEY)
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            raise ProviderError(ErrorCode.BAD_KEY)
        return self.key


def writer_account(provider: str, model: str, settings: Settings) -> Account:
    return _account(f"{provider}:{model}", settings.model, _CHAT, settings.accounts, WriterFailed)


def embedder_account(provider: str, model: str, settings: Settings) -> Account:
    name, chosen = f"{provider}:{model}", settings.embedding
    return _account(name, chosen, _EMBEDDINGS, settings.accounts, EmbedderFailed)


def _account(
    name: str,
    chosen: Model | Embedding,
    addresses: dict[str, str],
    accounts: Accounts,
    failed: type[ServiceError],
) -> Account:
    provider, _, model = name.partition(":")
    section = "model" if failed is WriterFailed else "embedding"
    address, exported = _exported(provider, addresses, accounts)
    key_name = _KEY_NAMES.get(provider, "")
    own = chosen.base_url is None
    if chosen.base_url is not None:
        address, exported, key_name = chosen.base_url, None, f"{section}.api_key"
    start = "Check the network."
    if provider == "ollama":
        start = "Start it: ollama serve; or check OLLAMA_HOST."
    elif not own:
        start = "Start it, or check {section}.base_url."
    key = chosen.api_key or exported
    return Account(
        service=ServiceName(name, section, key_name, failed, start),
        provider=provider,
        model=model,
        address=address,
        own=own,
        key=(key.get_secret_value().strip() or None) if key else None,
    )


def _exported(
    provider: str, addresses: dict[str, str], accounts: Accounts
) -> tuple[str, SecretStr | None]:
    if provider == "ollama":
        return ollama_address(accounts.ollama_host or ""), None
    key: SecretStr | None = getattr(accounts, f"{provider}_key")
    own_address = accounts.openai_url if provider == "openai" else None
    return own_address or addresses[provider], key


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
