"""Hosted embedders: requests, batches, windows of long texts, and resumed ingests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.book import Book
from bythebook.config.settings import load_settings
from bythebook.errors import EmbedderFailed, UnknownProvider
from bythebook.ingestion.read_book import read_book
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.embeddings.hosted import HostedEmbedder, cut
from bythebook.providers.http.client import HttpClient
from bythebook.providers.http.credentials import embedder_account
from bythebook.types import Question
from tests.providers.hosted import embedder_at
from tests.providers.loopback import Loopback, Request, Step, embeddings, refuse
from tests.support.samples import SAMPLE_BOOK


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback(embeddings) as provider:
        yield provider


@pytest.mark.loopback
async def test_cohere_requests_have_the_input_type_and_no_truncation(provider: Loopback) -> None:
    async with embedder_at(provider.url + "/v2", "cohere:embed-english-v3.0") as embedder:
        vectors = await embedder.embed([f"text {n}" for n in range(200)], role="passage")
        await embedder.embed(["a question"], role="query")
    assert vectors.shape == (200, 1024)
    *documents, question = [request.body for request in provider.requests]
    assert sorted(len(body["texts"]) for body in documents) == [8, 96, 96]
    assert {body["input_type"] for body in documents} == {"search_document"}
    assert question["input_type"] == "search_query"
    assert {body["truncate"] for body in (*documents, question)} == {"NONE"}
    assert {request.path for request in provider.requests} == {"/v2/embed"}


@pytest.mark.loopback
async def test_gemini_requests_have_the_task_and_the_dimension(provider: Loopback) -> None:
    async with embedder_at(
        provider.url + "/v1beta", "gemini:gemini-embedding-001", query_timeout_s=20
    ) as embedder:
        [vector] = await embedder.embed(["a question"], role="query")
    [request] = provider.requests
    assert request.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert request.headers["x-goog-api-key"] == "sk-secret"
    [asked] = request.body["requests"]
    assert (asked["taskType"], asked["outputDimensionality"]) == ("RETRIEVAL_QUERY", 768)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.loopback
async def test_openai_vectors_can_be_shortened(provider: Loopback) -> None:
    name = "openai:text-embedding-3-large@256"
    async with embedder_at(provider.url, name) as embedder:
        assert (await embedder.embed(["a"], role="query")).shape == (1, 256)
        assert embedder.name == name
    assert provider.requests[0].body["dimensions"] == 256
    assert provider.requests[0].body["model"] == "text-embedding-3-large"


@pytest.mark.loopback
async def test_the_number_of_concurrent_batches_is_limited(provider: Loopback) -> None:
    most = 0

    def script(request: Request) -> Iterator[Step]:
        nonlocal most
        most = max(most, provider.open)
        while most < 3:  # until as many are under way as may be
            yield 0.01
            most = max(most, provider.open)
        yield from embeddings(request)

    provider.script = script
    name = "cohere:embed-english-v3.0"
    async with embedder_at(provider.url, name, concurrency=3) as embedder:
        await embedder.embed(["x"] * 96 * 8, role="passage")
    assert most == 3
    assert len(provider.requests) == 8


@pytest.mark.loopback
async def test_texts_that_are_too_long_are_split_further(
    provider: Loopback,
) -> None:
    def script(request: Request) -> Iterator[Step]:
        if any(len(text.split()) > 60 for text in request.body["texts"]):
            yield from refuse(400, "too many tokens: max tokens per text is 60")
        else:
            yield from embeddings(request)

    provider.script = script
    long = " ".join(f"word{n}" for n in range(200))
    async with embedder_at(provider.url, "cohere:embed-english-v3.0") as embedder:
        whole, start, alone = await embedder.embed([long, long[:300], "kite"], role="passage")
        assert (await embedder.embed(["kite"], role="passage"))[0] @ alone == pytest.approx(1)
        assert whole @ start < 0.999
    shown = {word for r in provider.requests for text in r.body["texts"] for word in text.split()}
    assert shown >= set(long.split())


@given(st.text(max_size=400), st.integers(2, 60))
def test_windows_contain_the_whole_text_and_fit(text: str, room: int) -> None:
    windows = list(cut(text, room))
    assert all(estimate_tokens(window) <= room for window in windows)
    if len(windows) > 1:
        rest = "".join(text.split())
        for window in windows:  # each goes on where the one before has not ended yet
            piece = "".join(window.split())
            assert piece in "".join(text.split())
        assert set("".join(windows)) >= set(rest)
    else:
        assert windows == [text]


def test_windows_overlap() -> None:
    words = [f"w{n}" for n in range(500)]
    windows = [window.split() for window in cut(" ".join(words), 50)]
    assert [word for window in windows for word in window if word] != words  # they overlap
    assert list(dict.fromkeys(word for window in windows for word in window)) == words


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gemini:text-embedding-004", "gemini-embedding-001"),
        ("gemini:nothing", "@768"),
        ("cohere:nothing", "embed-multilingual-v3.0"),
        ("openai:nothing", "nothing@768"),
        ("openai:text-embedding-3-small@many", "@768"),
        ("ollama:nothing", "nomic-embed-text"),
    ],
)
def test_an_unusable_model_is_reported_with_an_alternative(name: str, hint: str) -> None:
    settings = load_settings(environ={})
    provider, _, model = name.partition(":")
    with pytest.raises(UnknownProvider) as failure:
        account = embedder_account(provider, model, settings)
        HostedEmbedder(account, settings.embedding, web=HttpClient())
    assert hint in failure.value.hint


def test_ollama_tags_and_given_dimensions_are_read() -> None:
    settings = load_settings(environ={})

    def dimension(provider: str, model: str) -> int:
        account = embedder_account(provider, model, settings)
        return HostedEmbedder(account, settings.embedding, web=HttpClient()).dimension

    assert dimension("ollama", "nomic-embed-text:v1.5") == 768
    assert dimension("ollama", "my-own:latest@640") == 640
    assert dimension("openai", "BAAI/bge-base-en@768") == 768


# --- a book of vectors made elsewhere -------------------------------------------------------------


@pytest.mark.loopback
def test_an_interrupted_ingest_resumes(provider: Loopback, tmp_path: Path) -> None:
    book = read_book(SAMPLE_BOOK / "docs")
    settings = load_settings(
        {
            "home": tmp_path / "home",
            "embedder": "openai:tiny@32",
            "embedding": {"base_url": provider.url, "timeout_s": 20, "query_timeout_s": 20},
        },
        environ={},
    )

    def dies(request: Request) -> Iterator[Step]:
        yield from embeddings(request) if len(provider.requests) <= 6 else refuse(401)

    async def ingest() -> int:
        library = Book(settings, new=True)
        try:
            return (await library.ingest(book)).embedded
        finally:
            await library.close()

    provider.script = dies
    with pytest.raises(EmbedderFailed, match="did not accept"):
        asyncio.run(ingest())
    provider.script = embeddings
    left = asyncio.run(ingest())
    assert 0 < left < len({passage.id for passage in book.passages})
    assert asyncio.run(ingest()) == 0

    async def search() -> int:
        library = Book(settings)
        try:
            return len((await library.search(Question("What is a robot?"))).hits)
        finally:
            await library.close()

    assert asyncio.run(search()) > 0
