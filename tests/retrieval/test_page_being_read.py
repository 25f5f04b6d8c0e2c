"""The page being read comes first among what is alike, and among nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.retrieval.search import page_first, page_path
from bythebook.types import Hit, Question
from tests.samples import passage

_HERE, _THERE = "/docs/here", "/docs/there"


def _hit(score: float, url: str) -> Hit:
    found = passage(f"{url} {score}")
    return Hit(replace(found, place=replace(found.place, url=url)), 1, 0.5, score)


def _ordered(hits: list[Hit], *, floor: float = 0.5) -> list[str]:
    question = Question("?", floor=floor, page=f"https://book.example{_HERE}/?q=1#x")
    ranked = page_first(tuple(hits), question)
    assert [hit.rank for hit in ranked] == list(range(1, len(hits) + 1))
    return [hit.passage.place.url for hit in ranked]


def test_a_tie_goes_to_the_page_being_read() -> None:
    assert _ordered([_hit(0.90, _THERE), _hit(0.90, _HERE)]) == [_HERE, _THERE]
    assert _ordered([_hit(0.90, _THERE), _hit(0.88, f"{_HERE}#x")]) == [f"{_HERE}#x", _THERE]


def test_a_clear_winner_stays_first() -> None:
    assert _ordered([_hit(0.90, _THERE), _hit(0.80, _HERE)]) == [_THERE, _HERE]


def test_nothing_below_the_floor_rises_above_it() -> None:
    assert _ordered([_hit(0.505, _THERE), _hit(0.495, _HERE)]) == [_THERE, _HERE]


def test_without_a_page_nothing_moves() -> None:
    hits = (_hit(0.9, _THERE), _hit(0.9, _HERE))
    assert page_first(hits, Question("?")) is hits


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([_HERE, _THERE])), max_size=8))
def test_scores_stay_and_only_what_is_alike_changes_places(found: list[tuple[float, str]]) -> None:
    hits = sorted((_hit(score, url) for score, url in found), key=lambda hit: -hit.score)
    ranked = page_first(tuple(hits), Question("?", floor=0.5, page=_HERE))
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
def test_one_page_has_one_path(url: str) -> None:
    assert page_path(url) == "/a/b"


def test_the_first_page_has_a_path_too() -> None:
    assert page_path("https://x.example") == page_path("/") == page_path("/index.html") == "/"
