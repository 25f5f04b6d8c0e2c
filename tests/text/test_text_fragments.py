"""Text fragments match their unit exactly once, or are left out."""

import re
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.text.text_fragments import folded, with_fragments
from bythebook.types import Passage
from tests.support.samples import passage


def _fragments(*texts: str) -> list[str]:
    passages = with_fragments([passage(text, section=f"S{n}") for n, text in enumerate(texts)])
    return [unit.fragment for each in passages for unit in each.units]


def test_short_sentence_is_quoted_in_full_and_long_one_by_start_and_end() -> None:
    short, long = _fragments(
        "A kite flies in the wind. The string of a kite keeps it from drifting away over the hills."
    )
    assert short == "text=A%20kite%20flies%20in%20the%20wind"
    assert long == "text=The%20string%20of,over%20the%20hills"


def test_directive_characters_are_encoded() -> None:
    (fragment,) = _fragments("Well-made kites, strings & tails fly.")
    assert fragment == "text=Well%2Dmade%20kites%2C%20strings%20%26%20tails%20fly"


def test_ambiguous_quote_gets_no_fragment_without_a_distinguishing_prefix() -> None:
    assert _fragments("It flies very well.", "It flies very well.") == ["", ""]
    first, _, second, _ = _fragments(
        "Kites rise. It flies very well.", "Kettles boil. It flies very well."
    )
    assert (first, second) == ("", "")  # too short to be told apart by themselves
    fragments = _fragments(
        "Kites rise up. It flies well now.", "Kettles boil up. It flies well now."
    )
    assert fragments[1] == "text=rise%20up-,It%20flies%20well%20now"


def test_fragment_does_not_match_a_heading() -> None:
    assert _fragments("S0 and then some.") == ["text=S0%20and%20then%20some"]
    titled = passage("Building a kite.", section="Building a kite")
    assert with_fragments([titled])[0].units[0].fragment == ""


def test_code_maths_rows_and_labels_get_no_fragment() -> None:
    text = "Warning\n\n```sh\nls all the files\n```\n\n| a b c | d e f |\n|---|---|\n| g h i | j |"
    assert set(_fragments(text)) == {""}
    assert _fragments("Here $q$ holds the joint positions of it.") == [""]


def test_sentence_with_a_note_in_brackets_after_it_has_a_fragment() -> None:
    text = "In this picture a child holds the line of a kite. (credit: Ann Flyer, Hills)"
    assert _fragments(text) == ["text=In%20this%20picture,Ann%20Flyer%2C%20Hills"]


def test_overlapping_sentence_counts_once() -> None:
    first = passage("Kites need wind. A long tail helps in gusts.", section="S")
    second = passage("A long tail helps in gusts. Paper tears.", section="S")
    shown = with_fragments([first, second])
    assert shown[0].units[1].fragment == shown[1].units[0].fragment != ""


_WORDS = st.lists(
    st.sampled_from(["kite", "wind", "tail", "Café", "naïve-flying,", "string", "&", "7", "up"]),
    min_size=3,
)


@settings(max_examples=200)
@given(st.lists(_WORDS, min_size=1, max_size=6))
def test_fragments_match_exactly_once_on_the_page(sentences: list[list[str]]) -> None:
    texts = [" ".join(words).capitalize() + "." for words in sentences]
    page = with_fragments([passage(" ".join(texts))])
    everything = f" {folded(f'Title Section {page[0].text}')} "
    for unit in page[0].units:
        if unit.fragment:
            prefix, start = _start_of(unit.fragment)
            named = f" {folded(f'{prefix} {start}')} "
            assert named in everything
            assert everything.find(named, everything.find(named) + 1) < 0
            assert folded(page[0].unit_text(unit)).startswith(folded(start))


def _start_of(fragment: str) -> tuple[str, str]:
    parts = fragment.removeprefix("text=").split(",")
    prefix = unquote(parts.pop(0)[:-1]) if parts[0].endswith("-") else ""
    return prefix, unquote(parts[0])


def test_only_fragments_are_changed() -> None:
    before = passage("A kite flies in the wind. The end of it.")
    (after,) = with_fragments([before])
    assert [(u.start, u.end, u.kind) for u in after.units] == [
        (u.start, u.end, u.kind) for u in before.units
    ]
    assert isinstance(after, Passage) and after.id == before.id


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_and_unicode_folding_agree(text: str) -> None:
    assert folded(text) == " ".join(re.findall(r"[^\W_]+", text.casefold()))
