"""Embedder for any hosted API; returns vectors of unit length.

Each provider has an ``EmbeddingApi``: how a batch is requested and parsed. Everything else is
here: splitting long texts into windows, concurrent batches, retries and validation of replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bythebook.language.tokens import estimate_lines, estimate_tokens
from bythebook.providers.embeddings.apis import APIS
from bythebook.providers.http.client import CircuitBreaker, Endpoint, HttpClient, Timeouts
from bythebook.providers.http.errors import ErrorCode, ProviderError, translate_errors

if TYPE_CHECKING:
    from bythebook.config.sections import Embedding
    from bythebook.interfaces.models import TextRole
    from bythebook.providers.http.credentials import Account
    from bythebook.types import Vectors

_QUESTION_TRIES = 2
_PASSAGE_TRIES = 8
_STRIDE = 0.8  # of a window: neighbours overlap by a fifth
_LEAST_WINDOW = 16  # tokens; if even this is "too long", length is not the cause
_VECTOR_BYTES = 1 << 18  # of a response, per text: 4096 numbers of 64 characters
_BLANK = "."  # replaces empty text, which most embedders reject

_Post = Callable[[Sequence[str]], Awaitable[Any]]


class HostedEmbedder:
    def __init__(self, account: Account, settings: Embedding, *, web: HttpClient) -> None:
        self._api = APIS[account.provider]
        self._model = account.model.partition("@")[0]
        self._spec = self._api.spec(account.model)
        self.name = account.service.name
        self.dimension, self.limit = self._spec.dimension, self._spec.limit
        self._account = account
        self._service = replace(account.service, dimension=self.dimension)
        self._web = web
        self._breaker = CircuitBreaker()
        self._concurrency = settings.concurrency
        self._question = Timeouts.whole(settings.query_timeout_s, tries=_QUESTION_TRIES)
        self._passages = Timeouts.whole(settings.timeout_s, tries=_PASSAGE_TRIES)

    async def prepare(self) -> None:
        self._web.client()  # loads the TLS certificates

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        windows = [
            (number, window)
            for number, text in enumerate(texts)
            for window in self._windows(text, role, self.limit)
        ]
        with translate_errors(self._service):
            post = self._post(role, is_question=role == "query" and len(texts) == 1)
            vectors = await self._all([window for _, window in windows], role, post)
            np.add.at(sums, [number for number, _ in windows], vectors)
            return _unit_length(sums)

    def _post(self, role: TextRole, *, is_question: bool) -> _Post:
        """Return a function that posts a batch: with short timeouts for a single question."""
        key, (header, value) = self._account.usable_key(), self._api.key_header
        endpoint = Endpoint(
            self._web,
            self._account.address,
            headers={header: value.format(key=key)} if key else {},
            breaker=self._breaker if is_question else None,
        )
        path = self._api.path.format(model=self._model)
        timeouts = self._question if is_question else self._passages

        async def post(texts: Sequence[str]) -> Any:
            body = self._api.body(self._model, self._spec, texts, role)
            most = (1 + len(texts)) * _VECTOR_BYTES
            return await endpoint.post(path, body, timeouts=timeouts, most=most)

        return post

    def _windows(self, text: str, role: TextRole, limit: int) -> Iterator[str]:
        prefix = self._spec.prefixes.get(role, "")
        room = max(1, limit - estimate_tokens(prefix))
        for window in cut(text, room):
            yield f"{prefix}{window if window.strip() else _BLANK}"

    async def _all(self, texts: Sequence[str], role: TextRole, post: _Post) -> Vectors:
        """Embed batches concurrently; the first failure cancels the others."""
        most = self._api.most_texts
        turn = asyncio.Semaphore(self._concurrency)

        async def run(batch: Sequence[str]) -> Vectors:
            async with turn:
                return await self._batch(batch, role, post)

        try:
            async with asyncio.TaskGroup() as group:
                starts = range(0, len(texts), most)
                tasks = [group.create_task(run(texts[n : n + most])) for n in starts]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        nothing = np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate([nothing, *(task.result() for task in tasks)])

    async def _batch(self, texts: Sequence[str], role: TextRole, post: _Post) -> Vectors:
        try:
            return self._checked(await post(texts), len(texts))
        except ProviderError as fault:
            if fault.code is not ErrorCode.TOO_LONG:
                raise
        # The provider may count more tokens than we estimate: retry in smaller parts.
        if len(texts) > 1:
            middle = len(texts) // 2
            first = await self._batch(texts[:middle], role, post)
            return np.concatenate([first, await self._batch(texts[middle:], role, post)])
        limit = estimate_tokens(texts[0]) // 2
        if limit < _LEAST_WINDOW:
            raise ProviderError(ErrorCode.REJECTED)
        text = texts[0].removeprefix(self._spec.prefixes.get(role, ""))
        vectors = await self._batch(list(self._windows(text, role, limit)), role, post)
        return _unit_length(vectors.sum(axis=0, keepdims=True))

    def _checked(self, reply: Any, texts: int) -> Vectors:
        try:
            rows = [list(row) for row in self._api.vectors(reply)]
            if not all(set(map(type, row)) <= {int, float} for row in rows):
                raise ProviderError(ErrorCode.MALFORMED)  # NumPy would read "1" and true as 1
            vectors = np.array(rows, dtype=np.float64)
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
