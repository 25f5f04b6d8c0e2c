"""Gemini embedding API, with one POST request per batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.errors import UnknownProvider
from bythebook.providers.embeddings.hosted import HostedEmbedder, ModelSpec, known_model

if TYPE_CHECKING:
    from bythebook.config.sections import Embedding
    from bythebook.interfaces.embedding import TextRole
    from bythebook.providers.http.client import HttpClient
    from bythebook.providers.http.credentials import Account

EMBEDDERS = {"gemini-embedding-001": ModelSpec(768, 2048)}
_SHUT_DOWN = ("text-embedding-004", "embedding-001")
_TASKS = {"passage": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


@dataclass(frozen=True, slots=True)
class GeminiWire:
    model: str
    dimension: int
    most_texts: int = 100

    @property
    def path(self) -> str:
        return f"/models/{self.model}:batchEmbedContents"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def body(self, texts: Sequence[str], role: TextRole) -> object:
        asked = {
            "model": f"models/{self.model}",
            "taskType": _TASKS[role],
            "outputDimensionality": self.dimension,
        }
        return {"requests": [asked | {"content": {"parts": [{"text": text}]}} for text in texts]}

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        return [row["values"] for row in reply["embeddings"]]


def gemini_embedder(account: Account, settings: Embedding, *, web: HttpClient) -> HostedEmbedder:
    model = account.model.partition("@")[0]
    if model in _SHUT_DOWN:
        raise UnknownProvider(
            f"gemini:{model} has been shut down by its provider.",
            hint='Use "gemini:gemini-embedding-001" and ingest the book again.',
        )
    known = known_model(account.model, EMBEDDERS)
    wire = GeminiWire(model, known.dimension)
    return HostedEmbedder(account, settings, known=known, wire=wire, web=web)
