"""Words of a draft that claim nothing."""

import pytest

from bythebook.grounding.framing import is_announcement, without_connective, without_particle

_KNOWN = frozenset({"kite", "fli"})


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("In contrast, a kite needs wind.", "a kite needs wind."),
        ("- However, in short, a kite needs wind.", "a kite needs wind."),
        ("According to the book, a kite needs wind.", "a kite needs wind."),
        ("In contrast a kite needs wind.", "In contrast a kite needs wind."),
        ("First, second and third kites fly.", "second and third kites fly."),
        ("Nextdoor, a kite flies.", "Nextdoor, a kite flies."),
    ],
)
def test_connectives_at_the_start_are_no_part_of_the_claim(text: str, claim: str) -> None:
    assert without_connective(text) == claim


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("No, a kite needs wind.", "A kite needs wind."),
        ("Yes: kites fly.", "Kites fly."),
        ("No kite flies.", "No kite flies."),
    ],
)
def test_answer_particle_is_removed(text: str, claim: str) -> None:
    assert without_particle(text) == claim


@pytest.mark.parametrize(
    ("text", "announces"),
    [
        ("Here is how it works:", True),
        ("Here is how a kite flies:", True),
        ("**In summary:**", True),
        ("The steps are as follows:", True),
        ("Here is how they work.", True),
        ("A kite flies:", False),
        ("Here is how a balloon flies:", False),  # the evidence has no balloon
        ("Here are the 7 steps:", False),  # … and no such number
        ("Here is why a kite does not fly:", False),
        ("A kite flies as follows.", False),
    ],
)
def test_announcements_end_with_a_colon_or_begin_with_here(text: str, announces: bool) -> None:
    assert is_announcement(text, _KNOWN) is announces
