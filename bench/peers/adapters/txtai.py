"""txtai: recursive chunker with Markdown's own breaks, one hybrid index, dense by weight."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from chonkie import RecursiveLevel, RecursiveRules
from tokenizers import Tokenizer
from txtai import Embeddings
from txtai.pipeline import Segmentation

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

CHUNK_PIECES = 250
DIMENSION = 384
HEADINGS = [f"\n{'#' * level} " for level in range(1, 7)]
RULES = RecursiveRules(
    levels=[
        RecursiveLevel(delimiters=HEADINGS, include_delim="next"),
        RecursiveLevel(delimiters=["\n\n"]),
        RecursiveLevel(delimiters=["\n"]),
        RecursiveLevel(delimiters=[". ", "! ", "? "]),
        RecursiveLevel(whitespace=True),
        RecursiveLevel(),
    ]
)


class Txtai:
    variants = (DENSE, HYBRID)

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        if home.is_dir():
            self.open(home)
        else:
            self._embeddings = self._empty()
        encode = self._embeddings.model.encode

        def metered(texts: Any, category: Any = None) -> Any:
            with meter.embedding(texts):
                return encode(texts, category)

        self._embeddings.model.encode = metered
        chunks = {
            _id(chunk): chunk.text
            for path in markdown_files(docs)
            for chunk in self._split(path, docs)
        }
        self._embeddings.upsert([(uid, text, None) for uid, text in chunks.items()])
        self._embeddings.model.encode = encode
        self._embeddings.save(str(home))

    def open(self, home: Path) -> None:
        self._embeddings = Embeddings()
        self._embeddings.load(str(home))

    def chunks(self) -> list[Chunk]:
        count = self._embeddings.count()
        rows = self._embeddings.search(f"select id, text from txtai limit {count}")
        return [Chunk(_file(row["id"]), row["text"]) for row in rows]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        weights = 1.0 if variant == DENSE else 0.5
        rows = self._embeddings.search(question, k, weights=weights)
        return [Found(_file(row["id"]), row["text"], float(row["score"])) for row in rows]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        rows = np.fromfile(vectors, dtype=np.float32).reshape(-1, DIMENSION)
        self._embeddings = self._empty()
        encode = self._embeddings.model.encode
        made = iter(rows)
        self._embeddings.model.encode = lambda texts, category=None: np.stack(
            [next(made) for _ in texts]
        )
        numbered = enumerate(chunks)
        self._embeddings.index([(f"{c.file}#{n}", c.text, None) for n, c in numbered])
        self._embeddings.model.encode = encode

    def _empty(self) -> Embeddings:
        return Embeddings(
            path=model_folder(), maxlength=MODEL_LIMIT, content=True, hybrid=True, gpu=False
        )

    @cached_property
    def _segment(self) -> Segmentation:
        tokenizer = Tokenizer.from_file(str(Path(model_folder()) / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return Segmentation(
            chunker="recursive",
            tokenizer=tokenizer,
            chunk_size=CHUNK_PIECES,
            rules=RULES,
            cleantext=False,
        )

    def _split(self, path: Path, docs: Path) -> Iterator[Chunk]:
        name = path.relative_to(docs).as_posix()
        for text in self._segment(path.read_text("utf-8")):
            yield Chunk(name, text)


def _id(chunk: Chunk) -> str:
    return f"{chunk.file}#{hashlib.sha256(chunk.text.encode()).hexdigest()}"


def _file(uid: str) -> str:
    return uid.rpartition("#")[0]


if __name__ == "__main__":
    serve(Txtai)
