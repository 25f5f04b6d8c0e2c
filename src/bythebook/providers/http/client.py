"""HTTP client for hosted services; streams responses or raises a ``ProviderError``.

All timeouts, retries, size limits and translation of HTTP and httpx errors are here. A call is
retried only while no part of its response has been passed on. Environment settings (proxies,
.netrc, certificates) are ignored and redirects are not followed: a question is sent to the
configured address or not at all.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, TypeVar

import httpx

from bythebook.providers.http.circuit_breaker import CircuitBreaker
from bythebook.providers.http.errors import WORDS, ErrorCode, ProviderError
from bythebook.providers.http.transport import Transport

T = TypeVar("T")

_END: Any = object()  # marks the end of a stream
_AGENT = "bythebook"
_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
_LINE_BYTES = 1 << 20
_ERROR_BYTES = 1 << 16
_BODY_BYTES = 1 << 26  # 64 MiB: 256 vectors of 3072 numbers take 15
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 20.0
_A_DAY_S = 86_400.0


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
        left = replace(self, total_s=self.total_s - seconds, first_s=self.first_s - seconds)
        return left if seconds > 0 else self


class HttpClient:
    """Connection pool, kept open between calls; created anew for each event loop."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._loop = loop
            self._client = httpx.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=None,  # noqa: S113 - every wait has a deadline of ours
                transport=Transport(limits=_CONNECTIONS),
                headers={
                    "User-Agent": _AGENT,
                    "Accept-Encoding": "identity",
                    "Content-Type": "application/json",
                },
            )
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()


