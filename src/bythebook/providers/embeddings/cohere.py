"""Cohere embedding API, with one POST request per batch."""

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

EMBEDDERS = {
    "embed-english-v3.0": ModelSpec(1024, 512),
    "embed-multilingual-v3.0": ModelSpec(1024, 512),
    "embed-english-light-v3.0": ModelSpec(384, 512),
    "embed-multilingual-light-v3.0": ModelSpec(384, 512),
}
_INPUT_TYPES = {"passage": "search_document", "query": "search_query"}


@dataclass(frozen=True, slots=True)
class CohereWire:
    model: str
    path: str = "/embed"
    most_texts: int = 96

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, texts: Sequence[str], role: TextRole) -> object:
        return {
            "model": self.model,
            "texts": list(texts),
            "input_type": _INPUT_TYPES[role],
            "embedding_types": ["float"],
            "truncate": "NONE",  # text that is too long fails, and is then split into windows
        }

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        rows: Sequence[Sequence[float]] = reply["embeddings"]["float"]
        return rows


def cohere_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    known = known_model(account.model, EMBEDDERS)
    wire = CohereWire(account.model.partition("@")[0])
    return HostedEmbedder(account, settings, known=known, wire=wire, web=web)
