"""The in-memory keyword store, which replaces an index that is down."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.interfaces.store import IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.providers.stores.keyword_memory import KeywordStore
from bythebook.providers.testing import MemoryStore
from bythebook.types import Passage
from tests.support.samples import passage

_WORDS = ["kite", "kettle", "wind", "water", "string", "paper"]
_TEXTS = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=8).map(" ".join)


def _passages(texts: list[str]) -> list[Passage]:
    return [
        passage(text, file=f"{number}.md", section=f"S{number}", week=number % 2)
        for number, text in enumerate(texts)
    ]


@given(st.lists(_TEXTS, min_size=1, max_size=8), _TEXTS)
async def test_search_equals_an_exhaustive_search(texts: list[str], question: str) -> None:
    passages = _passages(texts)
    vocabulary = Vocabulary.of(passages)
    asked = vocabulary.ask(question)
    store = KeywordStore(passages, vocabulary)
    entries = await store.fetch([one.id for one in passages])
    whole = await MemoryStore(entries).find(None, asked, limit=100, filters={})
    found = await store.find(None, asked, limit=100, filters={})
    assert {one.passage_id: one.terms for one in found} == {
        one.passage_id: one.terms for one in whole
    }
    weight = {
        one.passage_id: sum(one.terms.get(t, 0) * idf for t, idf in asked.items()) for one in found
    }
    best = await store.find(None, asked, limit=2, filters={})
    most = sorted(weight.values(), reverse=True)[:2]
    assert sorted((weight[one.passage_id] for one in best), reverse=True) == most


async def test_filters_apply() -> None:
    passages = _passages(["kite wind", "kite water", "kite paper"])
    vocabulary = Vocabulary.of(passages)
    store = KeywordStore(passages, vocabulary)
    found = await store.find(None, vocabulary.ask("kite"), limit=9, filters={"week": 1})
    assert [one.passage_id for one in found] == [passages[1].id]
    assert await store.count() == 3


async def test_unknown_ids_are_left_out() -> None:
    passages = _passages(["kite wind"])
    store = KeywordStore(passages, Vocabulary.of(passages))
    fetched: list[IndexedPassage] = await store.fetch(["0" * 64, passages[0].id])
    assert [entry.passage for entry in fetched] == passages
    assert fetched[0].vector is None
