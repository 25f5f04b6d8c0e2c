"""Client for the Agents SDK, and translation of its errors into ``ProviderError``.

The SDK takes a truncated stream for a complete answer, unless it comes from api.openai.com. So
every response body is inspected: it is complete if it has a finish reason or ``[DONE]``. Neither
the SDK nor the client retries: that is left to the caller.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from agents import (
    MaxTurnsExceeded,
    ModelRefusalError,
    ModelTimeoutError,
    OpenAIChatCompletionsModel,
    Runner,
    RunResultStreaming,
)
from agents.exceptions import AgentsException

from bythebook.providers.http.client import fault_of, retry_after
from bythebook.providers.http.errors import ErrorCode, ProviderError

if TYPE_CHECKING:
    from agents import Model

    from bythebook.providers.http.credentials import Account

_FINISH = re.compile(rb'"finish_reason"\s*:\s*"([a-z_]+)"')
_DONE = re.compile(rb"^data:\s*\[DONE\]", re.MULTILINE)
_LONGEST_LOOK_BACK = 64  # bytes of earlier chunks: a match may span two
_CUT_SHORT = ("length", "max_tokens", "model_length")
_FILTERED = ("content_filter", "safety", "recitation", "prohibited_content")


@dataclass(slots=True)
class Ending:
    """How the responses of one draft ended; the last response counts."""

    finish: str | None = None
    done: bool = False

    def begin(self) -> None:
        self.finish, self.done = None, False

    @property
    def told(self) -> bool:
        return self.done or self.finish is not None

    def check(self) -> None:
        """Raise if the last response was truncated or filtered."""
        if self.finish in _CUT_SHORT:
            raise ProviderError(ErrorCode.TRUNCATED)
        if self.finish in _FILTERED:
            raise ProviderError(ErrorCode.FILTERED)


_ending: ContextVar[Ending] = ContextVar("ending")


def run_watched(ending: Ending, *given: Any, **more: Any) -> RunResultStreaming:
    """Start a streamed run; record in ``ending`` how its responses end."""
    context = copy_context()  # for the run only: a generator shares its context with its consumer
    context.run(_ending.set, ending)
    return context.run(Runner.run_streamed, *given, **more)


class AgentsClient:
    """Client for one account, kept open between drafts; created anew for each event loop."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._client: openai.AsyncOpenAI | None = None
        self._model: Model | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def model(self) -> Model:
        loop = asyncio.get_running_loop()
        if self._model is None or self._loop is not loop:
            self._loop, self._model = loop, self._open()
        return self._model

    async def close(self) -> None:
        client, self._client = self._client, None
        self._model = None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    def _open(self) -> Model:
        key = self._account.usable_key()
        self._client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=self._account.address,
            max_retries=0,
            timeout=None,
            http_client=httpx2.AsyncClient(
                trust_env=False,
                follow_redirects=False,
                timeout=None,  # every wait has our own deadline
                headers={"Accept-Encoding": "identity"},
                event_hooks={"response": [_watch]},
            ),
        )
        return OpenAIChatCompletionsModel(self._account.model, self._client)


async def _watch(response: httpx2.Response) -> None:
    ending = _ending.get(None)
    if ending is None or response.status_code != httpx2.codes.OK:
        return
    ending.begin()
    if re.search("html", response.headers.get("content-type", "")):
        raise ProviderError(ErrorCode.WEB_PAGE)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Watched(response.stream, ending)


class _Watched(httpx2.AsyncByteStream):
    """Response body that raises if it ends without a finish reason or ``[DONE]``."""

    def __init__(self, body: httpx2.AsyncByteStream, ending: Ending) -> None:
        self._body = body
        self._ending = ending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = b""
        async for chunk in self._body:
            seen = seen[-_LONGEST_LOOK_BACK:] + chunk
            for found in _FINISH.finditer(seen):
                self._ending.finish = found[1].decode()
            self._ending.done = self._ending.done or _DONE.search(seen) is not None
            yield chunk
        if not self._ending.told:
            raise ProviderError(ErrorCode.CUT)

    async def aclose(self) -> None:
        await self._body.aclose()


_KINDS: tuple[tuple[type[Exception], ErrorCode], ...] = (
    (httpx2.ConnectError, ErrorCode.UNREACHABLE),
    (httpx2.ConnectTimeout, ErrorCode.UNREACHABLE),
    (httpx2.HTTPError, ErrorCode.CUT),
    (ModelTimeoutError, ErrorCode.LATE),
    (ModelRefusalError, ErrorCode.FILTERED),
    (MaxTurnsExceeded, ErrorCode.TOO_MUCH),
)


def fault_behind(error: Exception) -> ProviderError:
    """Translate an error of the SDK, the client or the connection."""
    for cause in _causes(error):
        if isinstance(cause, ProviderError):
            return cause
        if isinstance(cause, openai.APIStatusError):
            fault = fault_of(cause.status_code, cause.response.text)
            wait_s = retry_after(cause.response.headers, datetime.now(UTC))
            fault.retry_after = wait_s if fault.retryable else None
            return fault
        for family, kind in _KINDS:
            if isinstance(cause, family):
                return ProviderError(kind)
    return ProviderError(ErrorCode.GARBLED)


# Everything that a run can raise, except errors of our own stages and bugs.
RAISED = (openai.OpenAIError, httpx2.HTTPError, AgentsException, ValueError, ProviderError)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
