"""Embedding models that run locally, without network access or an API key."""

from bythebook.providers.embeddings.local.embedder import LocalEmbedder, embedder_for

__all__ = ["LocalEmbedder", "embedder_for"]
