"""Embedding models that run locally, without network access or an API key."""

from bythebook.providers.embeddings.local.choose import Choice, embedder_for
from bythebook.providers.embeddings.local.embedder import LocalEmbedder

__all__ = ["Choice", "LocalEmbedder", "embedder_for"]
