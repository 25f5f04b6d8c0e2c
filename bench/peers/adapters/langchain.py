"""LangChain: header and recursive splitters, FAISS, the indexing API; an ensemble with BM25."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from langchain_classic.indexes import SQLRecordManager, index
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.faiss import dependable_faiss_import
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.documents import Document
from langchain_huggingface import HuggingFaceEmbeddings
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

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

HEADERS = [("#" * level, f"Header {level}") for level in range(1, 5)]
CHUNK_CHARACTERS, OVERLAP = 1000, 200  # of the tutorial on retrieval
DIMENSION = 384
CANDIDATES = 10  # of each retriever in the ensemble


class MeteredEmbeddings(HuggingFaceEmbeddings):
    meter: Meter | None = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.meter is None:
            return super().embed_documents(texts)
        with self.meter.embedding(texts):
            return super().embed_documents(texts)


class LangChain:
    variants = (DENSE, HYBRID)

    @cached_property
    def _embeddings(self) -> MeteredEmbeddings:
        return MeteredEmbeddings(
            model_name=model_folder(),
            model_kwargs={"device": "cpu"},
            encode_kwargs={"normalize_embeddings": True},
        )

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        self._embeddings.meter = meter
        if (home / "index.faiss").is_file():
            self.open(home)
        else:
            home.mkdir(parents=True)
            self._store = self._empty()
        records = SQLRecordManager("faiss/book", db_url=f"sqlite:///{home / 'records.sqlite'}")
        records.create_schema()
        index(
            list(_split(docs)),
            records,
            self._store,
            cleanup="full",
            source_id_key="source",
            key_encoder="sha256",
        )
        self._store.save_local(str(home))

    def open(self, home: Path) -> None:
        self._store = FAISS.load_local(
            str(home),
            self._embeddings,
            allow_dangerous_deserialization=True,
            distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
        )

    def chunks(self) -> list[Chunk]:
        return [Chunk(each.metadata["source"], each.page_content) for each in self._documents()]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        if variant == HYBRID:
            hits = self._ensemble.invoke(question)[:k]
            return [Found(hit.metadata["source"], hit.page_content, None) for hit in hits]
        scored = self._store.similarity_search_with_score(question, k=k)
        return [
            Found(hit.metadata["source"], hit.page_content, float(score)) for hit, score in scored
        ]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        rows = np.fromfile(vectors, dtype=np.float32).reshape(-1, DIMENSION)
        self._store = self._empty()
        self._store.add_embeddings(
            zip((chunk.text for chunk in chunks), rows.tolist(), strict=True),
            metadatas=[{"source": chunk.file} for chunk in chunks],
        )

    def _empty(self) -> FAISS:
        return FAISS(
            embedding_function=self._embeddings,
            index=dependable_faiss_import().IndexFlatIP(DIMENSION),
            docstore=InMemoryDocstore(),
            index_to_docstore_id={},
            distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
        )

    @cached_property
    def _ensemble(self) -> EnsembleRetriever:
        by_word = BM25Retriever.from_documents(self._documents(), preprocess_func=_words)
        by_word.k = CANDIDATES
        by_meaning = self._store.as_retriever(search_kwargs={"k": CANDIDATES})
        return EnsembleRetriever(retrievers=[by_word, by_meaning], weights=[0.5, 0.5])

    def _documents(self) -> list[Document]:
        return self._store.get_by_ids(list(self._store.index_to_docstore_id.values()))


def _split(docs: Path) -> Iterator[Document]:
    by_header = MarkdownHeaderTextSplitter(HEADERS, strip_headers=False)
    by_size = RecursiveCharacterTextSplitter(
        chunk_size=CHUNK_CHARACTERS, chunk_overlap=OVERLAP, add_start_index=True
    )
    for path in markdown_files(docs):
        sections = by_header.split_text(path.read_text("utf-8"))
        for section in sections:
            section.metadata["source"] = path.relative_to(docs).as_posix()
        yield from by_size.split_documents(sections)


def _words(text: str) -> list[str]:
    # The default splits at blanks only, so "Rollo?" and "rollo" would be strangers.
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    serve(LangChain)
