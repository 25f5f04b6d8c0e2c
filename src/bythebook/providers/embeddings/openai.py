"""Embedder for OpenAI, Ollama and other endpoints with the OpenAI embedding API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.providers.embeddings.hosted import HostedEmbedder, ModelSpec, known_model

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
_UNKNOWN = ModelSpec(0, 512)


@dataclass(frozen=True, slots=True)
class OpenAIWire:
    model: str
    dimensions: int | None = None  # if vectors are to be shortened
    path: str = "/embeddings"
    most_texts: int = 128

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, texts: Sequence[str], role: TextRole) -> object:
        del role
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return body | ({"dimensions": self.dimensions} if self.dimensions else {})

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        rows = sorted(reply["data"], key=lambda row: int(row["index"]))
        return [row["embedding"] for row in rows]


def openai_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    """Return an embedder for ``openai:…`` or ``ollama:…``, at any compatible address."""
    table = OLLAMA_EMBEDDERS if account.provider == "ollama" else OPENAI_EMBEDDERS
    known = known_model(account.model, table, unknown=_UNKNOWN)
    model = account.model.partition("@")[0]
    shorter = model in OPENAI_EMBEDDERS and known.dimension != OPENAI_EMBEDDERS[model].dimension
    wire = OpenAIWire(model, known.dimension if shorter else None)
    return HostedEmbedder(account, settings, known=known, wire=wire, web=web)
