"""Haystack: header splitter, in-memory document store; BM25 joined by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from haystack import Document
from haystack.components.caching import CacheChecker
from haystack.components.converters import TextFileToDocument
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import MarkdownHeaderSplitter
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import ComponentDevice
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)

from peers.protocol import (
    DENSE,
    HYBRID,
    Chunk,
    Found,
    Meter,
    markdown_files,
    model_folder,
    serve,
)

CHUNK_WORDS = 150  # of prose, this fits the model's window
DIMENSION = 384


class Haystack:
    variants = (DENSE, HYBRID)

    def __init__(self) -> None:
        self._docs = Path()

    @cached_property
    def _question_embedder(self) -> SentenceTransformersTextEmbedder:
        embedder = SentenceTransformersTextEmbedder(
            model=model_folder(),
            device=ComponentDevice.from_str("cpu"),
            normalize_embeddings=True,
            progress_bar=False,
        )
        embedder.warm_up()
        return embedder

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        """Files that the store already has are left alone; the checker goes by their path."""
        if home.is_dir():
            self.open(home)
        else:
            home.mkdir(parents=True)
            self._store = _empty()
        paths = [str(path) for path in markdown_files(docs)]
        missing = CacheChecker(self._store, cache_field="meta.file_path").run(items=paths)["misses"]
        if missing:
            self._add(missing, docs, meter)
        self._store.save_to_disk(str(home / "store.json"))

    def _add(self, paths: list[str], docs: Path, meter: Meter) -> None:
        pages = TextFileToDocument(store_full_path=True).run(sources=paths)["documents"]
        for page in pages:
            page.meta["file"] = Path(page.meta["file_path"]).relative_to(docs).as_posix()
        splitter = MarkdownHeaderSplitter(secondary_split="word", split_length=CHUNK_WORDS)
        splitter.warm_up()
        chunks = splitter.run(documents=pages)["documents"]
        embedder = SentenceTransformersDocumentEmbedder(
            model=model_folder(),
            device=ComponentDevice.from_str("cpu"),
            normalize_embeddings=True,
            progress_bar=False,
        )
        embedder.warm_up()
        with meter.embedding([chunk.content for chunk in chunks]):
            embedded = embedder.run(documents=chunks)["documents"]
        DocumentWriter(self._store, policy=DuplicatePolicy.OVERWRITE).run(documents=embedded)

    def open(self, home: Path) -> None:
        self._store = InMemoryDocumentStore.load_from_disk(str(home / "store.json"))

    def chunks(self) -> list[Chunk]:
        documents = self._store.filter_documents()
        return [Chunk(document.meta["file"], document.content) for document in documents]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        vector = self._question_embedder.run(text=question)["embedding"]
        retriever = InMemoryEmbeddingRetriever(self._store, top_k=k)
        hits = retriever.run(query_embedding=vector)["documents"]
        if variant == HYBRID:
            by_word = InMemoryBM25Retriever(self._store, top_k=k).run(query=question)["documents"]
            joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=k)
            hits = joiner.run(documents=[by_word, hits])["documents"]
        return [Found(hit.meta["file"], hit.content, hit.score) for hit in hits]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        rows = np.fromfile(vectors, dtype=np.float32).reshape(-1, DIMENSION).tolist()
        self._store = _empty()
        self._store.write_documents(
            [
                Document(content=chunk.text, meta={"file": chunk.file}, embedding=row)
                for chunk, row in zip(chunks, rows, strict=True)
            ]
        )


def _empty() -> InMemoryDocumentStore:
    return InMemoryDocumentStore(embedding_similarity_function="cosine", return_embedding=False)


if __name__ == "__main__":
    serve(Haystack)
