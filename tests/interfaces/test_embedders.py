"""Conformance suite of Embedder, on every provider."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from bythebook.errors import UnknownProvider
from bythebook.interfaces.models import Embedder
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.testing import FakeEmbedder
from tests.providers.hosted import embedder_at
from tests.providers.loopback import Loopback, embeddings

_EMBEDDERS: dict[str, Embedder] = {
    "fake": FakeEmbedder(),
    "minilm": LocalEmbedder("minilm"),
    "e5-small": LocalEmbedder("e5-small"),
}


_HOSTED = (
    "openai:text-embedding-3-small",
    "cohere:embed-multilingual-v3.0",
    "gemini:gemini-embedding-001",
    "ollama:nomic-embed-text",
)


@pytest.fixture(scope="module")
def provider() -> Iterator[Loopback]:
    with Loopback(embeddings) as provider:
        yield provider


@pytest.fixture(
    params=[*_EMBEDDERS, *(pytest.param(n, marks=pytest.mark.loopback) for n in _HOSTED)]
)
async def embedder(request: pytest.FixtureRequest, provider: Loopback) -> AsyncIterator[Embedder]:
    if request.param in _EMBEDDERS:
        yield _EMBEDDERS[request.param]
    else:
        patience = {"timeout_s": 60, "query_timeout_s": 60}
        async with embedder_at(provider.url, request.param, **patience) as embedder:
            yield embedder


async def test_gives_one_unit_vector_for_each_text(embedder: Embedder) -> None:
    vectors = await embedder.embed(["a kite", "a kettle of water", "wind"], role="passage")
    assert vectors.shape == (3, embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: Embedder) -> None:
    alone = await embedder.embed(["the wind lifts a kite"], role="passage")
    among = await embedder.embed(["x", "the wind lifts a kite", "word " * 90], role="passage")
    assert np.allclose(alone[0], among[1], atol=1e-4)


async def test_related_texts_are_nearer_than_unrelated_ones(embedder: Embedder) -> None:
    query = await embedder.embed(["what lifts a kite in the wind"], role="query")
    texts = ["the wind lifts the kite", "the parliament passed a law"]
    near, far = await embedder.embed(texts, role="passage")
    # Less than half as far off: how widely cosines spread differs from model to model.
    assert 1 - query[0] @ near < (1 - query[0] @ far) / 2


async def test_text_beyond_the_limit_still_counts(embedder: Embedder) -> None:
    start = "the parliament passed a law " * embedder.limit
    vectors = await embedder.embed([start, start + "the kite flies " * 300], role="passage")
    assert vectors[0] @ vectors[1] < 0.999


async def test_an_empty_list_and_an_empty_text_are_no_error(embedder: Embedder) -> None:
    assert (await embedder.embed([], role="passage")).shape == (0, embedder.dimension)
    assert np.isfinite(await embedder.embed([""], role="passage")).all()


async def test_the_event_loop_goes_on_while_it_embeds(embedder: Embedder) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    await embedder.embed(["word " * 200] * 16, role="passage")
    await asyncio.sleep(0)
    heart.cancel()
    assert beats > 0


def test_an_unknown_local_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownProvider, match="minilm"):
        LocalEmbedder("nothing")
