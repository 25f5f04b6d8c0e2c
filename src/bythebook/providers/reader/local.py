"""Reader on ONNX Runtime with the weights of this package.

The model reads a question or a sentence together with one window of a passage at a time: windows
are not padded, do not influence each other, and run in parallel, one core each.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bythebook.errors import EmbedderFailed, ReaderFailed, UnknownProvider
from bythebook.interfaces.models import SentenceSupport
from bythebook.language.text import well_formed
from bythebook.providers.embeddings.onnx_files import (
    open_session as onnx_session,
)
from bythebook.providers.embeddings.onnx_files import (
    read_known,
    word_pieces,
)
from bythebook.providers.reader.windows import (
    PassageWindow,
    TermWeights,
    TokenizedPassage,
    best_windows,
    join_units,
    windows_of,
)
from bythebook.types import PassageReading

if TYPE_CHECKING:
    from bythebook.types import Passage

Logits = NDArray[np.float32]


MODELS = {  # the SHA-256 of each model's file
    "reader-v2": "fd4570595dcc707ce33d7c60d9805d2c937afe0e4ca3b3901796882dd0d63f43",
}
WEIGHTS = Path(__file__).parent

_CLS, _SEP, _FULL_STOP = 101, 102, 1012
# As the model was trained: training/labelled.py.
_TEXT_TOKENS = 64  # of a question or sentence, from its beginning
_HEADING_TOKENS = 24  # of the heading path, up to its end
_READING_TOKENS = 384  # of a question, a heading path and a passage together
_PASSAGE_CHARACTERS = 20_000  # that are read, from the beginning
_WINDOWS_PER_PASSAGE = 2  # that are read for a question
_WINDOWS_PER_SENTENCE = 3  # of all the evidence
_SPAN_TOKENS = 24
_SEPARATORS = 4  # word pieces besides those of the texts
_UNREAD = -30.0  # log odds of a unit that no window has
_REINSTALL = "Install bythebook again, or set reader to none."


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: Any
    tokenizer: Any


@dataclass(frozen=True, slots=True)
class _Output:
    """Logits of one window; ``span`` and ``relevance`` have a row for each word piece of it."""

    answers: float
    support: Logits  # entailed, neutral, contradicted
    span: Logits
    relevance: Logits


class LocalReader:
    """Reading model for English. Loads on first use; thread-safe."""

    def __init__(
        self,
        model: str = "reader-v2",
        *,
        threads: int | None = None,
        folder: Path = WEIGHTS,
        open_session: Callable[[bytes], Any] | None = None,
    ) -> None:
        if model not in MODELS:
            raise UnknownProvider(
                f"There is no reading model {model!r}.", hint=f"Use one of {', '.join(MODELS)}."
            )
        self.name = f"local:{model}"
        self._sha256 = MODELS[model]
        self._file = folder / f"{model}.onnx"
        self._threads = threads or os.cpu_count() or 1
        self._calls = ThreadPoolExecutor(self._threads, "read")
        self._workers = ThreadPoolExecutor(self._threads, "window")
        self._open_session = open_session
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    async def prepare(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._calls, self._load)

    async def read(self, question: str, passages: Sequence[Passage]) -> list[PassageReading]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._calls, self._read, question, list(passages))

    async def support(
        self, sentences: Sequence[str], evidence: Sequence[Passage]
    ) -> list[SentenceSupport]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._calls, self._support, list(sentences), list(evidence)
        )

    async def close(self) -> None:
        self._calls.shutdown(wait=False)
        self._workers.shutdown(wait=False)

    def _read(self, question: str, passages: list[Passage]) -> list[PassageReading]:
        loaded = self._load()
        asked = self._pieces(loaded, question)
        windows: list[PassageWindow] = []
        for number, source in enumerate(self._tokenize(loaded, passages)):
            room = _READING_TOKENS - len(asked) - len(source.heading) - _SEPARATORS
            own = list(windows_of(source, number, room))
            windows += best_windows(asked, own, _WINDOWS_PER_PASSAGE, TermWeights(own))
        read: dict[int, list[tuple[_Output, PassageWindow]]] = defaultdict(list)
        outputs = self._run(loaded, [(asked, window) for window in windows])
        for window, output in zip(windows, outputs, strict=True):
            read[window.number].append((output, window))
        return [self._reading(read[number]) for number in range(len(passages))]

    @staticmethod
    def _reading(read: Sequence[tuple[_Output, PassageWindow]]) -> PassageReading:
        best, window = max(read, key=lambda each: each[0].answers)
        span = _best_span(best.span, window)
        units = [max(odds) for odds in zip(*(_relevance(*each) for each in read), strict=True)]
        return PassageReading(_probability(best.answers), span, tuple(map(_probability, units)))

    def _support(self, sentences: list[str], evidence: list[Passage]) -> list[SentenceSupport]:
        if not sentences or not evidence:
            return [SentenceSupport(0.0, None)] * len(sentences)
        loaded = self._load()
        sources = self._tokenize(loaded, evidence)
        windows = [w for number, source in enumerate(sources) for w in windows_of(source, number)]
        weights = TermWeights(windows)
        pairs: list[tuple[list[int], PassageWindow]] = []
        counts = []
        for sentence in sentences:
            claim = self._pieces(loaded, sentence)
            chosen = best_windows(claim, windows, _WINDOWS_PER_SENTENCE, weights)
            joined = join_units(claim, sources, weights)
            if joined is not None:
                chosen.append(joined)
            pairs += [(claim, window) for window in chosen]
            counts.append(len(chosen))
        outputs = iter(zip(pairs, self._run(loaded, pairs), strict=True))
        return [self._supported([next(outputs) for _ in range(count)]) for count in counts]

    @staticmethod
    def _supported(
        read: Sequence[tuple[tuple[list[int], PassageWindow], _Output]],
    ) -> SentenceSupport:
        odds = [_entailment(output.support) for _, output in read]
        best = max(range(len(odds)), key=odds.__getitem__)
        (_, window), _ = read[best]
        return SentenceSupport(_probability(odds[best]), window.number)

    def _pieces(self, loaded: _Loaded, text: str) -> list[int]:
        text = well_formed(text[:_PASSAGE_CHARACTERS])
        encoded = loaded.tokenizer.encode(text, add_special_tokens=False)
        ids: list[int] = encoded.ids[:_TEXT_TOKENS]
        return ids

    def _tokenize(self, loaded: _Loaded, passages: Sequence[Passage]) -> list[TokenizedPassage]:
        texts = [well_formed(passage.text[:_PASSAGE_CHARACTERS]) for passage in passages]
        paths = [well_formed(passage.place.path) for passage in passages]
        encoded = loaded.tokenizer.encode_batch([*texts, *paths], add_special_tokens=False)
        bodies, headings = encoded[: len(texts)], encoded[len(texts) :]
        return [
            TokenizedPassage(
                passage,
                [*heading.ids[-_HEADING_TOKENS:], _FULL_STOP],
                body.ids,
                body.offsets,
            )
            for passage, body, heading in zip(passages, bodies, headings, strict=True)
        ]

    def _run(
        self, loaded: _Loaded, pairs: Sequence[tuple[list[int], PassageWindow]]
    ) -> Iterable[_Output]:
        def run(pair: tuple[list[int], PassageWindow]) -> _Output:
            text, window = pair
            before = [_CLS, *text, _SEP]
            after = [*window.source.heading, *window.ids, _SEP]
            ids = np.array([[*before, *after]], dtype=np.int64)
            segments = np.array([[0] * len(before) + [1] * len(after)], dtype=np.int64)
            answers, support, span, relevance = loaded.session.run(
                None, {"ids": ids, "segments": segments}
            )
            if not (np.isfinite(answers).all() and np.isfinite(support).all()):
                raise ReaderFailed("The reading model returned no number.", hint=_REINSTALL)
            start = len(before) + len(window.source.heading)
            own = slice(start, start + window.last - window.first)
            return _Output(float(answers[0]), support[0], span[0, own], relevance[0, own])

        # The longest first: the last to finish are short.
        order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at][1].ids))
        outputs = self._workers.map(run, [pairs[at] for at in order])
        done = dict(zip(order, outputs, strict=True))
        return [done[at] for at in range(len(pairs))]

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                try:
                    with ThreadPoolExecutor(max_workers=1) as pool:
                        opening = pool.submit(self._open)
                        self._loaded = _Loaded(tokenizer=word_pieces(), session=opening.result())
                except EmbedderFailed as error:
                    raise ReaderFailed(error.message, hint=_REINSTALL) from None
            return self._loaded

    def _open(self) -> Any:
        if self._open_session is None:
            return _open_once(self._file, self._sha256)
        return self._open_session(read_known(self._file, self._sha256))


@cache
def _open_once(file: Path, sha256: str) -> Any:
    """Open a model, once for the process: the memory of a closed session is hardly used again."""
    return onnx_session(read_known(file, sha256))


def _best_span(span: Logits, window: PassageWindow) -> tuple[int, int] | None:
    """Return the likeliest span that lies within one unit, as characters."""
    source = window.source
    best, most = None, -np.inf
    for first, last in source.units():
        low, high = max(first, window.first) - window.first, min(last, window.last) - window.first
        if high <= low:
            continue
        starts, ends = span[low:high, 0], span[low:high, 1]
        scores = starts[:, None] + ends[None, :]
        lengths = np.arange(high - low)[None, :] - np.arange(high - low)[:, None]
        scores = np.where((lengths >= 0) & (lengths < _SPAN_TOKENS), scores, -np.inf)
        start, end = divmod(int(scores.argmax()), high - low)
        if scores[start, end] > most:
            most = scores[start, end]
            best = window.first + low + start, window.first + low + end
    if best is None:
        return None
    first, last = source.offsets[best[0]][0], source.offsets[best[1]][1]
    return (first, last) if last > first else None


def _relevance(output: _Output, window: PassageWindow) -> list[float]:
    """Return the log odds that each unit of the passage belongs in the answer."""
    odds = []
    for first, last in window.source.units():
        low, high = max(first, window.first) - window.first, min(last, window.last) - window.first
        odds.append(float(output.relevance[low:high].mean()) if high > low else _UNREAD)
    return odds


def _entailment(support: Logits) -> float:
    """Return the log odds of "entailed" against "neutral" and "contradicted"."""
    return float(support[0] - np.logaddexp(support[1], support[2]))


def _probability(odds: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(odds, -30, 30))))
