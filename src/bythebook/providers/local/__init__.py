"""Embedding models that run on this machine, without a network and without a key."""

from bythebook.providers.local.choose import Choice, embedder_for
from bythebook.providers.local.embedder import LocalEmbedder

__all__ = ["Choice", "LocalEmbedder", "embedder_for"]
