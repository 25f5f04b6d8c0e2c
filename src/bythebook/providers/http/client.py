"""HTTP client for hosted services; streams responses or raises a ``ProviderError``.

All timeouts, retries and size limits are here. A call is retried only while no part of its response
has been passed on. Environment settings (proxies, .netrc, certificates) are ignored and redirects
are not followed: a question is sent to the configured address or not at all.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar

import httpx

from bythebook.providers.http.errors import ErrorCode, ProviderError, refusal
from bythebook.providers.http.transport import Transport

T = TypeVar("T")

_END: Any = object()  # marks the end of a stream
_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
_HEADERS = {
    "User-Agent": "bythebook",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}
_LINE_BYTES = 1 << 20  # also of a whole JSON answer; parsed JSON takes up to 50 times as much
_ERROR_BYTES = 1 << 16
FAILURES = 5  # in a row that open a circuit breaker
EVERY_S = 10.0  # between the probes of an open one
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 20.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a call in seconds, and its number of attempts."""

    total_s: float
    first_s: float  # until the first piece, all attempts together
    gap_s: float  # between two pieces
    tries: int = 3

    @classmethod
    def whole(cls, seconds: float, *, tries: int) -> Timeouts:
        """Return timeouts for a response that is not streamed."""
        return cls(seconds, seconds, seconds, tries)

    def less(self, seconds: float) -> Timeouts:
        """Return the timeouts that are left after ``seconds``."""
        return replace(self, total_s=self.total_s - seconds, first_s=self.first_s - seconds)


class Deadline:
    """Deadlines of one call: of its first piece, of each further piece and of the whole."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._now = asyncio.get_running_loop().time
        self._gap_s = timeouts.gap_s
        self._end = self._now() + timeouts.total_s
        self._first = self._next = min(self._end, self._now() + timeouts.first_s)
        self.begun = False  # a piece was received

    def allows(self, pause_s: float) -> bool:
        """Return whether a pause ends before the deadline of the first piece."""
        return self._now() + pause_s < self._first

    async def limit(self, pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yield the pieces; raise at the first missed deadline."""
        async with aclosing(pieces):
            while True:
                try:
                    async with asyncio.timeout_at(self._next):
                        piece = await anext(pieces, _END)
                except TimeoutError:
                    raise ProviderError(self._missed()) from None
                if piece is _END:
                    return
                self.begun = True
                yield piece
                self._next = min(self._end, self._now() + self._gap_s)

    def _missed(self) -> ErrorCode:
        if self._next >= self._end:
            return ErrorCode.LATE
        return ErrorCode.STALLED if self.begun else ErrorCode.LATE_START


class CircuitBreaker:
    """Circuit breaker for a hosted service.

    It opens after five failures in a row and then allows one probe every ten seconds: clients need
    not wait for calls that will fail, and a failing service is not overloaded.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next = 0.0  # while open: when the next call may be made

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count the outcome of one call; raise instead of calling while the breaker is open.

        A non-retryable rejection, or a client that leaves, shows that the service is up.
        """
        if wait_s := self.wait_s():
            raise ProviderError(ErrorCode.CIRCUIT_OPEN, retry_after=wait_s)
        try:
            yield
        except ProviderError as fault:
            if fault.retryable:
                self.failed()
            else:
                self.succeeded()
            raise
        except GeneratorExit:
            self.succeeded()
            raise
        else:
            self.succeeded()

    def wait_s(self) -> float:
        """Return 0 if a call may be made (report its outcome), else the seconds until the next."""
        if self._failures < FAILURES:
            return 0.0
        now = self._clock()
        if now < self._next:
            return self._next - now
        self._next = now + EVERY_S  # later callers must wait: a probe is under way
        return 0.0

    def failed(self) -> None:
        self._failures += 1
        if self._failures == FAILURES:
            self._next = self._clock() + EVERY_S

    def succeeded(self) -> None:
        self._failures = 0


