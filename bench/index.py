"""Measure the index in files: publishing, opening and searching books of several sizes.

    python bench/index.py

Passages have random vectors of 384 dimensions, eight units each, and a hundred terms drawn by
Zipf's law. Each step runs in a process of its own, so that its memory can be measured. The figures
go to the section *Scale* of ``bench/RESULTS.md``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np

from bythebook.interfaces.store import IndexedPassage
from bythebook.providers.flat_index import FlatGenerationStore, FlatStore
from bythebook.types import Metadata, Passage, Place, Unit

SIZES = (1_000, 10_000, 50_000)
DIMENSION, UNITS, TERMS, WORDS = 384, 8, 100, 20_000
QUESTIONS, LIMIT = 200, 24
RESULTS = Path(__file__).with_name("RESULTS.md")
SENTENCE = "A sentence about something in the book that is long enough to be real. "
ROWS = {
    "publish_s": "publishing, s",
    "disk_mb": "disk, MB",
    "open_ms": "opening, ms",
    "search_ms": "search, median ms",
    "broad_ms": "… with a filter that matches everything",
    "narrow_ms": "… with a filter that matches a tenth",
    "keyword_ms": "… by keywords alone",
    "fetch_ms": "fetching eight passages, median ms",
    "own_mb": "memory of its own after these searches, MB",
    "mapped_mb": "… mapped from the files, shared by all processes, MB",
}


def entries(size: int) -> Iterator[IndexedPassage]:
    rng = np.random.default_rng(1)
    frequency = 1 / np.arange(1, WORDS + 1)
    frequency /= frequency.sum()
    units = tuple(Unit(n * len(SENTENCE), (n + 1) * len(SENTENCE) - 1) for n in range(UNITS))
    for number in range(size):
        vectors = _random_vectors(rng, UNITS + 1)
        terms = np.unique(rng.choice(WORDS, TERMS, p=frequency)).tolist()
        weights = (2 * rng.random(len(terms))).tolist()
        content = hashlib.sha256(str(number).encode()).hexdigest()
        passage = Passage(
            id=content,
            text=SENTENCE * UNITS,
            place=Place(f"{number % 40}.md", "Title", f"/{number % 40}", "", "Chapter", ()),
            position=number,
            content_hash=content,
            metadata=Metadata(week=number % 10),
            units=units,
        )
        yield IndexedPassage(
            passage, vectors[0], vectors[1:], dict(zip(terms, weights, strict=True))
        )


def _random_vectors(rng: np.random.Generator, count: int) -> np.ndarray:
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


async def publish(size: int, folder: Path) -> dict[str, float]:
    listed = list(entries(size))
    began = time.perf_counter()
    await FlatGenerationStore(folder, dimension=DIMENSION).publish("one", listed)
    seconds = time.perf_counter() - began
    files = (folder / "one").iterdir()
    return {
        "publish_s": seconds,
        "disk_mb": sum(file.stat().st_blocks * 512 for file in files) / 1e6,
    }


async def search(size: int, folder: Path) -> dict[str, float]:
    before = _memory_mb("RssAnon")
    began = time.perf_counter()
    store = await FlatGenerationStore(folder, dimension=DIMENSION).open("one")
    figures = {"open_ms": 1000 * (time.perf_counter() - began)}
    rng = np.random.default_rng(2)
    questions = [
        (vector, dict.fromkeys(rng.choice(2_000, 6).tolist(), 2.0))
        for vector in _random_vectors(rng, QUESTIONS)
    ]
    for name, filters in (("search", {}), ("broad", {"language": "en"}), ("narrow", {"week": 3})):
        figures[f"{name}_ms"] = await _median_ms(
            lambda n, f=filters: store.find(*questions[n], limit=LIMIT, filters=f)
        )
    figures["keyword_ms"] = await _median_ms(
        lambda n: store.find(None, questions[n][1], limit=LIMIT, filters={})
    )
    ids = [one.passage_id for one in await store.find(*questions[0], limit=LIMIT, filters={})]
    figures["fetch_ms"] = await _median_ms(lambda n: _fetch(store, ids[:8]))
    figures["own_mb"] = _memory_mb("RssAnon") - before
    figures["mapped_mb"] = _memory_mb("RssFile")
    return figures


async def _fetch(store: FlatStore, ids: list[str]) -> object:
    return await store.fetch(ids)


async def _median_ms(work: Callable[[int], Awaitable[object]]) -> float:
    times = []
    for number in range(QUESTIONS):
        began = time.perf_counter()
        await work(number)
        times.append(1000 * (time.perf_counter() - began))
    return float(np.median(times))


def _memory_mb(field: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def main() -> None:
    columns = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            figures: dict[str, float] = {}
            for step in ("publish", "search"):
                command = [sys.executable, __file__, step, str(size), folder]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                figures.update(json.loads(done.stdout))
            columns.append(figures)
    lines = [
        "| passages | " + " | ".join(f"{size:,}" for size in SIZES) + " |",
        "|---" * (len(SIZES) + 1) + "|",
        *(
            f"| {text} | " + " | ".join(f"{column[name]:.3g}" for column in columns) + " |"
            for name, text in ROWS.items()
        ),
    ]
    table = re.compile(r"(?<=python bench/index\.py\n```\n\n)(\|.*\n)*\n?")
    RESULTS.write_text(table.sub("\n".join(lines) + "\n\n", RESULTS.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        step = {"publish": publish, "search": search}[sys.argv[1]]
        print(json.dumps(asyncio.run(step(int(sys.argv[2]), Path(sys.argv[3])))))
    else:
        main()
