"""Text that every tokenizer, database and response accepts."""

import pytest

from bythebook.language.text import well_formed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a \ud83d\ude00 b", "a \U0001f600 b"),
        ("a \ud83d b \ude00", "a \ufffd b \ufffd"),
        ("a\0b", "a\ufffdb"),
        ("schön \U0001f600", "schön \U0001f600"),
    ],
)
def test_well_formed_text_can_be_encoded(text: str, expected: str) -> None:
    assert well_formed(text) == expected
    assert well_formed(expected) == expected
