"""LlamaIndex: Markdown and sentence parsers, its own vector index; query fusion with BM25."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer
from llama_index.core import (
    Document,
    Settings,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever
from tokenizers import Tokenizer

from peers.protocol import (
    DENSE,
    HYBRID,
    MODEL_LIMIT,
    Chunk,
    Found,
    Meter,
    markdown_files,
    model_folder,
    serve,
)

OVERLAP = 20
BATCH = 32
DIMENSION = 384
CANDIDATES = 10  # of each retriever in the fusion


class MeteredEmbedding(HuggingFaceEmbedding):
    _meter: Meter | None = None

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if self._meter is None:
            return super()._get_text_embeddings(texts)
        with self._meter.embedding(texts):
            return super()._get_text_embeddings(texts)


class LlamaIndex:
    variants = (DENSE, HYBRID)

    @cached_property
    def _embedding(self) -> MeteredEmbedding:
        return MeteredEmbedding(model_name=model_folder(), device="cpu", embed_batch_size=BATCH)

    @cached_property
    def _transformations(self) -> list[Any]:
        # Chunks are measured in the embedding model's own word pieces, to fit into its window.
        tokenizer = Tokenizer.from_file(str(Path(model_folder()) / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        Settings.tokenizer = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        splitter = SentenceSplitter(
            chunk_size=MODEL_LIMIT, chunk_overlap=OVERLAP, tokenizer=Settings.tokenizer
        )
        return [MarkdownNodeParser(), splitter]

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        self._embedding._meter = meter
        documents = [_document(path, docs) for path in markdown_files(docs)]
        if home.is_dir():
            self.open(home)
            self._index.refresh_ref_docs(documents)
        else:
            self._index = VectorStoreIndex.from_documents(
                documents, embed_model=self._embedding, transformations=self._transformations
            )
        self._index.storage_context.persist(persist_dir=str(home))

    def open(self, home: Path) -> None:
        storage = StorageContext.from_defaults(persist_dir=str(home))
        self._index = load_index_from_storage(
            storage, embed_model=self._embedding, transformations=self._transformations
        )

    def chunks(self) -> list[Chunk]:
        return [Chunk(node.metadata["file"], node.get_content()) for node in self._nodes()]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        retriever = self._fusion if variant == HYBRID else self._retriever(k)
        return [
            Found(hit.metadata["file"], hit.get_content(), hit.score)
            for hit in retriever.retrieve(question)[:k]
        ]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        rows = np.fromfile(vectors, dtype=np.float32).reshape(-1, DIMENSION).tolist()
        nodes = [
            TextNode(text=chunk.text, metadata={"file": chunk.file}, embedding=row)
            for chunk, row in zip(chunks, rows, strict=True)
        ]
        self._index = VectorStoreIndex(nodes, embed_model=self._embedding)

    def _retriever(self, k: int) -> Any:
        return self._index.as_retriever(similarity_top_k=k)

    @cached_property
    def _fusion(self) -> QueryFusionRetriever:
        by_word = BM25Retriever.from_defaults(
            nodes=self._nodes(),
            similarity_top_k=CANDIDATES,
            stemmer=Stemmer.Stemmer("english"),
            language="english",
        )
        return QueryFusionRetriever(
            [self._retriever(CANDIDATES), by_word],
            llm=MockLLM(),  # never asked: one query is the question itself
            num_queries=1,
            similarity_top_k=CANDIDATES,
            mode="reciprocal_rerank",
            use_async=False,
        )

    def _nodes(self) -> list[Any]:
        return list(self._index.docstore.docs.values())


def _document(path: Path, docs: Path) -> Document:
    name = path.relative_to(docs).as_posix()
    return Document(text=path.read_text("utf-8"), doc_id=name, metadata={"file": name})


if __name__ == "__main__":
    serve(LlamaIndex)
