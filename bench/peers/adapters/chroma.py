"""Chroma: a persistent collection with its own ONNX embedding function of the same weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

from peers.protocol import DENSE, Chunk, Found, Meter, markdown_files, serve

CHUNK_PIECES = 250  # fits the model's window; no overlap, as Chroma's study of chunking found best
BATCH = 500
DIMENSION = 384


class MeteredFunction(ONNXMiniLM_L6_V2):
    """The default function makes a new one of these for every call; one that is kept is faster."""

    meter: Meter | None = None

    def __call__(self, input: list[str]) -> Any:
        if self.meter is None:
            return super().__call__(input)
        with self.meter.embedding(input):
            return super().__call__(input)


class Chroma:
    variants = (DENSE,)

    @cached_property
    def _function(self) -> MeteredFunction:
        return MeteredFunction()

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        self.open(home)
        self._function.meter = meter
        chunks = {_id(chunk): chunk for chunk in self._split(docs)}  # an id may come once only
        for batch in _batches(list(chunks.items())):
            self._collection.upsert(
                ids=[name for name, _ in batch],
                documents=[chunk.text for _, chunk in batch],
                metadatas=[{"file": chunk.file} for _, chunk in batch],
            )
        self._function.meter = None

    def open(self, home: Path) -> None:
        client = chromadb.PersistentClient(path=str(home))
        self._collection = client.get_or_create_collection(
            "book",
            embedding_function=self._function,
            configuration={"hnsw": {"space": "cosine"}},
        )

    def chunks(self) -> list[Chunk]:
        rows = self._collection.get()
        return [
            Chunk(str(meta["file"]), text)
            for text, meta in zip(rows["documents"], rows["metadatas"], strict=True)
        ]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        rows = self._collection.query(query_texts=[question], n_results=k)
        hits = zip(rows["documents"][0], rows["metadatas"][0], rows["distances"][0], strict=True)
        return [Found(str(meta["file"]), text, 1 - distance) for text, meta, distance in hits]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        rows = np.fromfile(vectors, dtype=np.float32).reshape(-1, DIMENSION)
        self.open(home)
        for batch in _batches(list(enumerate(chunks))):
            numbers = [number for number, _ in batch]
            self._collection.add(
                ids=[str(number) for number in numbers],
                embeddings=rows[numbers],
                documents=[chunk.text for _, chunk in batch],
                metadatas=[{"file": chunk.file} for _, chunk in batch],
            )

    def _split(self, docs: Path) -> Iterator[Chunk]:
        tokenizer = type(self._function.tokenizer).from_str(self._function.tokenizer.to_str())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        splitter = RecursiveCharacterTextSplitter.from_language(
            Language.MARKDOWN,
            chunk_size=CHUNK_PIECES,
            chunk_overlap=0,
            length_function=lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids),
        )
        for path in markdown_files(docs):
            for text in splitter.split_text(path.read_text("utf-8")):
                yield Chunk(path.relative_to(docs).as_posix(), text)


def _id(chunk: Chunk) -> str:
    return hashlib.sha256(f"{chunk.file}\n{chunk.text}".encode()).hexdigest()


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


if __name__ == "__main__":
    serve(Chroma)
