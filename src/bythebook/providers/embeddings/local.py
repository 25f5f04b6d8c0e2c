"""Local embedder on ONNX Runtime.

Texts are split into windows of word pieces, windows of equal length are batched, and batches run
in parallel, one core each: nothing is padded and no core waits for another.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import EmbedderFailed, UnknownProvider
from bythebook.language.text import well_formed
from bythebook.providers.embeddings import e5
from bythebook.providers.embeddings.onnx_files import (
    Embed,
    Tokenize,
    open_session,
    read_known,
    tokenize_with,
    word_pieces,
)

if TYPE_CHECKING:
    from bythebook.interfaces.models import TextRole
    from bythebook.types import Vectors

_log = logging.getLogger(__name__)

_PRECISION = "-int8"  # part of the stored name: vectors of different precision must not be mixed
_BATCH_TOKENS = 256  # word pieces per model run; more do not fit the CPU cache
_STRIDE = 0.8  # of a window: neighbours overlap by a fifth
_OPENING = threading.Lock()

ENGLISH = "local:minilm"
MULTILINGUAL = "local:e5-small"
MINILM = Path(__file__).with_name("minilm-int8.onnx")  # made by training/make_models.py
_MINILM_SHA256 = "d6f6fd8e5862d6111454d6791e9ca77ec79b24928d69a1bd292c1a47b86999b2"
_ENOUGH = 0.2  # of the passages: an English book may quote other languages


@dataclass(frozen=True, slots=True)
class LocalModel:
    open: Callable[[], Embed]
    read_tokenizer: Callable[[], Tokenize]
    limit: int  # word pieces per window, including special tokens
    first: int
    last: int
    prefixes: Mapping[TextRole, str]
    dimension: int = 384


def _open_minilm() -> Embed:
    session = open_session(read_known(MINILM, _MINILM_SHA256))
    return lambda ids: session.run(None, {"ids": ids})[0]


MODELS = {
    "minilm": LocalModel(
        open=_open_minilm,
        read_tokenizer=lambda: tokenize_with(word_pieces()),
        limit=256,
        first=101,
        last=102,
        prefixes={"query": "", "passage": ""},
    ),
    "e5-small": LocalModel(
        open=e5.open_model,
        read_tokenizer=e5.read_tokenizer,
        limit=512,
        first=0,
        last=2,
        prefixes={"query": "query:", "passage": "passage:"},
    ),
}


@dataclass(frozen=True, slots=True)
class _Loaded:
    embed: Embed
    tokenize: Tokenize
    prefixes: Mapping[TextRole, list[int]]


@dataclass(frozen=True, slots=True)
class _Window:
    text: int  # index of the text that it is part of
    ids: list[int]


class LocalEmbedder:
    """Sentence transformer with mean pooling. Loads on first use; thread-safe."""

    def __init__(self, model: str, *, threads: int | None = None) -> None:
        known = model.removesuffix(_PRECISION)
        if known not in MODELS:
            raise UnknownProvider(
                f"There is no local model {model!r}.", hint=f"Use one of {', '.join(MODELS)}."
            )
        self.name = f"local:{known}{_PRECISION}"
        self._known, self._model = known, MODELS[known]
        self._threads = threads or os.cpu_count() or 1
        # A separate executor: database work must not queue behind the embedding of questions.
        self._pool = ThreadPoolExecutor(self._threads, "embed")

    @property
    def dimension(self) -> int:
        return self._model.dimension

    @property
    def limit(self) -> int:
        return self._model.limit

    async def prepare(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, self._load)

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._embed, list(texts), role)

    def _embed(self, texts: list[str], role: TextRole) -> Vectors:
        loaded = self._load()
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        batches = list(_batches(self._windows(texts, role, loaded)))
        for batch, vectors in zip(batches, self._run(batches, loaded.embed), strict=True):
            np.add.at(sums, [window.text for window in batch], vectors)
        return _unit_length(sums)

    def _windows(self, texts: list[str], role: TextRole, loaded: _Loaded) -> Iterator[_Window]:
        before = [self._model.first, *loaded.prefixes[role]]
        room = self.limit - len(before) - 1
        for number, ids in enumerate(loaded.tokenize(list(map(well_formed, texts)))):
            for part in _cut(ids, room):
                yield _Window(number, [*before, *part, self._model.last])

    def _run(self, batches: Sequence[Sequence[_Window]], embed: Embed) -> Iterator[Vectors]:
        def run(batch: Sequence[_Window]) -> Vectors:
            return _unit_length(embed(np.array([window.ids for window in batch], dtype=np.int64)))

        if len(batches) < 2:
            yield from map(run, batches)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(run, batches)

    def _load(self) -> _Loaded:
        with _OPENING:
            return _open_model(self._known)


@cache
def _open_model(name: str) -> _Loaded:
    """Open a model, once for the process: the memory of a closed session is hardly used again."""
    model = MODELS[name]
    with ThreadPoolExecutor(max_workers=1) as pool:
        opening = pool.submit(model.open)
        tokenize = model.read_tokenizer()
        prefixes = {role: tokenize([text])[0] for role, text in model.prefixes.items()}
        return _Loaded(opening.result(), tokenize, prefixes)


def _cut(ids: list[int], size: int) -> Iterator[list[int]]:
    step = max(1, int(size * _STRIDE))
    start = 0
    while True:
        yield ids[start : start + size]
        if start + size >= len(ids):
            return
        start += step


def _batches(windows: Iterator[_Window]) -> Iterator[list[_Window]]:
    """Batch windows of equal length, longest first: the last batches to finish are short."""
    by_length: defaultdict[int, list[_Window]] = defaultdict(list)
    for window in windows:
        by_length[len(window.ids)].append(window)
    for length in sorted(by_length, reverse=True):
        same = by_length[length]
        most = max(1, _BATCH_TOKENS // length)
        for start in range(0, len(same), most):
            yield same[start : start + most]


def _unit_length(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if vectors.size and not (np.isfinite(norms).all() and (norms > 0).all()):
        raise EmbedderFailed("The local model returned a vector that cannot be used.")
    result: Vectors = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return result


# --- the choice of a model -----------------------------------------------------------------------


def embedder_for(languages: Iterable[str], *, installed: bool | None = None) -> str:
    """Choose a model. ``languages``: one per passage. ``installed``: has the multilingual model."""
    counts = Counter(language.lower()[:2] for language in languages)
    foreign = {language: n for language, n in counts.items() if language != "en"}
    if sum(foreign.values()) <= _ENOUGH * counts.total():
        return ENGLISH
    if e5.is_installed() if installed is None else installed:
        return MULTILINGUAL
    most = max(sorted(foreign), key=lambda language: foreign[language])
    _log.warning(
        'This book is written in "%s", but the installed model reads English. '
        "Run: %s, then ingest the book again.",
        most,
        e5.INSTALL,
    )
    return ENGLISH
