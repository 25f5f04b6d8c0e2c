"""Embedding APIs of the hosted services: how a batch is requested and parsed, and their models.

One row of ``APIS`` is all that a further service needs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bythebook.errors import UnknownProvider

if TYPE_CHECKING:
    from bythebook.interfaces.models import TextRole


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Dimension, token limit and prefixes of a model, as documented by its provider."""

    dimension: int
    limit: int  # tokens per text
    prefixes: Mapping[TextRole, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmbeddingApi:
    """Request and response format of one provider, and its models."""

    models: Mapping[str, ModelSpec]
    path: str  # may contain {model}
    most_texts: int  # per request
    body: Callable[[str, ModelSpec, Sequence[str], TextRole], object]
    # Returns vectors in the order of the texts; may raise anything on a malformed reply.
    vectors: Callable[[Any], Sequence[Sequence[float]]]
    key_header: tuple[str, str] = ("Authorization", "Bearer {key}")
    unknown: ModelSpec | None = None  # for other models, whose dimension must be given

    def spec(self, model: str) -> ModelSpec:
        """Look up a model. ``model@512`` sets the dimension, to shorten vectors or if unknown."""
        name, _, dimension = model.partition("@")
        known = self.models.get(name) or self.models.get(name.partition(":")[0]) or self.unknown
        if dimension.isdecimal() and known is not None:
            return replace(known, dimension=int(dimension))
        if dimension or known is None or not known.dimension:
            raise UnknownProvider(
                f"The dimension of {name!r} is not known.",
                hint=f'Write it after the model, as in "{name}@768", or use one of '
                f"{', '.join(self.models)}.",
            )
        return known


# --- OpenAI, and what is compatible with it -------------------------------------------------------

_OPENAI_MODELS = {
    "text-embedding-3-small": ModelSpec(1536, 8191),
    "text-embedding-3-large": ModelSpec(3072, 8191),
}
_SEARCH = "Represent this sentence for searching relevant passages: "
# Ollama truncates long input silently: these are the limits of the models.
_OLLAMA_MODELS = {
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


def _openai_body(model: str, known: ModelSpec, texts: Sequence[str], _: TextRole) -> object:
    body = {"model": model, "input": list(texts), "encoding_format": "float"}
    full = _OPENAI_MODELS.get(model, known)
    shorter = {"dimensions": known.dimension} if known.dimension != full.dimension else {}
    return body | shorter


def _openai_vectors(reply: Any) -> Sequence[Sequence[float]]:
    rows = {row["index"]: row["embedding"] for row in reply["data"]}
    if len(rows) != len(reply["data"]) or any(type(index) is not int for index in rows):
        raise ValueError("the indexes are no order of the texts")
    return [rows[index] for index in range(len(rows))]


# --- Cohere and Gemini ----------------------------------------------------------------------------

_COHERE_MODELS = {
    "embed-english-v3.0": ModelSpec(1024, 512),
    "embed-multilingual-v3.0": ModelSpec(1024, 512),
    "embed-english-light-v3.0": ModelSpec(384, 512),
    "embed-multilingual-light-v3.0": ModelSpec(384, 512),
}


def _cohere_body(model: str, _: ModelSpec, texts: Sequence[str], role: TextRole) -> object:
    return {
        "model": model,
        "texts": list(texts),
        "input_type": {"passage": "search_document", "query": "search_query"}[role],
        "embedding_types": ["float"],
        "truncate": "NONE",  # text that is too long fails, and is then split into windows
    }


def _gemini_body(model: str, known: ModelSpec, texts: Sequence[str], role: TextRole) -> object:
    request = {
        "model": f"models/{model}",
        "taskType": {"passage": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}[role],
        "outputDimensionality": known.dimension,
    }
    return {"requests": [request | {"content": {"parts": [{"text": text}]}} for text in texts]}


_OPENAI = EmbeddingApi(
    models=_OPENAI_MODELS,
    path="/embeddings",
    most_texts=128,
    body=_openai_body,
    vectors=_openai_vectors,
    unknown=ModelSpec(0, 512),
)
APIS: Mapping[str, EmbeddingApi] = {
    "openai": _OPENAI,
    "ollama": replace(_OPENAI, models=_OLLAMA_MODELS),
    "cohere": EmbeddingApi(
        models=_COHERE_MODELS,
        path="/embed",
        most_texts=96,
        body=_cohere_body,
        vectors=lambda reply: reply["embeddings"]["float"],
    ),
    "gemini": EmbeddingApi(
        models={"gemini-embedding-001": ModelSpec(768, 2048)},
        path="/models/{model}:batchEmbedContents",
        most_texts=100,
        body=_gemini_body,
        vectors=lambda reply: [row["values"] for row in reply["embeddings"]],
        key_header=("x-goog-api-key", "{key}"),
    ),
}
