"""An ingest is idempotent, incremental and complete."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bythebook.errors import EmbedderFailed, IndexDamaged
from bythebook.ingestion.indexer import Indexer, IngestProgress, IngestResult
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.providers.testing import FakeEmbedder, MemoryCatalog, MemoryGenerationStore
from bythebook.types import VectorState
from tests.support.samples import read, small_book


class _Searchable(IngestProgress):
    def __init__(self, calls: list[bool]) -> None:
        self.calls = calls

    def searchable(self) -> None:
        self.calls.append(True)


class Parts:
    """Everything an ingest needs, in memory."""

    def __init__(self) -> None:
        self.embedder = FakeEmbedder()
        self.catalog = MemoryCatalog()
        self.store = MemoryGenerationStore()
        self.searchable: list[bool] = []

    async def ingest(self, folder: Path, *, allow_removal: bool = False) -> IngestResult:
        indexer = Indexer(self.catalog, self.store, self.embedder)
        progress = _Searchable(self.searchable)
        return await indexer.ingest(read(folder), progress=progress, allow_removal=allow_removal)

    async def served(self) -> set[str]:
        current = self.catalog.current()
        assert current is not None
        store = await self.store.open(current.name)
        entries = await store.fetch(list(self.catalog.passages()))
        assert len(entries) == await store.count()
        return {entry.passage.text for entry in entries}


@pytest.fixture
def context() -> Parts:
    return Parts()


async def test_a_first_ingest_embeds_everything(context: Parts, book_folder: Path) -> None:
    result = await context.ingest(book_folder)
    assert result.files_processed == 2
    assert result.chunks_created == result.embedded == result.changed == len(await context.served())
    assert (result.unchanged, result.removed, result.exit_code) == (0, 0, 0)
    assert result.coverage == 1


async def test_a_second_ingest_embeds_and_writes_nothing(context: Parts, book_folder: Path) -> None:
    first = await context.ingest(book_folder)
    generation = context.catalog.current()
    calls = len(context.embedder.calls)
    second = await context.ingest(book_folder)
    assert (second.embedded, second.changed, second.removed) == (0, 0, 0)
    assert second.unchanged == first.chunks_created
    assert len(context.embedder.calls) == calls
    assert context.catalog.current() == generation
    assert generation is not None
    assert first.generation == second.generation == generation.name


async def test_an_edit_costs_only_what_changed(context: Parts, book_folder: Path) -> None:
    await context.ingest(book_folder)
    page = book_folder / "intro.md"
    page.write_text(page.read_text().replace("100 degrees", "212 degrees"))
    result = await context.ingest(book_folder)
    assert (result.embedded, result.changed, result.removed) == (1, 1, 1)
    served = "\n".join(await context.served())
    assert "212 degrees" in served
    assert "100 degrees" not in served


async def test_a_removed_page_disappears(context: Parts, book_folder: Path) -> None:
    await context.ingest(book_folder)
    (book_folder / "intro.md").unlink()
    result = await context.ingest(book_folder)
    assert result.removed > 0
    assert result.embedded == 0
    assert not any("kettle" in text for text in await context.served())


async def test_a_renamed_page_embeds_nothing(context: Parts, book_folder: Path) -> None:
    await context.ingest(book_folder)
    (book_folder / "intro.md").rename(book_folder / "welcome.md")
    result = await context.ingest(book_folder)
    assert result.embedded == 0
    assert result.changed == result.removed > 0


async def test_line_endings_make_no_difference(context: Parts, book_folder: Path) -> None:
    await context.ingest(book_folder)
    for page in book_folder.rglob("*.md"):
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    result = await context.ingest(book_folder)
    assert (result.embedded, result.changed, result.removed) == (0, 0, 0)


async def test_an_interrupted_ingest_resumes_where_it_stopped(
    context: Parts, book_folder: Path
) -> None:
    write_pages(book_folder, range(40))
    await context.ingest(book_folder)
    write_pages(book_folder, range(40, 80))
    before, served = context.catalog.current(), await context.served()
    working, context.embedder = context.embedder, Stopping()
    with pytest.raises(KeyboardInterrupt):
        await context.ingest(book_folder)
    assert context.catalog.current() == before
    assert await context.served() == served
    context.embedder = working
    assert (await context.ingest(book_folder)).embedded == 40


class Stopping(FakeEmbedder):
    """Gives up at the first text, as a killed process does."""

    async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
        raise KeyboardInterrupt


def write_pages(folder: Path, numbers: range) -> None:
    for number in numbers:
        (folder / f"extra{number}.md").write_text(f"# Extra {number}\n\nText {number}.\n")


async def test_a_new_book_is_searchable_by_keywords_before_it_has_vectors(
    context: Parts, book_folder: Path
) -> None:
    write_pages(book_folder, range(40))
    working, context.embedder = context.embedder, Stopping()
    with pytest.raises(KeyboardInterrupt):
        await context.ingest(book_folder)
    assert context.searchable == [True]
    pending = context.catalog.current()
    assert pending is not None
    assert pending.vectors is VectorState.PENDING
    assert "Text 7." in "\n".join(await context.served())
    context.embedder = working
    result = await context.ingest(book_folder)
    ready = context.catalog.current()
    assert ready is not None
    assert ready.vectors is VectorState.READY
    assert result.embedded == result.chunks_created == pending.passages == ready.passages


async def test_a_pending_book_that_did_not_change_is_not_published_twice(
    context: Parts, book_folder: Path
) -> None:
    write_pages(book_folder, range(40))
    context.embedder = Stopping()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            await context.ingest(book_folder)
    assert len(context.store.generations) == 1


async def test_a_served_book_keeps_its_vectors_while_it_grows(
    context: Parts, book_folder: Path
) -> None:
    await context.ingest(book_folder)
    served = context.catalog.current()
    write_pages(book_folder, range(40))
    context.embedder = Stopping()
    with pytest.raises(KeyboardInterrupt):
        await context.ingest(book_folder)
    assert context.searchable == []
    assert context.catalog.current() == served


async def test_another_book_in_the_same_home_does_not_wait_for_its_vectors(
    context: Parts, book_folder: Path, tmp_path: Path
) -> None:
    await context.ingest(book_folder)
    other = tmp_path / "other"
    other.mkdir()
    write_pages(other, range(40))
    context.embedder = Stopping()
    with pytest.raises(KeyboardInterrupt):
        await context.ingest(other)
    assert context.searchable == [True]
    assert "Text 7." in "\n".join(await context.served())


class Faulty(FakeEmbedder):
    """Good vectors, until something is done to them."""

    def __init__(self, fault: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__()
        self._fault = fault

    async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
        return self._fault(await super().embed(texts, role=role))


def _with_last(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def fault(vectors: np.ndarray) -> np.ndarray:
        vectors[-1] = value
        return vectors

    return fault


_FAULTS = {
    "not a number": _with_last(np.nan),
    "infinite": _with_last(np.inf),
    "of no length": _with_last(0.0),
    "of another dimension": lambda vectors: vectors[:, :-1],
    "too few": lambda vectors: vectors[:-1],
    "too many": lambda vectors: np.concatenate([vectors, vectors[:1]]),
    "none": lambda vectors: vectors[:0],
    "flat": lambda vectors: vectors.ravel(),
}


@pytest.mark.parametrize("fault", _FAULTS.values(), ids=_FAULTS)
async def test_invalid_vectors_are_not_stored(
    context: Parts, book_folder: Path, fault: Callable[[np.ndarray], np.ndarray]
) -> None:
    await context.ingest(book_folder)
    old = await context.served()
    (book_folder / "new.md").write_text("# New\n\nSomething new. Something else.\n")
    new = {passage.text for passage in read(book_folder).passages}
    working, context.embedder = context.embedder, Faulty(fault)
    with pytest.raises(EmbedderFailed, match="Check the embedder"):
        await context.ingest(book_folder)
    assert await context.served() in (old, new)
    context.embedder = working
    assert (await context.ingest(book_folder)).embedded == 1
    assert await context.served() == new


async def test_another_embedder_gets_its_own_vectors(context: Parts, book_folder: Path) -> None:
    first = await context.ingest(book_folder)
    context.embedder = FakeEmbedder(name="fake:other")
    result = await context.ingest(book_folder)
    assert result.embedded == first.chunks_created
    current = context.catalog.current()
    assert current is not None
    assert current.embedder == "fake:other"


async def test_a_store_that_loses_passages_is_not_served(context: Parts, book_folder: Path) -> None:
    await context.ingest(book_folder)
    before = context.catalog.current()

    class Forgetful(MemoryGenerationStore):
        async def publish(self, generation, entries):  # type: ignore[no-untyped-def]
            return await super().publish(generation, list(entries)[1:])

    context.store = Forgetful()
    (book_folder / "new.md").write_text("# New\n\nSomething new.\n")
    with pytest.raises(IndexDamaged, match="instead of"):
        await context.ingest(book_folder)
    assert context.catalog.current() == before


@pytest.mark.parametrize("site_url", [None, "https://book.example"])
async def test_a_missing_site_url_is_a_warning(tmp_path: Path, site_url: str | None) -> None:
    book = read_book(small_book(tmp_path / "docs"), SiteOptions(url=site_url))
    indexer = Indexer(MemoryCatalog(), MemoryGenerationStore(), FakeEmbedder())
    result = await indexer.ingest(book, progress=IngestProgress())
    expected = [] if site_url else ["No site URL: links are relative. Pass --site-url."]
    assert list(result.warnings) == expected


@pytest.mark.parametrize("text", ["\n\n", "<!-- nothing -->\n", "---\ntitle: A\n---\n"])
async def test_a_book_without_passages_does_not_replace_another(
    context: Parts, book_folder: Path, tmp_path: Path, text: str
) -> None:
    await context.ingest(book_folder)
    served = await context.served()
    blank = tmp_path / "blank"
    blank.mkdir()
    (blank / "a.md").write_text(text)
    result = await context.ingest(blank)
    assert (result.exit_code, result.published, result.removed) == (1, False, 0)
    assert "--allow-removal" in result.errors[-1]
    assert await context.served() == served
    forced = await context.ingest(blank, allow_removal=True)
    assert (forced.exit_code, forced.published, forced.chunks_created) == (0, True, 0)
    assert await context.served() == set()


async def test_errors_and_half_of_the_passages_lost_keep_the_old_book(
    context: Parts, book_folder: Path
) -> None:
    write_pages(book_folder, range(20))
    before = await context.ingest(book_folder)
    for number in range(15):
        (book_folder / f"extra{number}.md").write_bytes(b"\xff\xfe")
    lost = await context.ingest(book_folder)
    assert (lost.exit_code, lost.published, lost.unchanged) == (1, False, before.chunks_created)
    assert len(await context.served()) == before.chunks_created
    for number in range(5, 15):
        (book_folder / f"extra{number}.md").write_text(f"# Extra {number}\n\nAgain {number}.\n")
    few = await context.ingest(book_folder)
    assert few.published  # with errors, but most of the book is there
    assert few.exit_code == 1
