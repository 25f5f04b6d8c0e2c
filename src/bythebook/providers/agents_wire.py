"""An account in, a model of the Agents SDK out; what goes wrong with it in, a ``Fault`` out.

The SDK takes a stream that is cut off for a finished answer, unless it comes from api.openai.com.
Here every body is watched on its way in: it is whole if it told a reason to finish or ``[DONE]``.
Neither the SDK nor the client tries anything again: whoever waits decides that.
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

from bythebook.providers.faults import Fault, Kind
from bythebook.providers.web import fault_of, retry_after

if TYPE_CHECKING:
    from agents import Model

    from bythebook.providers.accounts import Account

_FINISH = re.compile(rb'"finish_reason"\s*:\s*"([a-z_]+)"')
_DONE = re.compile(rb"^data:\s*\[DONE\]", re.MULTILINE)
_LONGEST_LOOK_BACK = 64  # bytes of what came before: a word may come in two pieces
_CUT_SHORT = ("length", "max_tokens", "model_length")
_FILTERED = ("content_filter", "safety", "recitation", "prohibited_content")


@dataclass(slots=True)
class Ending:
    """How the answers of one draft ended; the last of them counts."""

    finish: str | None = None
    done: bool = False

    def begin(self) -> None:
        self.finish, self.done = None, False

    @property
    def told(self) -> bool:
        return self.done or self.finish is not None

    def check(self) -> None:
        """Whether what was said is all there is to say."""
        if self.finish in _CUT_SHORT:
            raise Fault(Kind.TRUNCATED)
        if self.finish in _FILTERED:
            raise Fault(Kind.FILTERED)


_ending: ContextVar[Ending] = ContextVar("ending")


def run_watched(ending: Ending, *given: Any, **more: Any) -> RunResultStreaming:
    """A streamed run; how its answers end is written down."""
    context = copy_context()  # of the run alone: a generator's own would be its reader's, too
    context.run(_ending.set, ending)
    return context.run(Runner.run_streamed, *given, **more)


class Line:
    """A client for one account, kept open between drafts; made anew for each event loop."""

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
                timeout=None,  # every wait has a deadline of ours
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
        raise Fault(Kind.WEB_PAGE)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Watched(response.stream, ending)


class _Watched(httpx2.AsyncByteStream):
    """A body that may not end before it has told its end."""

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
            raise Fault(Kind.CUT)

    async def aclose(self) -> None:
        await self._body.aclose()


_KINDS: tuple[tuple[type[Exception], Kind], ...] = (
    (httpx2.ConnectError, Kind.UNREACHABLE),
    (httpx2.ConnectTimeout, Kind.UNREACHABLE),
    (httpx2.HTTPError, Kind.CUT),
    (ModelTimeoutError, Kind.LATE),
    (ModelRefusalError, Kind.FILTERED),
    (MaxTurnsExceeded, Kind.TOO_MUCH),
)


def fault_behind(error: Exception) -> Fault:
    """What an error of the SDK, of the client or of the connection means."""
    for cause in _causes(error):
        if isinstance(cause, Fault):
            return cause
        if isinstance(cause, openai.APIStatusError):
            fault = fault_of(cause.status_code, cause.response.text)
            wait_s = retry_after(cause.response.headers, datetime.now(UTC))
            fault.retry_after = wait_s if fault.retryable else None
            return fault
        for family, kind in _KINDS:
            if isinstance(cause, family):
                return Fault(kind)
    return Fault(Kind.GARBLED)


# Everything that a run can raise but for what is ours, and for what is nobody's: bugs.
RAISED = (openai.OpenAIError, httpx2.HTTPError, AgentsException, ValueError, Fault)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
