"""Deduplication of candidates, and the limit per file."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bythebook.interfaces.store import Candidate
from bythebook.retrieval.diversity import (
    LIKELY,
    ScoredCandidate,
    dedupe,
    limit_per_file,
    most_of_one_file,
)
from bythebook.types import Hit, Signals
from tests.support.samples import passage


def _scored(name: str, *, score: float, words: str = "", cosine: float = 0.5) -> ScoredCandidate:
    candidate = Candidate(name, words or name, cosine, cosine, {})
    return ScoredCandidate(candidate, Signals(), score)


_found = st.lists(
    st.builds(
        _scored,
        st.sampled_from("abcdefgh"),
        score=st.sampled_from((0.2, 0.5, 0.9)),
        words=st.sampled_from(("one", "two", "")),
        cosine=st.sampled_from((0.1, 0.7)),
    ),
    unique_by=lambda scored: scored.candidate.passage_id,
)


@given(_found, st.integers())
def test_dedupe_is_independent_of_the_order_of_the_store(
    found: list[ScoredCandidate], seed: int
) -> None:
    shuffled = random.Random(seed).sample(found, len(found))
    assert dedupe(found) == dedupe(shuffled)


@given(_found)
def test_dedupe_keeps_the_best_of_equal_texts(found: list[ScoredCandidate]) -> None:
    ranking = dedupe(found)
    scores: dict[str, float] = {}
    for scored in found:
        words = scored.candidate.content_hash
        scores[words] = max(scored.fusion_score, scores.get(words, 0.0))
    assert {w.candidate.content_hash: w.fusion_score for w in ranking} == scores


def test_dedupe_sorts_by_fusion_score() -> None:
    found = [_scored("a", score=0.2), _scored("b", score=0.9), _scored("c", score=0.5)]
    assert [scored.candidate.passage_id for scored in dedupe(found)] == ["b", "c", "a"]


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
def test_limit_keeps_the_number_and_order_of_hits(hits: list[Hit], limit: int) -> None:
    kept = limit_per_file(hits, limit=limit)
    assert len(kept) == min(limit, len(hits))
    assert kept == [hit for hit in hits if hit in kept]
    assert kept[:1] == hits[:1]


@given(_ranking, st.integers(1, 20))
def test_file_beyond_its_share_excludes_no_likely_hit(hits: list[Hit], limit: int) -> None:
    kept = limit_per_file(hits, limit=limit)
    most, taken = most_of_one_file(limit), _files(kept)
    if max(taken.values(), default=0) > most:
        left = [hit for hit in hits if hit not in kept and hit.score >= LIKELY]
        assert all(taken[hit.passage.place.file] >= most for hit in left)


def test_one_file_gets_two_of_five_if_others_have_likely_hits() -> None:
    assert (most_of_one_file(5), most_of_one_file(10)) == (2, 4)
    three = _hits([("a.md", 0.99)] * 9 + [("b.md", 0.7)] * 9 + [("c.md", 0.6)] * 9)
    assert _files(limit_per_file(three, limit=5)) == {"a.md": 2, "b.md": 2, "c.md": 1}
    assert _files(limit_per_file(three, limit=10)) == {"a.md": 4, "b.md": 4, "c.md": 2}


def test_remaining_places_go_to_the_best_of_the_rest() -> None:
    two = _hits([("a.md", 0.99)] * 10 + [("b.md", 0.6)] * 10)
    assert _files(limit_per_file(two, limit=5)) == {"a.md": 3, "b.md": 2}
    few = _hits([("a.md", 0.99)] * 9 + [("b.md", 0.7)] * 2 + [("c.md", 0.6)] * 3)
    assert _files(limit_per_file(few, limit=10)) == {"a.md": 5, "b.md": 2, "c.md": 3}


def test_limit_changes_nothing_without_likely_hits_of_other_files() -> None:
    alone = _hits([("a.md", 0.99)] * 10)
    assert limit_per_file(alone, limit=5) == alone[:5]
    beside = _hits([("a.md", 0.99)] * 10 + [("b.md", 0.49)] * 5)
    assert limit_per_file(beside, limit=5) == beside[:5]
    assert limit_per_file(beside, limit=5, likely=0.4) != beside[:5]
