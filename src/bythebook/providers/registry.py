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


EMBEDDERS = {
    "local": Provider("bythebook.providers.embeddings.local", "LocalEmbedder"),
    "openai": Provider("bythebook.providers.embeddings.openai", "openai_embedder"),
    "cohere": Provider("bythebook.providers.embeddings.cohere", "cohere_embedder"),
    "gemini": Provider("bythebook.providers.embeddings.gemini", "gemini_embedder"),
    "ollama": Provider("bythebook.providers.embeddings.openai", "openai_embedder"),
}
READERS = {"local": Provider("bythebook.providers.reader.local", "LocalReader")}
_CHAT = Provider("bythebook.providers.llm.openai", "OpenAIWriter")
WRITERS = {
    "openai": _CHAT,
    "openrouter": _CHAT,
    "gemini": _CHAT,
    "ollama": _CHAT,
    "agents": Provider(
        "bythebook.providers.llm.agents", "AgentsWriter", 'pip install "bythebook[agents]"'
    ),
}
_BUILT_IN = {"embedders": EMBEDDERS, "readers": READERS, "writers": WRITERS}


def choose_provider(kind: ProviderKind, name: str) -> tuple[Any, str, str]:
    """Import the factory for ``"provider:model"``; return it with the provider and the model."""
    provider, _, model = name.partition(":")
    table = _BUILT_IN[kind]
    if provider not in table:
        table = {**table, **_added_providers(kind), **table}
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
