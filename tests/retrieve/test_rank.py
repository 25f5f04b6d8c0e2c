"""The ranking of weighed passages."""

import random

from hypothesis import given
from hypothesis import strategies as st

from bythebook.model import Signals
from bythebook.ports import Candidate
from bythebook.retrieve.rank import Weighed, best


def _weighed(name: str, *, merit: float, words: str = "", cosine: float = 0.5) -> Weighed:
    candidate = Candidate(name, words or name, cosine, cosine, {})
    return Weighed(candidate, Signals(), merit)


_found = st.lists(
    st.builds(
        _weighed,
        st.sampled_from("abcdefgh"),
        merit=st.sampled_from((0.2, 0.5, 0.9)),
        words=st.sampled_from(("one", "two", "")),
        cosine=st.sampled_from((0.1, 0.7)),
    ),
    unique_by=lambda weighed: weighed.candidate.passage_id,
)


@given(_found, st.integers())
def test_the_order_in_which_a_store_found_them_does_not_matter(
    found: list[Weighed], seed: int
) -> None:
    shuffled = random.Random(seed).sample(found, len(found))
    assert best(found, limit=8) == best(shuffled, limit=8)


@given(_found)
def test_every_text_is_there_once_with_its_best_merit(found: list[Weighed]) -> None:
    ranking = best(found, limit=100)
    merits: dict[str, float] = {}
    for weighed in found:
        words = weighed.candidate.content_hash
        merits[words] = max(weighed.merit, merits.get(words, 0.0))
    assert {w.candidate.content_hash: w.merit for w in ranking} == merits


def test_best_orders_by_merit() -> None:
    found = [_weighed("a", merit=0.2), _weighed("b", merit=0.9), _weighed("c", merit=0.5)]
    assert [weighed.candidate.passage_id for weighed in best(found, limit=2)] == ["b", "c"]
