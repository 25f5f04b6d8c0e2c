"""Preference for hits on the page being read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.retrieval.current_page import page_first, page_path
from bythebook.types import Hit, Question
from tests.support.samples import passage

_HERE, _THERE = "/docs/here", "/docs/there"


def _hit(score: float, url: str) -> Hit:
    found = passage(f"{url} {score}")
    return Hit(replace(found, place=replace(found.place, url=url)), 1, 0.5, score, answers=score)


def _ordered(hits: list[Hit], *, min_score: float = 0.5) -> list[str]:
    question = Question(
        "?", min_score=min_score, current_page=f"https://book.example{_HERE}/?q=1#x"
    )
    ranked = page_first(tuple(hits), question)
    assert [hit.rank for hit in ranked] == list(range(1, len(hits) + 1))
    return [hit.passage.place.url for hit in ranked]


def test_current_page_wins_a_tie() -> None:
    assert _ordered([_hit(0.90, _THERE), _hit(0.90, _HERE)]) == [_HERE, _THERE]
    assert _ordered([_hit(0.90, _THERE), _hit(0.88, f"{_HERE}#x")]) == [f"{_HERE}#x", _THERE]


def test_clearly_better_hit_stays_first() -> None:
    assert _ordered([_hit(0.90, _THERE), _hit(0.80, _HERE)]) == [_THERE, _HERE]


def test_hit_below_the_minimum_score_stays_below_it() -> None:
    assert _ordered([_hit(0.505, _THERE), _hit(0.495, _HERE)]) == [_THERE, _HERE]


def test_order_is_unchanged_without_a_current_page() -> None:
    hits = (_hit(0.9, _THERE), _hit(0.9, _HERE))
    assert page_first(hits, Question("?")) is hits


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([_HERE, _THERE])), max_size=8))
def test_only_hits_with_similar_scores_change_places(found: list[tuple[float, str]]) -> None:
    hits = sorted((_hit(score, url) for score, url in found), key=lambda hit: -hit.score)
    ranked = page_first(tuple(hits), Question("?", min_score=0.5, current_page=_HERE))
    assert sorted(hit.score for hit in ranked) == sorted(score for score, _ in found)
    for at, first in enumerate(ranked):
        assert all(first.score > second.score - 0.031 for second in ranked[at + 1 :])


@pytest.mark.parametrize(
    "url",
    [
        *("/a/b", "/a/b/", "/a/b#c", "/a/b?d=e#c", "/a/b.html", "/a/b/index.html"),
        *("https://x.example/a/b/", "HTTP://x.example:80/a/b#:~:text=y"),
    ],
)
def test_path_is_the_same_for_all_urls_of_a_page(url: str) -> None:
    assert page_path(url) == "/a/b"


def test_path_of_the_first_page_is_a_slash() -> None:
    assert page_path("https://x.example") == page_path("/") == page_path("/index.html") == "/"