class HttpClient:
    """Connection pool, kept open between calls; created anew for each event loop."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._transport = Transport(limits=_CONNECTIONS)
            self._client = _new_client(self._transport)
        return self._client

    def client_through(
        self, wrap: Callable[[Transport], httpx.AsyncBaseTransport]
    ) -> httpx.AsyncClient:
        """Return a client on the same connections, with a wrapped transport; it needs no close."""
        self.client()
        assert self._transport is not None
        return _new_client(wrap(self._transport))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


def _new_client(transport: httpx.AsyncBaseTransport) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=None,  # noqa: S113 - every wait has a deadline of ours
        transport=transport,
        headers=_HEADERS,
    )


class ResponseReader:
    """Body of a successful response, read within size limits."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    @property
    def is_stream(self) -> bool:
        """Return true unless the content type is JSON or HTML: some servers send none."""
        return not re.search(r"json|html", self._response.headers.get("content-type", ""))

    async def json(self, most: int = _LINE_BYTES) -> Any:
        """Return a whole JSON response of at most ``most`` bytes."""
        content = await _read(self._response, most)
        if content.lstrip()[:1] == b"<":
            raise ProviderError(ErrorCode.WEB_PAGE)
        return parse_json(content)

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event."""
        event: list[str] = []
        size = 0  # with the names of the lines, as there may be many empty ones
        async with aclosing(self._lines()) as lines:
            async for line in lines:
                if line.startswith("data:"):
                    event.append(line[5:].removeprefix(" "))
                    size += len(line)
                    if size > _LINE_BYTES:
                        raise ProviderError(ErrorCode.TOO_MUCH)
                elif not line and event:
                    yield "\n".join(event)
                    event, size = [], 0
        if event:  # the final empty line is missing: the consumer decides if it is complete
            yield "\n".join(event)

    async def _lines(self) -> AsyncGenerator[str, None]:
        rest = bytearray()  # to which a small chunk is added without a copy of the whole
        async with aclosing(_chunks(self._response)) as chunks:
            async for chunk in chunks:
                rest += chunk
                lines: list[bytearray] = []
                if b"\n" in chunk:
                    *lines, rest = rest.split(b"\n")
                if max(map(len, (rest, *lines))) > _LINE_BYTES:
                    raise ProviderError(ErrorCode.TOO_MUCH)
                for line in lines:
                    yield line.decode("utf-8", "replace").rstrip("\r")
        if rest:
            yield rest.decode("utf-8", "replace")


ParseResponse = Callable[[ResponseReader], AsyncGenerator[T, None]]


class Endpoint:
    """One base address. With ``breaker``, calls fail fast while the service is down."""

    def __init__(
        self,
        web: HttpClient,
        address: str,
        *,
        headers: Mapping[str, str],
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._web = web
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._breaker = breaker

    async def post(self, path: str, body: object, *, timeouts: Timeouts, most: int) -> Any:
        """Return the whole response, of at most ``most`` bytes, parsed as JSON."""

        async def parse(response: ResponseReader) -> AsyncGenerator[Any, None]:
            yield await response.json(most)

        async with aclosing(self.stream(path, body, parse, timeouts=timeouts)) as pieces:
            return await anext(pieces)

    async def stream(
        self, path: str, body: object, parse: ParseResponse[T], *, timeouts: Timeouts
    ) -> AsyncGenerator[T, None]:
        """Yield what ``parse`` makes of the response; no retries after the first piece."""
        deadline = Deadline(timeouts)
        earlier: ProviderError | None = None
        for attempt in count(1):
            try:
                with self._breaker.watch() if self._breaker else nullcontext():
                    pieces = deadline.limit(self._attempt(path, body, parse))
                    async with aclosing(pieces):
                        async for piece in pieces:
                            yield piece
            except ProviderError as fault:
                is_consequence = fault.timed_out or fault.code is ErrorCode.CIRCUIT_OPEN
                if earlier and not deadline.begun and is_consequence:
                    raise earlier from None  # it is what used up the time
                pause_s = _pause_s(fault, attempt)
                is_last = deadline.begun or attempt >= timeouts.tries or not fault.retryable
                if is_last or fault.code is ErrorCode.CIRCUIT_OPEN or not deadline.allows(pause_s):
                    raise
                earlier = fault
                await asyncio.sleep(pause_s)
            else:
                return

    async def _attempt(
        self, path: str, body: object, parse: ParseResponse[T]
    ) -> AsyncGenerator[T, None]:
        # A lone surrogate cannot be encoded; it is replaced by a question mark.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        with translate_http_errors():
            async with self._web.client().stream(
                "POST", self._address + path, content=content, headers=self._headers
            ) as response:
                await raise_for_status(response)
                async with aclosing(parse(ResponseReader(response))) as pieces:
                    async for piece in pieces:
                        yield piece


def _pause_s(fault: ProviderError, attempt: int) -> float:
    if fault.retry_after is not None:
        return fault.retry_after
    longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries


@contextmanager
def translate_http_errors() -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout):
        raise ProviderError(ErrorCode.UNREACHABLE) from None
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise ProviderError(ErrorCode.NOT_FOUND) from None
    except httpx.LocalProtocolError:
        raise ProviderError(ErrorCode.BAD_KEY) from None
    except httpx.DecodingError:
        raise ProviderError(ErrorCode.MALFORMED) from None
    except httpx.HTTPError:
        raise ProviderError(ErrorCode.CONNECTION_LOST) from None


async def raise_for_status(response: httpx.Response) -> None:
    """Raise a ``ProviderError`` unless the status is 200."""
    if response.status_code == httpx.codes.OK:
        return
    try:
        message = (await _read(response, _ERROR_BYTES)).decode("utf-8", "replace")
    except (ProviderError, httpx.DecodingError):
        message = ""
    raise refusal(response.status_code, response.headers, message)


async def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_bytes():
        yield chunk


async def _read(response: httpx.Response, most: int) -> bytes:
    content = bytearray()
    async with aclosing(_chunks(response)) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > most:
                raise ProviderError(ErrorCode.TOO_MUCH)
    return bytes(content)


def parse_json(content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ProviderError(ErrorCode.MALFORMED) from None
