"""A real small language model writes; whatever nonsense that is, nothing unsupported is shown."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from bythebook.book import Book
from bythebook.config.settings import Settings, load_settings
from bythebook.grounding.verifier import SentenceVerifier, Supported, check
from bythebook.ingestion.read_book import read_book
from bythebook.providers.embeddings.local import LocalEmbedder
from bythebook.providers.reader import LocalReader
from bythebook.server.app import create_app
from bythebook.types import Evidence, Hit, Passage
from tests.server.asgi_client import Event, events_of
from tests.support.llama import running_llama
from tests.support.samples import small_book

pytestmark = pytest.mark.real

ASKED = "Why does a kite fly?"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_llama(tmp_path_factory.mktemp("llama")) as url:
        yield url


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    home = folder / "home"
    library = Book(load_settings({"home": home}, environ={}), new=True)
    asyncio.run(library.ingest(read_book(small_book(folder / "docs"))))
    return home


def _settings(home: Path, llama: str, writer: str, **model: Any) -> Settings:
    patient = {
        "timeout_s": 55,
        "first_token_timeout_s": 50,
        "idle_timeout_s": 20,
        "max_output_tokens": 30,
    }
    chosen = {"base_url": llama, **patient, **model}
    return load_settings({"home": home, "writer": writer, "model": chosen}, environ={})


def _stream(settings: Settings, question: str = ASKED) -> list[Event]:
    body = {
        "message": question,
        "session_id": str(uuid.uuid4()),
        "similarity_threshold": 0.3,
        "top_k": 1,
    }
    with TestClient(create_app(Book(settings))) as client:
        return events_of(client.post("/chat/stream", json=body).text)


async def _all_stand(told: list[Event], home: Path) -> None:
    """Every sentence that was shown, checked again against the book it cites, by itself."""
    passages: list[Passage] = list(read_book(home.parent / "docs").passages)
    everything = Evidence(tuple(Hit(passage, 1, 0.5, 0.9) for passage in passages))
    texts = [event.body["text"] for event in told if event.name == "delta"]
    assert re.search(r"\[\d\]$", texts[-1]), "a run without a citation"
    for text in texts:

        async def draft(said: str = text) -> Any:
            yield re.sub(r"\s*\[\d\]$", "", said).strip()

        verifier = SentenceVerifier(LocalEmbedder("minilm"), LocalReader())
        verdicts = [each async for each in check(draft(), everything, verifier)]
        assert verdicts
        assert all(isinstance(each, Supported) and each.is_own for each in verdicts), text


@pytest.mark.parametrize("writer", ["agents:smollm2", "openai:smollm2"])
async def test_an_answer_streams_from_a_real_model_through_the_check_with_citations(
    llama: str, home: Path, writer: str
) -> None:
    told = await asyncio.to_thread(_stream, _settings(home, llama, writer))
    names = [event.name for event in told]
    assert names[:2] == ["session", "retrieval"]
    assert names[-1] == "done"
    done = told[-1].body
    assert done["usage"]["calls"] == 1
    assert done["usage"]["prompt_tokens"] > 100
    assert 0 < done["usage"]["completion_tokens"] <= 30
    assert done["should_answer"], "the gate let it pass, and somebody wrote"
    assert names.count("citation") >= 1
    assert all("/read/docs/" in source["url"] for source in done["sources"])
    await _all_stand(told, home)


async def test_a_model_that_is_asked_about_nothing_in_the_book_is_not_asked(
    llama: str, home: Path
) -> None:
    settings = _settings(home, llama, "agents:smollm2")
    told = await asyncio.to_thread(_stream, settings, "Who won the chess championship of 1972?")
    done = told[-1].body
    assert not done["should_answer"]
    assert "usage" not in done


async def test_a_model_that_is_gone_leaves_the_book(home: Path) -> None:
    settings = _settings(home, "http://127.0.0.1:9/v1", "agents:smollm2")
    told = await asyncio.to_thread(_stream, settings)
    done = told[-1].body
    assert "the wind pushes it upwards" in done["response"]
    assert "these are the book's own sentences" in done["fallback"]
    await _all_stand(told, home)
