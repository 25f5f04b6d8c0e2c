"""Texts in, vectors of unit length out, from any embedder behind an address.

What the embedders differ in is their ``Wire``: how a batch is asked for and read. Everything else
is here: long texts in windows, batches side by side, retries, and a look at what comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bythebook.book.tokens import estimate_lines, estimate_tokens
from bythebook.errors import UnknownProvider
from bythebook.providers.breaker import Breaker
from bythebook.providers.faults import Fault, Kind, told
from bythebook.providers.web import Endpoint, Patience, Web

if TYPE_CHECKING:
    from bythebook.model import Vectors
    from bythebook.ports import TextRole
    from bythebook.providers.accounts import Account
    from bythebook.settings import Embedding

_QUESTION_TRIES = 2
_PASSAGE_TRIES = 8
_STRIDE = 0.8  # of a window: neighbours share a fifth
_LEAST_WINDOW = 16  # tokens; what is too long even so is not too long
_BLANK = "."  # stands for a text of nothing, which most embedders refuse


@dataclass(frozen=True, slots=True)
class Known:
    """A model as its maker describes it."""

    dimension: int
    limit: int  # tokens that it reads at once
    prefixes: Mapping[TextRole, str] = field(default_factory=dict)


class Wire(Protocol):
    """How one provider is asked for vectors."""

    @property
    def path(self) -> str: ...

    @property
    def most_texts(self) -> int: ...  # of one call

    def headers(self, key: str | None) -> Mapping[str, str]: ...

    def body(self, texts: Sequence[str], role: TextRole) -> object: ...

    def vectors(self, reply: Any) -> Sequence[Sequence[float]]:
        """In the order of the texts; anything may be raised by a reply of another shape."""
        ...


def known_model(model: str, table: Mapping[str, Known], *, unknown: Known | None = None) -> Known:
    """``model@512``: one that can shorten its vectors, or that nobody here knows."""
    name, _, dimension = model.partition("@")
    known = table.get(name) or table.get(name.partition(":")[0]) or unknown
    if dimension.isdecimal() and known is not None:
        return replace(known, dimension=int(dimension))
    if dimension or known is None or not known.dimension:
        raise UnknownProvider(
            f"The dimension of {name!r} is not known.",
            cure=f'Write it after the model, as in "{name}@768", or use one of {", ".join(table)}.',
        )
    return known


class HostedEmbedder:
    def __init__(
        self,
        account: Account,
        settings: Embedding,
        *,
        known: Known,
        wire: Wire,
        web: Web,
        breaker: Breaker | None = None,
    ) -> None:
        self.name = account.named.name
        self.dimension = known.dimension
        self.limit = known.limit
        self._account = account
        self._named = replace(account.named, dimension=known.dimension)
        self._known = known
        self._wire = wire
        self._web = web
        self._breaker = breaker or Breaker()
        self._at_once = settings.at_once
        self._question = Patience.whole(settings.question_s, tries=_QUESTION_TRIES)
        self._passages = Patience.whole(settings.timeout_s, tries=_PASSAGE_TRIES)

    async def prepare(self) -> None:
        self._web.client()  # reads the certificates

    async def embed(self, texts: Sequence[str], *, role: TextRole) -> Vectors:
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        with told(self._named):
            endpoint = self._endpoint(role, len(texts))
            windows = [
                (number, window)
                for number, text in enumerate(texts)
                for window in self._windows(text, role, self.limit)
            ]
            vectors = await self._all([window for _, window in windows], role, endpoint)
            np.add.at(sums, [number for number, _ in windows], vectors)
            return _unit_length(sums)

    def _endpoint(self, role: TextRole, texts: int) -> tuple[Endpoint, Patience]:
        """A reader waits for a question's vector; an author, who embeds many, has patience."""
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
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Patience]
    ) -> Vectors:
        """Batches side by side; the first that fails ends the others."""
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
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Patience]
    ) -> Vectors:
        endpoint, patience = called
        body = self._wire.body(texts, role)
        try:
            reply = await endpoint.ask(self._wire.path, body, patience=patience)
        except Fault as fault:
            if fault.kind is not Kind.TOO_LONG:
                raise
            return await self._in_halves(texts, role, called)
        return self._checked(reply, len(texts))

    async def _in_halves(
        self, texts: Sequence[str], role: TextRole, called: tuple[Endpoint, Patience]
    ) -> Vectors:
        """We count tokens by estimate: where the embedder counts more, windows are smaller."""
        if len(texts) > 1:
            middle = len(texts) // 2
            first = await self._batch(texts[:middle], role, called)
            return np.concatenate([first, await self._batch(texts[middle:], role, called)])
        limit = estimate_tokens(texts[0]) // 2
        if limit < _LEAST_WINDOW:
            raise Fault(Kind.REJECTED)
        text = texts[0].removeprefix(self._known.prefixes.get(role, ""))
        windows = list(self._windows(text, role, limit))
        vectors = await self._batch(windows, role, called)
        return _unit_length(vectors.sum(axis=0, keepdims=True))

    def _checked(self, reply: Any, texts: int) -> Vectors:
        try:
            vectors = np.array(self._wire.vectors(reply), dtype=np.float64)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise Fault(Kind.GARBLED) from None
        if vectors.ndim != 2 or len(vectors) != texts:
            raise Fault(Kind.GARBLED)
        if vectors.shape[1] != self.dimension:
            raise Fault(Kind.WRONG_DIMENSION, found=vectors.shape[1])
        return _unit_length(vectors)


def _unit_length(vectors: Vectors | NDArray[np.float64]) -> Vectors:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise Fault(Kind.NO_DIRECTION)
    result: Vectors = (vectors / norms).astype(np.float32)
    return result


def cut(text: str, room: int) -> Iterator[str]:
    """The text in windows of at most so many tokens, which overlap; most texts are one."""
    if estimate_tokens(text) <= room:
        yield text
        return
    pieces = [
        word[start : start + room]  # a character is at most one token of the estimate
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
