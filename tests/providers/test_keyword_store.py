"""The in-memory keyword store, which replaces an index that is down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.interfaces.store import IndexedPassage
from bythebook.language.terms import Vocabulary
from bythebook.providers.flat_index import keyword_store
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
    store = keyword_store(passages, vocabulary)
    found = await store.find(None, asked, limit=100, filters={})
    weights = {one.id: vocabulary.weigh(one) for one in passages}
    matching = {name: terms for name, terms in weights.items() if terms.keys() & asked.keys()}
    assert {one.passage_id for one in found} == matching.keys()
    for one in found:
        assert one.terms == pytest.approx(matching[one.passage_id])
    weight = {
        one.passage_id: sum(one.terms.get(t, 0) * idf for t, idf in asked.items()) for one in found
    }
    best = await store.find(None, asked, limit=2, filters={})
    most = sorted(weight.values(), reverse=True)[:2]
    assert sorted((weight[one.passage_id] for one in best), reverse=True) == most


async def test_filters_apply() -> None:
    passages = _passages(["kite wind", "kite water", "kite paper"])
    vocabulary = Vocabulary.of(passages)
    store = keyword_store(passages, vocabulary)
    found = await store.find(None, vocabulary.ask("kite"), limit=9, filters={"week": 1})
    assert [one.passage_id for one in found] == [passages[1].id]
    assert await store.count() == 3


async def test_unknown_ids_are_left_out() -> None:
    passages = _passages(["kite wind"])
    store = keyword_store(passages, Vocabulary.of(passages))
    fetched: list[IndexedPassage] = await store.fetch(["0" * 64, passages[0].id])
    assert [entry.passage for entry in fetched] == passages
    assert fetched[0].vector is None
