"""Search on fakes: hits, ranking, neighbours and limits."""

from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.errors import IndexDamaged
from bythebook.ingestion.indexer import Indexer, IngestProgress
from bythebook.language.terms import Vocabulary
from bythebook.language.tokens import estimate_tokens
from bythebook.providers.flat_index import FlatStore
from bythebook.providers.testing import (
    FakeEmbedder,
    MemoryCatalog,
    MemoryGenerationStore,
)
from bythebook.retrieval.question_analysis import QUESTION_TOKENS
from bythebook.retrieval.score import MEASURED
from bythebook.retrieval.search import (
    SELECTION_TOKENS,
    SearchContext,
    score_selection,
    search,
)
from bythebook.text.selections import passage_of_selection
from bythebook.types import Question, VectorState
from tests.support.samples import read

LONG = "Nothing else is said in this long and winding paragraph about the weather. " * 30
PAGE = f"""# Kettles

## Boiling

A kettle boils its water at one hundred degrees.

{LONG}

{LONG.replace("weather", "harbour")}

## Storing

A kettle is stored dry.
"""


@pytest.fixture
async def index(tmp_path: Path) -> SearchContext:
    return await index_of(tmp_path, {"kettles.md": PAGE})


async def test_best_hit_comes_first(index: SearchContext) -> None:
    [best, *others] = (await search(Question("When does a kettle boil water?"), index)).hits
    assert "boils its water" in best.passage.text
    assert best.rank == 1
    assert all(best.answers >= other.answers for other in others)


async def test_returns_neighbours_of_the_best_hits_on_request(index: SearchContext) -> None:
    question = Question("When does a kettle boil water?", top_k=1)
    alone = await search(question, index)
    assert alone.neighbours == ()
    findings = await search(question, index, neighbours_of=1)
    assert findings.hits == alone.hits
    [best] = findings.hits
    assert [hit.passage.id for hit in findings.neighbours] == list(best.passage.neighbours)
    assert all(hit.passage.place == best.passage.place for hit in findings.neighbours)
    assert all(hit.order < best.order for hit in findings.neighbours)


async def test_empty_index_raises_unless_filters_are_set(index: SearchContext) -> None:
    emptied = replace(index, store=FlatStore.of([], dimension=64))
    with pytest.raises(IndexDamaged, match="empty"):
        await search(Question("When does a kettle boil water?"), emptied)
    filtered = Question("When does a kettle boil water?", filters={"module": "Another"})
    for searched in (index, emptied):
        assert (await search(filtered, searched)).hits == ()


async def test_book_with_pending_vectors_is_searched_without_embedder(index: SearchContext) -> None:
    class Silent(FakeEmbedder):
        async def embed(self, texts, *, role):  # type: ignore[no-untyped-def]
            raise AssertionError("must not be called")

    pending = replace(index, embedder=Silent(), vectors=VectorState.PENDING, marks=None)
    findings = await search(Question("When does a kettle boil water?"), pending)
    assert findings.vectors is VectorState.PENDING
    assert "boils its water" in findings.hits[0].passage.text
    assert findings.hits[0].cosine == 0


async def test_guiding_selection_shifts_the_search(index: SearchContext) -> None:
    question = Question(
        "What about the kettle?", selection="It is stored dry.", selection_only=False
    )
    led = await search(question, index)
    alone = await search(replace(question, selection=None), index)
    cosines = [
        next(hit.cosine for hit in found.hits if "stored" in hit.passage.text)
        for found in (alone, led)
    ]
    assert cosines[0] < cosines[1]
    assert len(led.hits) == len(alone.hits)


async def index_of(folder: Path, pages: dict[str, str]) -> SearchContext:
    for name, text in pages.items():
        (folder / name).write_text(text)
    catalog, shelf, embedder = MemoryCatalog(), MemoryGenerationStore(), FakeEmbedder()
    await Indexer(catalog, shelf, embedder).ingest(read(folder), progress=IngestProgress())
    generation = catalog.current()
    assert generation is not None
    return SearchContext(
        generation=generation.name,
        embedder=embedder,
        store=await shelf.open(generation.name),
        vocabulary=Vocabulary.from_bytes(generation.vocabulary),
        marks=MEASURED["local:minilm-int8"],
    )


# --- very long questions and selections ----------------------------------------------------------

HUGE = {
    "many words": " ".join(f"kettle{n}" for n in range(20_000)),
    "one word": "k" * 120_000,
    "no spaces": "水壶" * 20_000,
    "signs": "What boils" + "?" * 120_000,
    "spaces": "When does a kettle" + " " * 120_000 + "boil water?",
    "numbers": "1." * 60_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
async def test_searches_only_the_beginning_of_a_huge_question(
    index: SearchContext, text: str
) -> None:
    embedder = FakeEmbedder()
    findings = await search(Question(text), replace(index, embedder=embedder))
    [[embedded]] = embedder.calls
    assert estimate_tokens(embedded) <= QUESTION_TOKENS
    assert len(embedded) <= 4 * QUESTION_TOKENS
    assert len(findings.question.terms) <= QUESTION_TOKENS


async def test_many_spaces_do_not_truncate_the_question(index: SearchContext) -> None:
    huge = await search(Question(HUGE["spaces"]), index)
    plain = await search(Question("When does a kettle boil water?"), index)
    assert huge.hits == plain.hits


async def test_question_of_two_hundred_words_is_not_truncated(index: SearchContext) -> None:
    embedder, text = FakeEmbedder(), "When does a kettle boil (its) water,\nand why? " * 20
    await search(Question(text), replace(index, embedder=embedder))
    assert embedder.calls == [[text]]


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
async def test_embeds_only_the_beginning_of_a_huge_selection(
    index: SearchContext, text: str
) -> None:
    embedder = FakeEmbedder()
    asked = replace(index, embedder=embedder)
    question = Question("What boils?", selection=text)
    passage = passage_of_selection(text, url=None)
    assert len(passage.text) <= 10_000
    [hit] = (await score_selection(question, passage, asked)).hits
    _, units = embedder.calls
    assert sum(map(estimate_tokens, units)) <= SELECTION_TOKENS
    assert len(hit.unit_cosines) == len(passage.units)

    embedder.calls.clear()
    await search(replace(question, text="What cools?", selection_only=False), asked)
    _, [leading] = embedder.calls
    assert estimate_tokens(leading) <= QUESTION_TOKENS


async def test_end_of_a_long_selection_is_found_by_keywords(index: SearchContext) -> None:
    text = "Nothing is said here. " * 300 + "A kettle boils its water at one hundred degrees."
    passage = passage_of_selection(text, url=None)
    question = Question("When does a kettle boil its water?", selection=text)
    [hit] = (await score_selection(question, passage, index)).hits
    assert hit.unit_cosines[0] != 0
    assert hit.unit_cosines[-1] == 0
    assert hit.signals.coverage == hit.signals.best_unit_coverage == 1
