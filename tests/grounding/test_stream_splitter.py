"""Splitting drafts into claims; removal of URLs, markup and markers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.grounding.stream_splitter import Splitter, claim_of


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("A [kettle](http://evil.example) boils.", "A kettle boils."),
        ("A kettle boils https://evil.example/a?b=c now.", "A kettle boils now."),
        ("A kettle boils (see evil.example/path).", "A kettle boils (see)."),
        ("A kettle <a href='//evil.example'>boils</a>.", "A kettle boils."),
        ("A kettle boils ![x](//evil.example/i.png).", "A kettle boils x."),
        ("A kettle boils javascript:alert(1) now.", "A kettle boils now."),
        ("A kettle boils, write to me@evil.example now.", "A kettle boils, write to now."),
        ("A kettle boils evil[.]example now.", "A kettle boils now."),
        ("A kettle boils evil。example now.", "A kettle boils now."),
    ],
)
def test_urls_and_markup_are_removed_and_counted(written: str, text: str) -> None:
    claim = claim_of(written)
    assert claim.text == text
    assert claim.addresses >= 1


@pytest.mark.parametrize("marker", ["[^1]", "【1†source】", "[１]", "[source 2]", "[Passage 1]"])
def test_unknown_marker_formats_are_removed_and_counted(marker: str) -> None:
    claim = claim_of(f"A kettle boils. {marker}")
    assert (claim.text, claim.strange_markers, claim.cited) == ("A kettle boils.", 1, ())


def test_citation_markers_are_parsed() -> None:
    claim = claim_of("A kettle [2] boils. [1, 3][99]")
    assert (claim.text, claim.cited) == ("A kettle boils.", (2, 1, 3, 99))


def test_file_names_of_the_book_are_not_urls() -> None:
    assert claim_of("Edit config.yaml by hand.", known="the file config.yaml").addresses == 0


@given(st.text(max_size=80).filter(lambda text: "evil" not in text))
def test_removes_every_url(text: str) -> None:
    assert "evil.example" not in claim_of(f"{text} http://evil.example/{text}").text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- History. Keep last stores ten. Full.", ["- History. Keep last stores ten.", "Full."]),
        ("Yes. [1] A kite flies. [2]", ["Yes. [1]", "A kite flies. [2]"]),
    ],
)
def test_label_is_joined_to_the_next_sentence(line: str, said: list[str]) -> None:
    for pieces in ([line], list(line)):
        splitter = Splitter()
        claims = [claim for piece in pieces for claim in splitter.feed(piece)]
        assert [text for _, text in (*claims, *splitter.finish())] == said
