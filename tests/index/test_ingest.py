"""Ingest: idempotent, incremental, whole."""

from pathlib import Path

import pytest

from bythebook.errors import IndexDamaged
from bythebook.index.ingest import IngestResult, ingest
from bythebook.providers.fake import FakeEmbedder, MemoryCatalog, MemoryShelf
from tests.samples import read


class Desk:
    """Everything an ingest needs, in memory."""

    def __init__(self) -> None:
        self.embedder = FakeEmbedder()
        self.catalog = MemoryCatalog()
        self.shelf = MemoryShelf()

    async def ingest(self, folder: Path) -> IngestResult:
        return await ingest(
            read(folder), catalog=self.catalog, shelf=self.shelf, embedder=self.embedder
        )

    async def served(self) -> set[str]:
        current = self.catalog.current()
        assert current is not None
        store = await self.shelf.open(current.name)
        entries = await store.fetch(list(self.catalog.passages()))
        assert len(entries) == await store.count()
        return {entry.passage.text for entry in entries}


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_first_ingest_embeds_everything(desk: Desk, book_folder: Path) -> None:
    result = await desk.ingest(book_folder)
    assert result.files_processed == 2
    assert result.chunks_created == result.embedded == result.changed == len(await desk.served())
    assert (result.unchanged, result.removed, result.exit_code) == (0, 0, 0)
    assert result.coverage == 1


async def test_a_second_ingest_embeds_and_writes_nothing(desk: Desk, book_folder: Path) -> None:
    first = await desk.ingest(book_folder)
    generation = desk.catalog.current()
    calls = len(desk.embedder.calls)
    second = await desk.ingest(book_folder)
    assert (second.embedded, second.changed, second.removed) == (0, 0, 0)
    assert second.unchanged == first.chunks_created
    assert len(desk.embedder.calls) == calls
    assert desk.catalog.current() == generation


async def test_an_edit_costs_only_what_changed(desk: Desk, book_folder: Path) -> None:
    await desk.ingest(book_folder)
    page = book_folder / "intro.md"
    page.write_text(page.read_text().replace("100 degrees", "212 degrees"))
    result = await desk.ingest(book_folder)
    assert (result.embedded, result.changed, result.removed) == (1, 1, 1)
    served = "\n".join(await desk.served())
    assert "212 degrees" in served
    assert "100 degrees" not in served


async def test_a_removed_page_disappears(desk: Desk, book_folder: Path) -> None:
    await desk.ingest(book_folder)
    (book_folder / "intro.md").unlink()
    result = await desk.ingest(book_folder)
    assert result.removed > 0
    assert result.embedded == 0
    assert not any("kettle" in text for text in await desk.served())


async def test_a_renamed_page_embeds_nothing(desk: Desk, book_folder: Path) -> None:
    await desk.ingest(book_folder)
    (book_folder / "intro.md").rename(book_folder / "welcome.md")
    result = await desk.ingest(book_folder)
    assert result.embedded == 0
    assert result.changed == result.removed > 0


async def test_line_endings_make_no_difference(desk: Desk, book_folder: Path) -> None:
    await desk.ingest(book_folder)
    for page in book_folder.rglob("*.md"):
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    result = await desk.ingest(book_folder)
    assert (result.embedded, result.changed, result.removed) == (0, 0, 0)


async def test_an_interrupted_ingest_resumes_where_it_stopped(
    desk: Desk, book_folder: Path
) -> None:
    class Stopping(FakeEmbedder):
        async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    for number in range(40):
        (book_folder / f"extra{number}.md").write_text(f"# Extra {number}\n\nText {number}.\n")
    await desk.ingest(book_folder)
    for number in range(40, 80):
        (book_folder / f"extra{number}.md").write_text(f"# Extra {number}\n\nText {number}.\n")
    before, served = desk.catalog.current(), await desk.served()
    working, desk.embedder = desk.embedder, Stopping()
    with pytest.raises(KeyboardInterrupt):
        await desk.ingest(book_folder)
    assert desk.catalog.current() == before
    assert await desk.served() == served
    desk.embedder = working
    assert (await desk.ingest(book_folder)).embedded == 40


async def test_another_embedder_gets_its_own_vectors(desk: Desk, book_folder: Path) -> None:
    first = await desk.ingest(book_folder)
    desk.embedder = FakeEmbedder(name="fake:other")
    result = await desk.ingest(book_folder)
    assert result.embedded == first.chunks_created
    current = desk.catalog.current()
    assert current is not None
    assert current.embedder == "fake:other"


async def test_a_store_that_loses_passages_is_not_served(desk: Desk, book_folder: Path) -> None:
    await desk.ingest(book_folder)
    before = desk.catalog.current()

    class Forgetful(MemoryShelf):
        async def publish(self, generation, entries):  # type: ignore[no-untyped-def]
            return await super().publish(generation, list(entries)[1:])

    desk.shelf = Forgetful()
    (book_folder / "new.md").write_text("# New\n\nSomething new.\n")
    with pytest.raises(IndexDamaged, match="instead of"):
        await desk.ingest(book_folder)
    assert desk.catalog.current() == before
