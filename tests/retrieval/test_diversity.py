"""Near-identical passages do not take all places."""

from hypothesis import given
from hypothesis import strategies as st

from bythebook.retrieval.diversity import without_copies
from bythebook.types import Hit
from tests.support.samples import evidence

_SAID = "a kettle boils its water at one hundred degrees on the top of the stove"


def _hits(*texts: str) -> list[Hit]:
    return list(evidence(*texts).hits)


def test_a_third_copy_stands_behind_other_passages() -> None:
    copies = _hits(*(f"{_SAID}, in the {room}" for room in ("kitchen", "cellar", "garden")))
    others = _hits("an anchor holds a ship in the harbour of the town", "a lamp shines")
    kept = without_copies([*copies, *others], 3)
    assert kept[:3] == [*copies[:2], others[0]]
    assert copies[2] in kept


def test_alone_they_take_the_places_that_are_left() -> None:
    copies = _hits(*(f"{_SAID}, {number}" for number in range(4)))
    assert without_copies(copies, 3) == copies


@given(st.lists(st.sampled_from((_SAID, "a b c d e", "a", "")), max_size=8), st.integers(1, 8))
def test_no_hit_is_lost(texts: list[str], limit: int) -> None:
    hits = _hits(*(f"{text} {number}" for number, text in enumerate(texts)))
    kept = without_copies(hits, limit)
    assert sorted(hit.passage.id for hit in kept) == sorted(hit.passage.id for hit in hits)
