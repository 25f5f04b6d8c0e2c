"""Embedder for OpenAI, Ollama and other endpoints with the OpenAI embedding API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bythebook.providers.embeddings.hosted import EmbeddingApi, HostedEmbedder, ModelSpec

if TYPE_CHECKING:
    from bythebook.config.sections import Embedding
    from bythebook.interfaces.embedding import TextRole
    from bythebook.providers.http.client import HttpClient
    from bythebook.providers.http.credentials import Account

_SEARCH = "Represent this sentence for searching relevant passages: "

OPENAI_EMBEDDERS = {
    "text-embedding-3-small": ModelSpec(1536, 8191),
    "text-embedding-3-large": ModelSpec(3072, 8191),
}
# Ollama truncates long input silently: these are the limits of the models.
OLLAMA_EMBEDDERS = {
    "nomic-embed-text": ModelSpec(
        768, 2048, {"query": "search_query: ", "passage": "search_document: "}
    ),
    "mxbai-embed-large": ModelSpec(1024, 512, {"query": _SEARCH}),
    "snowflake-arctic-embed": ModelSpec(1024, 512, {"query": _SEARCH}),
    "all-minilm": ModelSpec(384, 256),
    "bge-m3": ModelSpec(1024, 8192),
    "embeddinggemma": ModelSpec(
        768, 2048, {"query": "task: search result | query: ", "passage": "title: none | text: "}
    ),
}


def _body(model: str, known: ModelSpec, texts: Sequence[str], _: TextRole) -> object:
    body = {"model": model, "input": list(texts), "encoding_format": "float"}
    full = OPENAI_EMBEDDERS.get(model, known)
    shorter = {"dimensions": known.dimension} if known.dimension != full.dimension else {}
    return body | shorter


def _vectors(reply: Any) -> Sequence[Sequence[float]]:
    rows = {row["index"]: row["embedding"] for row in reply["data"]}
    if len(rows) != len(reply["data"]) or any(type(index) is not int for index in rows):
        raise ValueError("the indexes are no order of the texts")
    return [rows[index] for index in range(len(rows))]


_OPENAI = EmbeddingApi(
    models=OPENAI_EMBEDDERS,
    path="/embeddings",
    most_texts=128,
    body=_body,
    vectors=_vectors,
    unknown=ModelSpec(0, 512),
)
_OLLAMA = replace(_OPENAI, models=OLLAMA_EMBEDDERS)


def openai_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    """Return an embedder for ``openai:…`` or ``ollama:…``, at any compatible address."""
    api = _OLLAMA if account.provider == "ollama" else _OPENAI
    return HostedEmbedder(api, account, settings, web=web)
