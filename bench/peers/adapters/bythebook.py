"""By the Book: its command line ingests, its Python door searches."""

from __future__ import annotations

import asyncio
import re
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bythebook.book import Book
from bythebook.cli.main import app
from bythebook.config.settings import load_settings
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.registry import EMBEDDERS
from bythebook.types import Question
from bythebook.wiring import open_catalog
from peers.protocol import HYBRID, Chunk, Found, Meter, serve
from peers.rules import NOISE, NOTE


class MeteredEmbedder(LocalEmbedder):
    """The local model, with a stopwatch. Loading it is not embedding, here as with the peers."""

    meter: Meter | None = None

    async def embed(self, texts: Sequence[str], *, role: Any) -> Any:
        if role == "query" or self.meter is None:
            return await super().embed(texts, role=role)
        if not self.meter.texts:
            await super().embed(["Load."], role=role)
        with self.meter.embedding(texts):
            return await super().embed(texts, role=role)


class CopyingEmbedder(LocalEmbedder):
    """Copies of a text get its vector, moved a little: a large book in the time of a small one."""

    known: dict[str, Any] = {}  # noqa: RUF012 - one process, one book

    async def embed(self, texts: Sequence[str], *, role: Any) -> Any:
        if role == "query":
            return await super().embed(texts, role=role)
        plain = [re.sub(NOTE, "", text).strip() or "Note." for text in texts]
        new = [text for text in dict.fromkeys(plain) if text not in self.known]
        if new:
            vectors = await super().embed(new, role=role)
            self.known.update(zip(new, vectors, strict=True))
        rows = np.stack([self.known[text] for text in plain])
        dice = np.random.default_rng(zlib.crc32("".join(texts).encode()))
        rows = rows + dice.normal(size=rows.shape) * NOISE / np.sqrt(rows.shape[1])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class ByTheBook:
    variants = (HYBRID,)

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._embed_with(MeteredEmbedder)

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        MeteredEmbedder.meter = meter
        code = app(["ingest", str(docs), "--home", str(home), "--json"], standalone_mode=False)
        if code:
            raise RuntimeError(f"the ingest ended with code {code}")
        MeteredEmbedder.meter = None
        self.open(home)

    def open(self, home: Path) -> None:
        self._settings = load_settings({"home": home})
        self._library = Book(self._settings)

    def chunks(self) -> list[Chunk]:
        passages = open_catalog(self._settings).passages().values()
        return [Chunk(passage.place.file, passage.text) for passage in passages]

    def search(self, question: str, k: int, variant: str) -> list[Found]:
        findings = self._loop.run_until_complete(self._library.search(Question(question, top_k=k)))
        return [Found(hit.passage.place.file, hit.passage.text, hit.score) for hit in findings.hits]

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        """The given vectors are of passages; this system wants one of each sentence as well."""
        docs = home.with_name(f"{home.name}-docs")
        shutil.rmtree(docs, ignore_errors=True)
        pages: dict[str, list[str]] = {}
        for chunk in chunks:
            pages.setdefault(chunk.file, []).append(chunk.text)
        for file, texts in pages.items():
            path = docs / file
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = [f"## Part {number}\n\n{text}\n" for number, text in enumerate(texts, 1)]
            path.write_text(f"# {path.stem}\n\n" + "\n".join(parts), "utf-8")
        self._embed_with(CopyingEmbedder)
        self.ingest(docs, home, Meter())

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Vectors for the peers' large books."""
        embedder = LocalEmbedder("minilm")
        vectors = self._loop.run_until_complete(embedder.embed(texts, role="passage"))
        return [[float(value) for value in row] for row in vectors]

    def _embed_with(self, embedder: type[LocalEmbedder]) -> None:
        row = EMBEDDERS["local"]
        EMBEDDERS["local"] = replace(row, module=__name__, name=embedder.__name__)


if __name__ == "__main__":
    serve(ByTheBook)
