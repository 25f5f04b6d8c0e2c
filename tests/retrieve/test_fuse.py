"""Fusion."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.ports import Found
from bythebook.retrieve.fuse import best, fuse
from tests.samples import hit

_rankings = st.lists(
    st.lists(st.sampled_from("abcdefgh"), unique=True).map(
        lambda names: [Found(name, 1 / (n + 1)) for n, name in enumerate(names)]
    ),
    max_size=4,
)


@given(_rankings, st.randoms())
def test_the_order_of_rankings_does_not_matter(rankings: list[list[Found]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(rankings)
    random.shuffle(shuffled)
    assert fuse(rankings, limit=8) == fuse(shuffled, limit=8)


@given(_rankings)
def test_every_passage_found_is_in_the_fusion_once(rankings: list[list[Found]]) -> None:
    fused = fuse(rankings, limit=100)
    assert sorted(fused) == sorted({found.passage_id for ranking in rankings for found in ranking})


def test_best_orders_by_score_and_numbers_from_one() -> None:
    hits = best([hit("a", score=0.2), hit("b", score=0.9), hit("c", score=0.5)], limit=2)
    assert [(h.passage.text, h.rank) for h in hits] == [("b", 1), ("c", 2)]


def test_the_same_words_are_kept_once_with_the_best_score() -> None:
    twice = [hit("same", score=0.4, file="a.md"), hit("same", score=0.8, file="b.md")]
    kept = best(twice, limit=5)
    assert [h.score for h in kept] == [0.8]
