"""Embedder for any hosted API; returns vectors of unit length.

Each provider implements ``EmbeddingApi``: how a batch is requested and parsed. Everything else is
here: splitting long texts into windows, concurrent batches, retries and validation of replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bythebook.errors import UnknownProvider
from bythebook.language.tokens import estimate_lines, estimate_tokens
from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.client import Endpoint, HttpClient, Timeouts
from bythebook.providers.http.errors import ErrorCode, ProviderError, translate_errors

if TYPE_CHECKING:
    from bythebook.config.sections import Embedding
    from bythebook.interfaces.embedding import TextRole
    from bythebook.providers.http.credentials import Account
    from bythebook.types import Vectors

_QUESTION_TRIES = 2
_PASSAGE_TRIES = 8
_STRIDE = 0.8  # of a window: neighbours overlap by a fifth
_LEAST_WINDOW = 16  # tokens; if even this is "too long", length is not the cause
_BLANK = "."  # replaces empty text, which most embedders reject


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Dimension, token limit and prefixes of a model, as documented by its provider."""

    dimension: int
    limit: int  # tokens per text
    prefixes: Mapping[TextRole, str] = field(default_factory=dict)


class EmbeddingApi(Protocol):
    """Request and response format of one provider."""

    @property
    def path(self) -> str: ...

    @property
    def most_texts(self) -> int: ...  # per request

    def headers(self, key: str | None) -> Mapping[str, str]: ...

    def body(self, texts: Sequence[str], role: TextRole) -> object: ...

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        """Return vectors in the order of the texts; may raise anything on a malformed reply."""
        ...


def known_model(
    model: str, table: Mapping[str, ModelSpec], *, unknown: ModelSpec | None = None
) -> ModelSpec:
    """Look up a model. ``model@512`` sets the dimension, to shorten vectors or if unknown."""
    name, _, dimension = model.partition("@")
    known = table.get(name) or table.get(name.partition(":")[0]) or unknown
    if dimension.isdecimal() and known is not None:
        return replace(known, dimension=int(dimension))
    if dimension or known is None or not known.dimension:
        raise UnknownProvider(
            f"The dimension of {name!r} is not known.",
            hint=f'Write it after the model, as in "{name}@768", or use one of {", ".join(table)}.',
        )
    return known


class HostedEmbedder:
    def __init__(
        self,
        account: Account,
        settings: Embedding,
        *,
        known: ModelSpec,
        wire: EmbeddingApi,
        web: HttpClient,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = account.service.name
        self.dimension = known.dimension
        self.limit = known.limit
        self._account = account
        self._service = replace(account.service, dimension=known.dimension)
        self._known = known
        self._wire = wire
        self._web = web
        self._breaker = breaker or CircuitBreaker()
        self._at_once = settings.concurrency
        self._question = Timeouts.whole(settings.query_timeout_s, tries=_QUESTION_TRIES)
        self._passages = Timeouts.whole(settings.timeout_s, tries=_PASSAGE_TRIES)

    async def prepare(self) -> None:
        self._web.client()  # loads the TLS certificates

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        with translate_errors(self._service):
            endpoint = self._endpoint(role, len(texts))
            windows = [
                (number, window)
                for number, text in enumerate(texts)
                for window in self._windows(text, role, self.limit)
            ]
            vectors = await self._all([window for _, window in windows], role, endpoint)
            np.add.at(sums, [number for number, _ in windows], vectors)
            return _unit_length(sums)

    def _endpoint(self, role: TextRole, texts: int) -> tuple[Endpoint, Timeouts]:
        """Return the endpoint and timeouts: short for a single question, long for an ingest."""
        asks = role == "query" and texts == 1
        headers = self._wire.headers(self._account.usable_key())
        breaker = self._breaker if asks else None
        endpoint = Endpoint(self._web, self._account.address, headers=headers, breaker=breaker)
        return endpoint, self._question if asks else self._passages

    def _windows(self, text: str, role: TextRole, limit: int) -> Iterator[str]:
        prefix = self._known.prefixes.get(role, "")
        room = max(1, limit - estimate_tokens(prefix))
        for window in cut(text, room):
            yield f"{prefix}{window if window.strip() else _BLANK}"

    async def _all(
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Timeouts]
    ) -> Vectors:
        """Embed batches concurrently; the first failure cancels the others."""
        most = self._wire.most_texts
        batches = [texts[start : start + most] for start in range(0, len(texts), most)]
        turn = asyncio.Semaphore(self._at_once)

        async def run(batch: Sequence[str]) -> Vectors:
            async with turn:
                return await self._batch(batch, role, called)

        if not batches:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(run(batch)) for batch in batches]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _batch(
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Timeouts]
    ) -> Vectors:
        endpoint, timeouts = called
        body = self._wire.body(texts, role)
        try:
            reply = await endpoint.post(self._wire.path, body, timeouts=timeouts)
        except ProviderError as fault:
            if fault.code is not ErrorCode.TOO_LONG:
                raise
            return await self._in_halves(texts, role, called)
        return self._checked(reply, len(texts))

    async def _in_halves(
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Timeouts]
    ) -> Vectors:
        """Retry in smaller parts: the provider may count more tokens than we estimate."""
        if len(texts) > 1:
            middle = len(texts) // 2
            first = await self._batch(texts[:middle], role, called)
            return np.concatenate([first, await self._batch(texts[middle:], role, called)])
        limit = estimate_tokens(texts[0]) // 2
        if limit < _LEAST_WINDOW:
            raise ProviderError(ErrorCode.REJECTED)
        text = texts[0].removeprefix(self._known.prefixes.get(role, ""))
        windows = list(self._windows(text, role, limit))
        vectors = await self._batch(windows, role, called)
        return _unit_length(vectors.sum(axis=0, keepdims=True))

    def _checked(self, reply: Any, texts: int) -> Vectors:
        try:
            vectors = np.array(self._wire.vectors(reply), dtype=np.float64)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise ProviderError(ErrorCode.MALFORMED) from None
        if vectors.ndim != 2 or len(vectors) != texts:
            raise ProviderError(ErrorCode.MALFORMED)
        if vectors.shape[1] != self.dimension:
            raise ProviderError(ErrorCode.WRONG_DIMENSION, found=vectors.shape[1])
        return _unit_length(vectors)


def _unit_length(vectors: Vectors | NDArray[np.float64]) -> Vectors:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise ProviderError(ErrorCode.BAD_VECTORS)
    result: Vectors = (vectors / norms).astype(np.float32)
    return result


def cut(text: str, room: int) -> Iterator[str]:
    """Split a text into overlapping windows of at most ``room`` tokens; most texts fit in one."""
    if estimate_tokens(text) <= room:
        yield text
        return
    pieces = [
        word[start : start + room]  # the estimate is at most one token per character
        for word in text.split()
        for start in range(0, len(word), room)
    ]
    tokens = np.cumsum([0, *estimate_lines(pieces)])
    start = 0
    while True:
        end = max(start + 1, int(np.searchsorted(tokens, tokens[start] + room, "right")) - 1)
        yield " ".join(pieces[start:end])
        if end >= len(pieces):
            return
        share = tokens[start] + room * _STRIDE
        start = max(start + 1, int(np.searchsorted(tokens, share, "right")) - 1)
