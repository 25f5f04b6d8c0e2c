"""Gemini embedding API, with one POST request per batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bythebook.errors import UnknownProvider
from bythebook.providers.embeddings.hosted import EmbeddingApi, HostedEmbedder, ModelSpec

if TYPE_CHECKING:
    from bythebook.config.sections import Embedding
    from bythebook.interfaces.embedding import TextRole
    from bythebook.providers.http.client import HttpClient
    from bythebook.providers.http.credentials import Account

EMBEDDERS = {"gemini-embedding-001": ModelSpec(768, 2048)}
_SHUT_DOWN = ("text-embedding-004", "embedding-001")
_TASKS = {"passage": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


def _body(model: str, known: ModelSpec, texts: Sequence[str], role: TextRole) -> object:
    request = {
        "model": f"models/{model}",
        "taskType": _TASKS[role],
        "outputDimensionality": known.dimension,
    }
    return {"requests": [request | {"content": {"parts": [{"text": text}]}} for text in texts]}


_API = EmbeddingApi(
    models=EMBEDDERS,
    path="/models/{model}:batchEmbedContents",
    most_texts=100,
    body=_body,
    vectors=lambda reply: [row["values"] for row in reply["embeddings"]],
    key_header=("x-goog-api-key", "{key}"),
)


def gemini_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    model = account.model.partition("@")[0]
    if model in _SHUT_DOWN:
        raise UnknownProvider(
            f"gemini:{model} has been shut down by its provider.",
            hint='Use "gemini:gemini-embedding-001" and ingest the book again.',
        )
    return HostedEmbedder(_API, account, settings, web=web)
