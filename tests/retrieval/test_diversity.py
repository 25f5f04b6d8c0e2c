"""The ranking of weighed passages, and what of it is handed on."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bythebook.interfaces.store import Candidate
from bythebook.retrieval.diversity import LIKELY, Weighed, dedupe, limit_per_file, most_of_one_file
from bythebook.types import Hit, Signals
from tests.samples import passage


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
    assert dedupe(found) == dedupe(shuffled)


@given(_found)
def test_every_text_is_there_once_with_its_best_merit(found: list[Weighed]) -> None:
    ranking = dedupe(found)
    merits: dict[str, float] = {}
    for weighed in found:
        words = weighed.candidate.content_hash
        merits[words] = max(weighed.merit, merits.get(words, 0.0))
    assert {w.candidate.content_hash: w.merit for w in ranking} == merits


def test_best_orders_by_merit() -> None:
    found = [_weighed("a", merit=0.2), _weighed("b", merit=0.9), _weighed("c", merit=0.5)]
    assert [weighed.candidate.passage_id for weighed in dedupe(found)] == ["b", "c", "a"]


def _hits(found: list[tuple[str, float]]) -> list[Hit]:
    """By file and score, best first."""
    ordered = sorted(found, key=lambda each: -each[1])
    return [
        Hit(passage(f"Sentence {rank}.", file=file), rank, 0.5, score)
        for rank, (file, score) in enumerate(ordered, 1)
    ]


def _files(hits: list[Hit]) -> Counter[str]:
    return Counter(hit.passage.place.file for hit in hits)


_ranking = st.lists(
    st.tuples(st.sampled_from(("a.md", "b.md", "c.md")), st.sampled_from((0.1, 0.4, 0.6, 0.9)))
).map(_hits)


@given(_ranking, st.integers(1, 20))
def test_what_is_handed_on_is_as_much_as_was_wanted_in_the_order_of_its_scores(
    hits: list[Hit], limit: int
) -> None:
    kept = limit_per_file(hits, limit=limit)
    assert len(kept) == min(limit, len(hits))
    assert kept == [hit for hit in hits if hit in kept]
    assert kept[:1] == hits[:1]


@given(_ranking, st.integers(1, 20))
def test_beyond_its_share_a_file_keeps_nobody_out_who_has_something_to_say(
    hits: list[Hit], limit: int
) -> None:
    kept = limit_per_file(hits, limit=limit)
    most, taken = most_of_one_file(limit), _files(kept)
    if max(taken.values(), default=0) > most:
        left = [hit for hit in hits if hit not in kept and hit.score >= LIKELY]
        assert all(taken[hit.passage.place.file] >= most for hit in left)


def test_one_file_gives_two_of_five_and_four_of_ten_while_others_have_likely_passages() -> None:
    assert (most_of_one_file(5), most_of_one_file(10)) == (2, 4)
    three = _hits([("a.md", 0.99)] * 9 + [("b.md", 0.7)] * 9 + [("c.md", 0.6)] * 9)
    assert _files(limit_per_file(three, limit=5)) == {"a.md": 2, "b.md": 2, "c.md": 1}
    assert _files(limit_per_file(three, limit=10)) == {"a.md": 4, "b.md": 4, "c.md": 2}


def test_places_that_no_share_fills_go_to_the_best_of_the_rest() -> None:
    two = _hits([("a.md", 0.99)] * 10 + [("b.md", 0.6)] * 10)
    assert _files(limit_per_file(two, limit=5)) == {"a.md": 3, "b.md": 2}
    few = _hits([("a.md", 0.99)] * 9 + [("b.md", 0.7)] * 2 + [("c.md", 0.6)] * 3)
    assert _files(limit_per_file(few, limit=10)) == {"a.md": 5, "b.md": 2, "c.md": 3}


def test_a_book_of_one_file_and_strangers_with_nothing_to_say_change_nothing() -> None:
    alone = _hits([("a.md", 0.99)] * 10)
    assert limit_per_file(alone, limit=5) == alone[:5]
    beside = _hits([("a.md", 0.99)] * 10 + [("b.md", 0.49)] * 5)
    assert limit_per_file(beside, limit=5) == beside[:5]
    assert limit_per_file(beside, limit=5, likely=0.4) != beside[:5]
