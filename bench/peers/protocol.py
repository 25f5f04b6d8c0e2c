"""What a measured system can do, and how the runner asks it: JSON lines over standard input.

An adapter module imports its library at the top, loads no model, and ends with ``serve(…)``.
It runs in its own environment, so this file needs nothing beyond Python itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

DENSE = "dense"
HYBRID = "hybrid"
LEXICAL = "lexical"

MODEL_LIMIT = 256  # word pieces that all-MiniLM-L6-v2 reads of a text
WARM_UP = 5  # questions asked before the clock counts
THREADS = 2  # for everyone


@dataclass(frozen=True)
class Chunk:
    file: str  # relative to the docs folder
    text: str


@dataclass(frozen=True)
class Found(Chunk):
    score: float | None  # None where the retriever hides it


@dataclass
class Meter:
    """What went through the embedding model during an ingest, and how long it took."""

    texts: list[str] = field(default_factory=list)
    seconds: float = 0.0
    _inside: int = 0
    _began: float = 0.0

    @contextmanager
    def embedding(self, texts: Sequence[str]) -> Iterator[None]:
        """Time that several calls spend at once is counted once."""
        self.texts.extend(texts)
        if self._inside == 0:
            self._began = time.perf_counter()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                self.seconds += time.perf_counter() - self._began


class System(Protocol):
    """Each method does what the system's documentation says to do for it."""

    variants: Sequence[str]  # ways of searching the same index

    def ingest(self, docs: Path, home: Path, meter: Meter) -> None:
        """Index every Markdown file below ``docs`` and keep the index in ``home``, open.

        A second call on the same home is what an author does after every edit.
        """
        ...

    def open(self, home: Path) -> None: ...

    def chunks(self) -> Iterable[Chunk]: ...

    def search(self, question: str, k: int, variant: str) -> list[Found]: ...

    def fill(self, chunks: Sequence[Chunk], vectors: Path, home: Path) -> None:
        """Index chunks whose vectors (float32, one row each) were made before."""
        ...


def serve(make: Callable[[], System]) -> None:
    """Answer requests until standard input ends."""
    out = _claim_stdout()
    system = make()
    _say(out, {"variants": list(system.variants)})
    for line in sys.stdin:
        request = json.loads(line)
        _say(out, _HANDLERS[request.pop("do")](system, **request))


def _ingest(system: System, *, docs: str, home: str) -> dict[str, Any]:
    meter = Meter()
    began = time.perf_counter()
    system.ingest(Path(docs), Path(home), meter)
    seconds = time.perf_counter() - began
    peak = peak_memory_mb()  # before the word pieces are counted
    return {
        "seconds": seconds,
        "embedding_seconds": meter.seconds,
        "texts": len(meter.texts),
        "peak_mb": peak,
        **_count_pieces(meter.texts),
    }


def _open(system: System, *, home: str) -> dict[str, Any]:
    system.open(Path(home))
    return {}


def _ask(system: System, *, questions: list[str], k: int, variant: str) -> dict[str, Any]:
    answers, milliseconds = [], []
    for question in questions:
        began = time.perf_counter()
        found = system.search(question, k, variant)
        milliseconds.append((time.perf_counter() - began) * 1000)
        answers.append([asdict(hit) for hit in found])
    return {"answers": answers, "ms": milliseconds, "peak_mb": peak_memory_mb()}


def _chunks(system: System) -> dict[str, Any]:
    return {"chunks": [asdict(chunk) for chunk in system.chunks()]}


def _fill(system: System, *, chunks: str, vectors: str, home: str) -> dict[str, Any]:
    lines = Path(chunks).read_text("utf-8").splitlines()
    rows = [Chunk(**json.loads(line)) for line in lines]
    began = time.perf_counter()
    system.fill(rows, Path(vectors), Path(home))
    return {"seconds": time.perf_counter() - began, "chunks": len(rows)}


def _embed(system: Any, *, texts: list[str]) -> dict[str, Any]:
    """Only the system that makes the large book's vectors is asked this."""
    return {"vectors": system.embed(texts)}


_HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "ingest": _ingest,
    "open": _open,
    "ask": _ask,
    "chunks": _chunks,
    "fill": _fill,
    "embed": _embed,
}


def markdown_files(docs: Path) -> list[Path]:
    return sorted(path for path in docs.rglob("*") if path.suffix in {".md", ".mdx"})


def model_folder() -> str:
    """all-MiniLM-L6-v2 as sentence-transformers lays it out."""
    return os.environ["PEERS_MODEL"]


def peak_memory_mb() -> float:
    """The most this process ever held; the parent's memory is not in it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell the peak memory of a process")


def _count_pieces(texts: Sequence[str]) -> dict[str, int]:
    """Word pieces by the model's own tokenizer; those past its limit are not read by everyone."""
    if not texts:
        return {"pieces": 0, "pieces_within_limit": 0, "texts_over_limit": 0}
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(model_folder()) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]
    return {
        "pieces": sum(lengths),
        "pieces_within_limit": sum(min(length, MODEL_LIMIT) for length in lengths),
        "texts_over_limit": sum(length > MODEL_LIMIT for length in lengths),
    }


def _claim_stdout() -> TextIO:
    """Whatever a library prints goes to standard error; the answers have the pipe to themselves."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return pipe


def _say(out: TextIO, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()
