"""Missing or bad keys, unreachable services, and which failures are retried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from bythebook.errors import WriterFailed
from tests.providers.hosted import drafted, writer_at
from tests.providers.loopback import STREAM, Loopback, Request, Script, Step, chat, delta, refuse

pytestmark = pytest.mark.loopback


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(lambda request: chat("A kite.")) as provider:
        yield provider


def _no_model(request: Request) -> list[Step]:
    raise AssertionError("unexpected request")


@pytest.mark.parametrize(
    ("name", "exported"),
    [
        ("openai:gpt-4o-mini", "OPENAI_API_KEY"),
        ("openrouter:a/b", "OPENROUTER_API_KEY"),
        ("gemini:gemini-2.5-flash", "GEMINI_API_KEY"),
    ],
)
async def test_without_a_key_no_request_is_made(name: str, exported: str) -> None:
    async with writer_at(None, name, api_key=None) as writer:
        with pytest.raises(WriterFailed, match=f"needs a key.*{exported}") as failure:
            await drafted(writer)
    assert not failure.value.retryable


@pytest.mark.parametrize("key", ["line\nbreak", "schlüssel", "a\x00b"])
async def test_a_key_with_invalid_characters_is_reported(key: str, provider: Loopback) -> None:
    provider.script = _no_model
    async with writer_at(provider.url, api_key=key) as writer:
        with pytest.raises(WriterFailed, match="contains invalid characters") as failure:
            await drafted(writer)
    assert key not in str(failure.value)


async def test_an_unreachable_service_is_reported_with_a_start_command() -> None:
    async with writer_at(None, "ollama:x", environ={"OLLAMA_HOST": "127.0.0.1:9"}) as writer:
        with pytest.raises(WriterFailed, match=r"cannot be reached.*ollama serve") as failure:
            await drafted(writer)
    assert failure.value.retryable


def _in_turn(*scripts: Script) -> Script:
    turns = iter(scripts)

    def script(request: Request) -> Iterable[Step]:
        return next(turns)(request)

    return script


async def test_a_failure_before_the_first_token_is_retried(provider: Loopback) -> None:
    provider.requests.clear()
    provider.script = _in_turn(
        lambda request: refuse(503, retry_after="0"),
        lambda request: [STREAM, delta("", role="assistant")],  # cut before the first text
        lambda request: chat("A kite ", "flies."),
    )
    async with writer_at(provider.url, first_token_timeout_s=60, timeout_s=60) as writer:
        text, used = await drafted(writer)
    assert (text, used.prompt_tokens, used.completion_tokens) == ("A kite flies.", 40, 9)
    assert len(provider.requests) == 3


async def test_a_failure_after_the_first_token_is_not_retried(provider: Loopback) -> None:
    provider.requests.clear()
    provider.script = lambda request: [STREAM, delta("A kite ")]
    async with writer_at(provider.url, first_token_timeout_s=60, timeout_s=60) as writer:
        with pytest.raises(WriterFailed, match="closed the connection"):
            await drafted(writer)
    assert len(provider.requests) == 1


async def test_a_retry_after_beyond_the_timeout_is_not_waited_for(provider: Loopback) -> None:
    provider.requests.clear()
    provider.script = lambda request: refuse(429, retry_after="120")
    async with writer_at(provider.url) as writer:
        with pytest.raises(WriterFailed) as failure:
            await drafted(writer)
    assert failure.value.retry_after == 120
    assert not failure.value.timed_out
    assert len(provider.requests) == 1