class Body:
    """Body of a successful response, with size limits."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    @property
    def is_stream(self) -> bool:
        """Return true unless the content type is JSON or HTML: some servers send none."""
        return not re.search(r"json|html", self._response.headers.get("content-type", ""))

    async def json(self) -> Any:
        content = await _read(self._response, _BODY_BYTES)
        if content.lstrip()[:1] == b"<":
            raise ProviderError(ErrorCode.WEB_PAGE)
        return parsed(content)

    async def data(self) -> AsyncGenerator[str, None]:
        """Yield the data of each server-sent event."""
        event: list[str] = []
        async with aclosing(self._lines()) as lines:
            async for line in lines:
                if line.startswith("data:"):
                    event.append(line[5:].removeprefix(" "))
                    if sum(map(len, event)) > _LINE_BYTES:
                        raise ProviderError(ErrorCode.TOO_MUCH)
                elif not line and event:
                    yield "\n".join(event)
                    event = []
        if event:  # the final empty line is missing: the consumer decides if it is complete
            yield "\n".join(event)

    async def _lines(self) -> AsyncGenerator[str, None]:
        rest = b""
        async with aclosing(_chunks(self._response)) as chunks:
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > _LINE_BYTES or any(len(line) > _LINE_BYTES for line in lines):
                    raise ProviderError(ErrorCode.TOO_MUCH)
                for line in lines:
                    yield line.decode("utf-8", "replace").rstrip("\r")
        if rest:
            yield rest.decode("utf-8", "replace")


Read = Callable[[Body], AsyncGenerator[T, None]]


class Endpoint:
    """One base address. With ``breaker``, calls fail fast while the service is down."""

    def __init__(
        self,
        web: HttpClient,
        address: str,
        *,
        headers: Mapping[str, str],
        breaker: CircuitBreaker | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._web = web
        self._address = address.rstrip("/")
        self._headers = dict(headers)
        self._breaker = breaker
        self._jitter = jitter

    async def ask(self, path: str, body: object, *, patience: Timeouts) -> Any:
        """Return the whole response, parsed as JSON."""

        async def read(answer: Body) -> AsyncGenerator[Any, None]:
            yield await answer.json()

        async with aclosing(self.stream(path, body, read, patience=patience)) as pieces:
            return await anext(pieces)

    async def stream(
        self, path: str, body: object, read: Read[T], *, patience: Timeouts
    ) -> AsyncGenerator[T, None]:
        """Yield what ``read`` makes of the response; no retries after the first piece."""
        now = asyncio.get_running_loop().time
        end = now() + patience.total_s
        until = first = min(end, now() + patience.first_s)
        earlier: ProviderError | None = None
        for tried in count(1):
            wait_s = self._breaker.wait_s() if self._breaker else 0.0
            if wait_s:
                raise earlier or ProviderError(ErrorCode.RESTING, retry_after=wait_s)
            begun = False
            try:
                async with aclosing(self._attempt(path, body, read)) as pieces:
                    while True:
                        late = ErrorCode.LATE if until >= end else _late(begun)
                        piece = await _in_time(pieces, until, late)
                        if piece is _END:
                            break
                        begun = True
                        yield piece
                        until = min(end, now() + patience.gap_s)
            except ProviderError as fault:
                self._note(fault)
                if earlier and not begun and WORDS[fault.kind].timed_out:
                    raise earlier from None  # it is what used up the time
                if begun or tried >= patience.tries or not fault.retryable:
                    raise
                pause = self._pause(fault, tried)
                if now() + pause >= first:
                    raise
                earlier = fault
                await asyncio.sleep(pause)
            except GeneratorExit:  # the client has left; the service was responding
                self._note(None)
                raise
            else:
                self._note(None)
                return

    def _note(self, fault: ProviderError | None) -> None:
        """Update the circuit breaker; a non-retryable rejection shows that the service is up."""
        if self._breaker is None:
            return
        if fault is not None and fault.retryable:
            self._breaker.failed()
        else:
            self._breaker.succeeded()

    def _pause(self, fault: ProviderError, tried: int) -> float:
        if fault.retry_after is not None:
            return fault.retry_after
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (tried - 1))
        return longest * (0.5 + self._jitter() / 2)

    async def _attempt(self, path: str, body: object, read: Read[T]) -> AsyncGenerator[T, None]:
        with _translated():
            async with self._web.client().stream(
                "POST", self._address + path, content=_encoded(body), headers=self._headers
            ) as response:
                if response.status_code != httpx.codes.OK:
                    raise await _refusal(response)
                async with aclosing(read(Body(response))) as pieces:
                    async for piece in pieces:
                        yield piece


async def _in_time(pieces: AsyncGenerator[T, None], until: float, late: ErrorCode) -> T:
    try:
        async with asyncio.timeout_at(until):
            return await anext(pieces, _END)
    except TimeoutError:
        raise ProviderError(late) from None


def _late(begun: bool) -> ErrorCode:
    return ErrorCode.SILENT if begun else ErrorCode.LATE_TO_BEGIN


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout):
        raise ProviderError(ErrorCode.UNREACHABLE) from None
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise ProviderError(ErrorCode.NOTHING_THERE) from None
    except httpx.LocalProtocolError:
        raise ProviderError(ErrorCode.BAD_KEY) from None
    except httpx.DecodingError:
        raise ProviderError(ErrorCode.GARBLED) from None
    except httpx.HTTPError:
        raise ProviderError(ErrorCode.CUT) from None


# --- bodies ---------------------------------------------------------------------------------------


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


def _encoded(body: object) -> bytes:
    # A lone surrogate cannot be encoded; it is replaced by a question mark.
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def parsed(content: str | bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ProviderError(ErrorCode.GARBLED) from None


# --- error responses ------------------------------------------------------------------------------

# Messages of the service are only matched against these patterns, never passed on.
_TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|too many (?:input )?tokens|too long|maximum.{0,30}tokens"
    r"|exceed.{0,40}(?:tokens|context)|string_above_max_length",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not found|not exist|not supported|no longer|deprecated|invalid)"
    r"|(?:not a valid|no such|unknown|invalid) model|model_not_found",
    re.IGNORECASE,
)
_NO_SUCH_KEY = re.compile(r"api.?key.{0,20}(?:not valid|invalid)|invalid.{0,5}api", re.IGNORECASE)
_PARAMETERS = ("max_completion_tokens", "max_tokens", "temperature", "stream_options")


async def _refusal(response: httpx.Response) -> ProviderError:
    try:
        said = (await _read(response, _ERROR_BYTES)).decode("utf-8", "replace")
    except ProviderError:
        said = ""
    fault = fault_of(response.status_code, said)
    wait_s = retry_after(response.headers, datetime.now(UTC))
    fault.retry_after = _delay_within(said) if wait_s is None else wait_s
    if not fault.retryable:
        fault.retry_after = None
    return fault


def fault_of(status: int, said: str) -> ProviderError:
    """Translate an error response by its status and message."""
    kind = _by_words(status, said) or _by_number(status, said)
    return ProviderError(kind, parameter=_parameter(said) if kind is ErrorCode.REJECTED else "")


def _parameter(said: str) -> str:
    """Return the parameter that is named first: later ones are suggested replacements."""
    named = [name for name in _PARAMETERS if name in said]
    return min(named, key=said.index, default="")


def _by_words(status: int, said: str) -> ErrorCode | None:
    if status == 429 and "insufficient_quota" in said:
        return ErrorCode.NO_CREDIT
    if status == 400 and _NO_SUCH_KEY.search(said):
        return ErrorCode.WRONG_KEY
    if status not in (400, 404, 422):
        return None
    if _TOO_LONG.search(said):
        return ErrorCode.TOO_LONG
    is_model = _NO_MODEL.search(said) and not any(name in said for name in _PARAMETERS)
    return ErrorCode.UNKNOWN_MODEL if is_model else None


_BY_NUMBER = {
    401: ErrorCode.WRONG_KEY,
    402: ErrorCode.NO_CREDIT,
    403: ErrorCode.WRONG_KEY,
    404: ErrorCode.NOTHING_THERE,
    405: ErrorCode.NOTHING_THERE,
    408: ErrorCode.OUT_OF_ORDER,
    409: ErrorCode.OUT_OF_ORDER,
    410: ErrorCode.UNKNOWN_MODEL,
    413: ErrorCode.TOO_LONG,
    425: ErrorCode.BUSY,
    429: ErrorCode.BUSY,
}


def _by_number(status: int, said: str) -> ErrorCode:
    if status in _BY_NUMBER:
        return _BY_NUMBER[status]
    if status >= 500:
        return ErrorCode.OUT_OF_ORDER
    if 300 <= status < 400:
        return ErrorCode.MOVED
    return ErrorCode.WEB_PAGE if said.lstrip()[:1] == "<" or status < 300 else ErrorCode.REJECTED


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds, at most a day, from ``Retry-After`` (number or date), if present."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, _A_DAY_S)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is None:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = max(0.0, (when - now).total_seconds())
    return min(seconds, _A_DAY_S)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _delay_within(said: str) -> float | None:
    """Return the delay that Google sends in the body: ``"retryDelay": "34s"``."""
    found = re.search(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"', said)
    return None if found is None else min(float(found[1]), _A_DAY_S)
