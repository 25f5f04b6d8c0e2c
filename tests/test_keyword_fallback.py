"""Keyword search answers while the index or the embedder does not respond."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bythebook.answering.answer_cache import AnswerCache
from bythebook.book import Book
from bythebook.errors import EmbedderFailed, StoreFailed
from bythebook.interfaces.store import Candidate, IndexedPassage, PassageStore
from bythebook.providers.flat_index import keyword_store
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
    MemoryThreads,
)
from bythebook.refusals import Refusal
from bythebook.types import Answer, Question, VectorState
from tests.support.samples import read

QUESTION = Question("At how many degrees does a kettle boil water?")


class Line:
    """To a server that may be cut."""

    cut = False
    lacking = 0  # passages

    def use(self) -> None:
        if self.cut:
            raise StoreFailed("The store does not answer.")


class FarStore:
    def __init__(self, store: PassageStore, line: Line) -> None:
        self._store, self._line = store, line

    async def find(self, *given: Any, **more: Any) -> list[Candidate]:
        self._line.use()
        return await self._store.find(*given, **more)

    async def fetch(self, passage_ids: Sequence[str]) -> list[IndexedPassage]:
        self._line.use()
        return await self._store.fetch(passage_ids)

    async def count(self) -> int:
        self._line.use()
        return await self._store.count() - self._line.lacking

    async def close(self) -> None:
        """Nothing to close."""


class FarGenerations(MemoryGenerationStore):
    def __init__(self) -> None:
        super().__init__()
        self.line = Line()

    async def open(self, generation: str) -> PassageStore:  # type: ignore[override]
        self.line.use()
        return FarStore(await super().open(generation), self.line)


class MoodyEmbedder(FakeEmbedder):
    failing = False

    async def embed(self, texts: Sequence[str], **more: Any) -> Any:
        if self.failing:
            raise EmbedderFailed("The embedder does not answer.")
        return await super().embed(texts, **more)


class Scene:
    def __init__(self, **more: Any) -> None:
        self.store, self.embedder, self.catalog = FarGenerations(), MoodyEmbedder(), MemoryCatalog()
        self.more = {"make_keyword_store": keyword_store, "retry_s": 0.0, **more}
        self.library = self.open()

    def open(self) -> Book:
        return Book(
            embedder=self.embedder,
            store=self.store,
            catalog=self.catalog,
            threads=MemoryThreads(),
            **self.more,
        )


@pytest.fixture
async def scene(book_folder: Path) -> Scene:
    scene = Scene()
    await scene.library.ingest(read(book_folder))
    return scene


async def _vectors(library: Book) -> VectorState:
    reply = await library.reply(QUESTION)
    assert isinstance(reply.outcome, Answer)
    assert "100 degrees" in reply.outcome.text
    return reply.vectors


async def test_keyword_search_replaces_a_failing_index_until_it_responds(scene: Scene) -> None:
    assert await _vectors(scene.library) is VectorState.READY
    scene.store.line.cut = True
    assert await _vectors(scene.library) is VectorState.AWAY
    assert (await scene.library.search(QUESTION)).vectors is VectorState.AWAY
    assert (await scene.library.stores())["index"] != "ok"
    scene.store.line.cut = False
    assert await _vectors(scene.library) is VectorState.READY
    assert (await scene.library.stores())["index"] == "ok"


async def test_an_index_with_missing_passages_is_unhealthy(scene: Scene) -> None:
    assert (await scene.library.stores())["index"] == "ok"
    scene.store.line.lacking = 1
    assert "catalog" in (await scene.library.stores())["index"]


async def test_a_book_opens_without_its_index_and_uses_it_later(scene: Scene) -> None:
    scene.store.line.cut = True
    library = scene.open()
    assert await _vectors(library) is VectorState.AWAY
    assert (await library.stores())["index"] != "ok"
    scene.store.line.cut = False
    assert await _vectors(library) is VectorState.READY


async def test_a_failing_embedder_leaves_keyword_search(scene: Scene) -> None:
    scene.embedder.failing = True
    assert await _vectors(scene.library) is VectorState.AWAY
    scene.store.line.cut = True
    assert await _vectors(scene.library) is VectorState.AWAY
    scene.embedder.failing = scene.store.line.cut = False
    assert await _vectors(scene.library) is VectorState.READY


async def test_a_selection_is_scored_by_keywords_during_an_outage(scene: Scene) -> None:
    scene.embedder.failing = True
    said = "A kettle boils water at 100 degrees Celsius."
    reply = await scene.library.reply(Question(QUESTION.text, selection=said))
    assert isinstance(reply.outcome, Answer)
    assert reply.vectors is VectorState.AWAY
    with pytest.raises(EmbedderFailed):
        await scene.library.reply(Question("Who invented the sail?", selection=said))


async def test_an_outage_is_never_reported_as_a_refusal(scene: Scene) -> None:
    unknown = Question("Who won the football world cup of 1974?")
    reply = await scene.library.reply(unknown)
    assert isinstance(reply.outcome, Refusal)
    scene.store.line.cut = True
    for library in (scene.library, scene.open()):  # cut while open, and cut before
        for _ in range(2):
            with pytest.raises(StoreFailed):
                await library.reply(unknown)
    scene.store.line.cut, scene.embedder.failing = False, True
    with pytest.raises(EmbedderFailed):  # another question: vectors of known ones are cached
        await scene.library.reply(Question("Who won the football world cup of 1990?"))


async def test_a_keyword_search_that_finds_nothing_is_an_error_during_an_outage(
    scene: Scene,
) -> None:
    nothing = Question("zzzz qqqq")
    scene.embedder.failing = True
    with pytest.raises(EmbedderFailed):
        await scene.library.search(nothing)


async def test_replies_made_during_an_outage_are_not_cached(book_folder: Path) -> None:
    scene = Scene(answer_cache=AnswerCache())
    await scene.library.ingest(read(book_folder))
    scene.embedder.failing = True
    assert await _vectors(scene.library) is VectorState.AWAY
    scene.embedder.failing = False
    assert await _vectors(scene.library) is VectorState.READY


async def test_an_outage_without_a_keyword_store_is_an_error(book_folder: Path) -> None:
    scene = Scene(make_keyword_store=None)
    await scene.library.ingest(read(book_folder))
    scene.embedder.failing = True
    with pytest.raises(EmbedderFailed):
        await scene.library.reply(QUESTION)
    scene.embedder.failing, scene.store.line.cut = False, True
    with pytest.raises(StoreFailed):
        await scene.library.reply(QUESTION)
    with pytest.raises(StoreFailed):
        await scene.open().reply(QUESTION)
