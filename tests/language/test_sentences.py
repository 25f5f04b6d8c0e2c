"""Sentences in every script, and the units of a passage."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.language.sentences import split_sentences
from bythebook.language.text import words
from bythebook.text.units import split_units
from bythebook.types import UnitKind


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "whole",
    [
        "We use e.g. Gazebo, i.e. a simulator, for this.",
        "Dr. Smith and Prof. Jones met J. R. Miller.",
        "The value is 3.14 in v1.2 of file.py here.",
        "See Fig. 3 and Eq. 4 for details.",
        "It weighs approx. five kilos.",
        "Visit https://example.org/a.b?c=d. for more",
        'He asked "Really?" and left.',
        "The U.S. market grew.",
        "George W. Bush spoke.",
        "Node.js and rclpy.node are libraries.",
        "Ubuntu 24.04 LTS is used (see No. 5).",
        "Brown v. Board of Education was decided later.",
        "The U.S. Senate and the U.K. Parliament met at 5 p.m. Monday.",
        "Work by Abelson et al. (1996) and Smith et al. Nature shows it.",
        "The programmers A. Z. Zeman, Alyssa P. Hacker and J. R. R. Tolkien agree.",
        "It was proved by K. Gödel (and later by A. Turing) in detail.",
        "Man nimmt z. B. Öl oder d. h. Fett.",
        "The sum 1, 2, ... N is finite, and x, …, Y too.",
        "If $f(x) = 1. Then$ holds and `a. B` is code, stop.",
        "It was long . . . and then longer.",
        "Gen. Lee met Alan Turing and K. Gödel on Mt. Everest.",
        "Gen. Lee met St. John in Washington D.C. Tuesday.",
        "The kite, a.k.a. The Box, flies.",
        "[...] Is a list and {...} is a map.",
    ],
)
def test_inner_punctuation_does_not_end_a_sentence(whole: str) -> None:
    assert sentences(whole) == [whole]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("We use ROS 2. It works.", ["We use ROS 2.", "It works."]),
        ("One! Two? Three…", ["One!", "Two?", "Three…"]),
        ('He said "stop." Then (he left.) Now.', ['He said "stop."', "Then (he left.)", "Now."]),
        ("It needs vitamin C. It is cheap.", ["It needs vitamin C.", "It is cheap."]),
        ("Apples, pears, etc. Then more.", ["Apples, pears, etc.", "Then more."]),
        ("یہ ایک روبوٹ ہے۔ کیا یہ چلتا ہے؟ ہاں۔", ["یہ ایک روبوٹ ہے۔", "کیا یہ چلتا ہے؟", "ہاں۔"]),
        ("यह रोबोट है। यह चलता है।", ["यह रोबोट है।", "यह चलता है।"]),
        ("机器人会走。它也会看！好吗？", ["机器人会走。", "它也会看！", "好吗？"]),
        ("He left the U.S. He came back.", ["He left the U.S.", "He came back."]),
        ("At 5 p.m. The train left.", ["At 5 p.m.", "The train left."]),
        ("It is Plan B. It works.", ["It is Plan B.", "It works."]),
        ("Use DNS. Servers answer.", ["Use DNS.", "Servers answer."]),
        ("It is 12 km. Mars is far.", ["It is 12 km.", "Mars is far."]),
        (
            "It drops by 12 V. Then add A and B. Vectors help.",
            ["It drops by 12 V.", "Then add A and B.", "Vectors help."],
        ),
        ("Numbers 1, 2, 3, …. More follow.", ["Numbers 1, 2, 3, ….", "More follow."]),
        ("It costs $5. Pay $6. Now.", ["It costs $5.", "Pay $6.", "Now."]),
        ("So $x = 1.$ Then stop.", ["So $x = 1.$", "Then stop."]),
        ("It went on... Newton saw it.", ["It went on...", "Newton saw it."]),
        ("line one\nline two", ["line one", "line two"]),
        ("هذا روبوت. هل يمشي؟", ["هذا روبوت.", "هل يمشي؟"]),
    ],
)
def test_sentence_boundaries(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


PASSAGE = """Intro sentence. Second one:

- first item. It has two sentences.
- second item
  1. nested item

| a | b |
|---|---|
| c | d |

title.py
```python
x = 1. # not a sentence. Really.

y = 2
```

$$
E = mc^2
$$

Last sentence."""


def test_units_are_the_smallest_pieces_that_can_be_shown() -> None:
    units = [(unit.kind, PASSAGE[unit.start : unit.end]) for unit in split_units(PASSAGE)]
    assert units == [
        (UnitKind.SENTENCE, "Intro sentence."),
        (UnitKind.SENTENCE, "Second one:"),
        (UnitKind.ITEM, "first item. It has two sentences."),
        (UnitKind.ITEM, "second item"),
        (UnitKind.ITEM, "nested item"),
        (UnitKind.ROW, "a | b"),
        (UnitKind.ROW, "c | d"),
        (UnitKind.SENTENCE, "title.py"),
        (UnitKind.CODE, "```python\nx = 1. # not a sentence. Really.\n\ny = 2\n```"),
        (UnitKind.MATHS, "$$\nE = mc^2\n$$"),
        (UnitKind.SENTENCE, "Last sentence."),
    ]


def test_long_item_is_split_into_sentences() -> None:
    item = "- " + "This is a sentence of an item that goes on for long. " * 6
    assert len(split_units(item)) == 6
    assert all(unit.kind is UnitKind.ITEM for unit in split_units(item))


def test_unclosed_fence_is_code_to_the_end() -> None:
    text = "Text.\n```py\nx = 1\n"
    assert [unit.kind for unit in split_units(text)] == [UnitKind.SENTENCE, UnitKind.CODE]


TEXTS = (
    st.text(alphabet=st.sampled_from("ab1 .!?\n|-`$\"')(۔।。ß؟A*_\t#"), max_size=200) | st.text()
)


@given(TEXTS)
def test_sentences_lose_no_word_and_do_not_overlap(text: str) -> None:
    spans = split_sentences(text)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    kept = " ".join(text[start:end] for start, end in spans)
    assert words(kept) == words(text)


@given(TEXTS)
def test_units_lose_no_word_but_the_numbers_of_items_and_do_not_overlap(text: str) -> None:
    units = split_units(text)
    assert all(a.end <= b.start for a, b in itertools.pairwise(units))
    kept = set(words(" ".join(text[unit.start : unit.end] for unit in units)))
    assert {word for word in words(text) if not word.isdigit()} <= kept
