"""Cohere embedding API, with one POST request per batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bythebook.providers.embeddings.hosted import EmbeddingApi, HostedEmbedder, ModelSpec

if TYPE_CHECKING:
    from bythebook.interfaces.embedding import TextRole

EMBEDDERS = {
    "embed-english-v3.0": ModelSpec(1024, 512),
    "embed-multilingual-v3.0": ModelSpec(1024, 512),
    "embed-english-light-v3.0": ModelSpec(384, 512),
    "embed-multilingual-light-v3.0": ModelSpec(384, 512),
}
_INPUT_TYPES = {"passage": "search_document", "query": "search_query"}


def _body(model: str, _: ModelSpec, texts: Sequence[str], role: TextRole) -> object:
    return {
        "model": model,
        "texts": list(texts),
        "input_type": _INPUT_TYPES[role],
        "embedding_types": ["float"],
        "truncate": "NONE",  # text that is too long fails, and is then split into windows
    }


_API = EmbeddingApi(
    models=EMBEDDERS,
    path="/embed",
    most_texts=96,
    body=_body,
    vectors=lambda reply: reply["embeddings"]["float"],
)
cohere_embedder = partial(HostedEmbedder, _API)
