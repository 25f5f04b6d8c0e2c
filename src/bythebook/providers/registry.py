"""Tables of the built-in providers, and the lookup of ``"provider:model"`` names.

Other packages add providers by the entry point groups ``bythebook.embedders``,
``bythebook.readers`` and ``bythebook.writers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from bythebook.errors import UnknownProvider

ProviderKind = Literal["embedders", "readers", "writers"]


@dataclass(frozen=True, slots=True)
class Provider:
    """Factory of a provider, imported when it is chosen."""

    module: str
    name: str
    install: str = "pip install bythebook"


@dataclass(frozen=True, slots=True)
class HostedService:
    """Addresses of a service, for what it offers, and the usual variable of its key."""

    chat: str | None = None
    embeddings: str | None = None
    key_name: str = ""  # empty: it needs no key


_OLLAMA = "http://127.0.0.1:11434/v1"  # unless OLLAMA_HOST is set
HOSTED = {
    "openai": HostedService(
        chat="https://api.openai.com/v1",
        embeddings="https://api.openai.com/v1",
        key_name="OPENAI_API_KEY",
    ),
    "openrouter": HostedService(chat="https://openrouter.ai/api/v1", key_name="OPENROUTER_API_KEY"),
    "cohere": HostedService(embeddings="https://api.cohere.com/v2", key_name="COHERE_API_KEY"),
    "gemini": HostedService(
        chat="https://generativelanguage.googleapis.com/v1beta/openai",
        embeddings="https://generativelanguage.googleapis.com/v1beta",
        key_name="GEMINI_API_KEY",
    ),
    "ollama": HostedService(chat=_OLLAMA, embeddings=_OLLAMA),
}
_EMBEDDER = Provider("bythebook.providers.embeddings.hosted", "HostedEmbedder")
_CHAT = Provider("bythebook.providers.llm.chat", "OpenAIWriter")
_AGENTS = Provider(
    "bythebook.providers.llm.agents", "AgentsWriter", 'pip install "bythebook[agents]"'
)

EMBEDDERS = {
    "local": Provider("bythebook.providers.embeddings.local", "LocalEmbedder"),
    **{name: _EMBEDDER for name, service in HOSTED.items() if service.embeddings},
}
READERS = {"local": Provider("bythebook.providers.reader.local", "LocalReader")}
WRITERS = {
    **{name: _CHAT for name, service in HOSTED.items() if service.chat},
    "agents": _AGENTS,
}
_BUILT_IN = {"embedders": EMBEDDERS, "readers": READERS, "writers": WRITERS}


def choose_provider(kind: ProviderKind, name: str) -> tuple[Any, str, str]:
    """Import the factory for ``"provider:model"``; return it with the provider and the model."""
    provider, _, model = name.partition(":")
    table = _BUILT_IN[kind]
    if provider not in table:
        table = {**table, **_added_providers(kind), **table}  # the order of the names
    if provider not in table or not model:
        raise UnknownProvider(
            f"There is no provider {name!r}.",
            hint=f'Write "provider:model" with one of {", ".join(table)}.',
        )
    row = table[provider]
    try:
        return getattr(import_module(row.module), row.name), provider, model
    except ModuleNotFoundError as error:
        raise UnknownProvider(
            f"{name} needs the package {error.name}.", hint=f"Run: {row.install}"
        ) from None


def _added_providers(kind: ProviderKind) -> dict[str, Provider]:
    """Return the providers that other installed packages register as entry points."""
    table = {}
    for entry in entry_points(group=f"bythebook.{kind}"):
        package = entry.dist.name if entry.dist else entry.module
        table[entry.name] = Provider(entry.module, entry.attr, f"pip install {package}")
    return table
