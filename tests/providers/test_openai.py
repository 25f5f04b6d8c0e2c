"""Writer for OpenAI-compatible endpoints: requests, complete drafts, usage, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.errors import Truncated, WriterFailed
from bythebook.providers.llm.chat import OpenAIWriter
from bythebook.providers.llm.draft import ThinkFilter
from bythebook.types import Question, Sentence, Usage
from tests.providers.hosted import EVIDENCE, QUESTION, compose, drafted, model_at, writer_at
from tests.providers.loopback import (
    DONE,
    HANG,
    LAST,
    STREAM,
    Loopback,
    Request,
    Step,
    chat,
    chunk,
    delta,
    refuse,
    reply,
)
from tests.support.writers import library_with

pytestmark = pytest.mark.loopback


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(lambda request: chat("A kite ", "flies.")) as provider:
        yield provider


async def test_the_request_asks_for_a_stream_with_usage(provider: Loopback) -> None:
    async with writer_at(provider.url + "/v1", max_output_tokens=77) as writer:
        assert await drafted(writer) == ("A kite flies.", Usage(40, 9, 1, None))
    [request] = provider.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": QUESTION.text},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "max_tokens": 77,
    }


_COMPLETE: dict[str, list[Step]] = {
    "finish and [DONE]": chat("A kite."),
    "null finish and [DONE], as Ollama": [STREAM, delta("A kite."), DONE, LAST],
    "finish without [DONE]": [STREAM, delta("A kite."), delta(None, "stop"), LAST],
    "finish and a torn connection": [STREAM, delta("A kite."), delta(None, "stop")],
    "finish and an open connection": [STREAM, delta("A kite.", "stop"), HANG],
    "a finish of another name": [STREAM, delta("A kite."), delta(None, "eos"), LAST],
    "comments and thoughts": [
        STREAM,
        chunk(b": PROCESSING\n\n"),
        delta(None, reasoning="Hm."),
        delta("A kite."),
        DONE,
        LAST,
    ],
    "thoughts aloud": chat("<thi", "nk>Kites? Hm", ".</thi", "nk>\n\nA ", "kite."),
    "line ends of Windows": [
        STREAM,
        chunk(b'data: {"choices": [{"delta": {"content": "A kite."}}]}\r\n\r\n'),
        chunk(b"data: [DONE]\r\n\r\n"),
        LAST,
    ],
    "no space, in pieces": [
        STREAM,
        chunk(b'event: x\nid: 7\ndata:{"choices": [{"delta": {"con'),
        0.02,
        chunk(b'tent": "A kite."}}]}\n\ndata:[DONE]\n\n'),
        LAST,
    ],
    "in one piece": reply({"choices": [{"message": {"content": "A kite."}}]}),
}


@given(st.text("<think/>a b", max_size=40), st.lists(st.integers(1, 9), max_size=20))
def test_a_think_block_is_removed_however_the_text_is_split(text: str, sizes: list[int]) -> None:
    cuts, rest = [], text
    for size in sizes:
        cuts.append(rest[:size])
        rest = rest[size:]
    think_filter = ThinkFilter()
    left = "".join(think_filter.remove(piece) for piece in [*cuts, rest])
    start = text.lstrip()
    if start.startswith("<think>"):
        assert left.lstrip() == start.partition("</think>")[2].lstrip()
    else:
        assert left == ("" if "<think>".startswith(start) else text)


@pytest.mark.parametrize("name", _COMPLETE)
async def test_a_complete_draft_is_accepted(name: str, provider: Loopback) -> None:
    provider.script = lambda request: _COMPLETE[name]
    async with writer_at(provider.url) as writer:
        text, _ = await drafted(writer)
    assert text == "A kite."


async def test_a_truncated_draft_keeps_its_text_and_usage(provider: Loopback) -> None:
    provider.script = lambda request: chat("A kite flies. It", finish="length", cost=(30, 5))
    pieces = []
    async with writer_at(provider.url) as writer:
        with pytest.raises(Truncated, match=r"reached the maximum length.*max_output_tokens"):
            async for piece in writer.write(QUESTION, EVIDENCE, ()):
                pieces.append(piece)
    assert pieces == ["A kite flies. It", Usage(30, 5, 1)]


async def test_usage_is_estimated_if_the_endpoint_reports_none(provider: Loopback) -> None:
    provider.script = lambda request: [STREAM, delta("A kite flies by wind."), DONE, LAST]
    async with writer_at(provider.url, price_in=2.0, price_out=10.0) as writer:
        _, used = await drafted(writer)
    assert 10 < used.prompt_tokens < 40
    assert used.completion_tokens == 6
    assert used.cost_usd == pytest.approx((used.prompt_tokens * 2 + 60) / 1e6)


@pytest.mark.parametrize(
    ("said", "gone", "instead"),
    [
        ("Unsupported value: 'temperature' does not support 0", "temperature", None),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("stream_options: Extra inputs are not permitted", "stream_options", None),
    ],
)
async def test_a_rejected_parameter_is_left_out_of_later_requests(
    said: str, gone: str, instead: str | None, provider: Loopback
) -> None:
    def script(request: Request) -> list[Step]:
        return refuse(400, said) if gone in request.body else chat("A kite.")

    provider.script = script
    async with writer_at(provider.url) as writer:
        for _ in range(2):
            assert (await drafted(writer))[0] == "A kite."
    assert [gone in request.body for request in provider.requests] == [True, False, False]
    assert instead is None or instead in provider.requests[-1].body


async def test_a_probe_uses_few_tokens_or_raises(provider: Loopback) -> None:
    provider.script = lambda request: chat("Ye", finish="length")
    async with writer_at(provider.url) as writer:
        await writer.probe()
        assert provider.requests[0].body["max_tokens"] <= 16
        provider.script = lambda request: refuse(404, "no such model")
        with pytest.raises(WriterFailed, match="no model 'test-model'"):
            await writer.probe()


# --- cancellation ---------------------------------------------------------------------------------


async def _until(happened: Callable[[], object]) -> None:
    """Wait until it happened, for less time than an uncancelled call would last."""
    async with asyncio.timeout(30):
        while not happened():  # noqa: ASYNC110 - it happens on the provider's thread
            await asyncio.sleep(0.005)


def _endless_tokens(request: Request) -> Iterator[Step]:
    yield STREAM
    while True:
        yield delta("word ")
        yield 0.01


@pytest.mark.parametrize("when", ["streaming", "idle", "before the first token"])
async def test_cancelling_the_reader_ends_the_call_at_once(when: str, provider: Loopback) -> None:
    quiet: list[Step] = [STREAM, HANG] if when.startswith("before") else [STREAM, delta("A"), HANG]
    provider.script = _endless_tokens if when == "streaming" else lambda request: quiet
    async with writer_at(provider.url) as writer:
        first = asyncio.Event()

        async def read() -> None:
            async with aclosing(writer.write(QUESTION, EVIDENCE, ())) as pieces:
                async for _ in pieces:
                    first.set()

        reader = asyncio.create_task(read())
        await _until(lambda: provider.requests and (first.is_set() or when.startswith("before")))
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await _until(lambda: provider.left)


async def test_cancelling_a_question_ends_the_call_at_once(
    provider: Loopback, book_folder: Path
) -> None:
    said = ["A kettle boils water at 100 degrees Celsius. [1] ", "A kettle "]
    provider.script = lambda request: [STREAM, *map(delta, said), HANG]
    async with writer_at(provider.url) as writer:
        library = await library_with(book_folder, lambda index: writer)
        question = Question("At how many degrees does a kettle boil water?", min_score=0.0)
        shown = asyncio.Event()

        async def listen() -> None:
            async with aclosing(library.ask(question)) as journey:
                async for event in journey:
                    if isinstance(event, Sentence):
                        shown.set()

        reader = asyncio.create_task(listen())
        async with asyncio.timeout(30):
            await shown.wait()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await _until(lambda: provider.left)
        await library.close()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("channel \ud83d", "\ude00 that"), "channel \U0001f600 that"),
        (("a \ud83d", " b"), "a \ufffd b"),
        (("\udc00 a",), "\ufffd a"),
        (("a\0b \ud83d", "\ud83d", "\ude00."), "a\ufffdb \ufffd\U0001f600."),
        (("A kite. \ud83d",), "A kite. "),
    ],
)
async def test_halves_of_a_character_are_joined_or_replaced(
    provider: Loopback, texts: tuple[str, ...], expected: str
) -> None:
    provider.script = lambda _: chat(*texts)
    async with writer_at(provider.url) as writer:
        text, _ = await drafted(writer)
    assert text == expected


@pytest.mark.parametrize("count", [10**30, 10**9, -1, True, "7", 1.5, None])
async def test_a_token_count_that_cannot_be_is_replaced_by_an_estimate(
    provider: Loopback, count: Any
) -> None:
    provider.script = lambda _: chat("A kite flies.", cost=(count, count))
    async with writer_at(provider.url) as writer:
        _, usage = await drafted(writer)
    assert 0 < usage.prompt_tokens < 1000
    assert usage.completion_tokens == 4


async def test_the_model_keeps_how_its_last_call_ended(provider: Loopback) -> None:
    async with model_at(provider.url) as model:
        writer = OpenAIWriter(model, compose=compose)
        provider.script = lambda _: refuse(401)
        with pytest.raises(WriterFailed):
            await drafted(writer)
        assert model.failure is not None and "openai:test-model" in model.failure.message
        provider.script = lambda _: chat("A kite flies.")
        await drafted(writer)
        assert model.failure is None
