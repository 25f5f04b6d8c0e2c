"""Every regular expression of the package takes linear time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bythebook
from bythebook.answering import answer_span
from bythebook.evaluation import questions
from bythebook.grounding import stream_splitter, verbatim
from bythebook.language.english import overview_questions, question_types
from bythebook.sources import files
from bythebook.sources.markdown import mdx, source_words
from bythebook.text import text_kinds
from reliability.patterns import Expression, Made, expressions, fault
from reliability.rows import Row


@pytest.mark.row(
    "S14", "Regular expressions with super-linear time (ReDoS)", "0 patterns above linear"
)
def test_every_pattern_is_linear(row: Row) -> None:
    found, hidden = expressions(Path(bythebook.__path__[0]), _made())
    most = row.count(10, 400)
    faults = [each for one in found if (each := fault(one, most))]
    row.record(
        f"{len(found)} regular expressions, all that the code has, in the ways it uses them, each "
        f"by up to {most} texts made of parts of what it matches",
        "; ".join(hidden + faults) or "0 above linear",
        passed=not (hidden or faults),
    )


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"\s+$", "search"),
        (r"\A\W+|\W+\Z", "sub"),
        (r"[\w ]+ is a [^.]+\.", "fullmatch"),
        (r"(?:a|aa)*b", "match"),
    ],
)
def test_a_pattern_above_linear_is_caught(pattern: str, use: str) -> None:
    assert fault(Expression("here", re.compile(pattern), (use,)), 400)


def _made() -> Made:
    """Return patterns that are only known at run time, by the function that makes them."""
    topics = ("module 2", "chapters 12")
    made = {
        (verbatim._in_a_row, "finditer"): [verbatim._in_a_row(["a", "b", "a"])],
        (stream_splitter._closing, "search"): [stream_splitter._closing(sign, 3) for sign in "`~"],
        (answer_span._in_a_row, "search"): [answer_span._in_a_row(["a", "b"])],
        (question_types._defining, "match"): [question_types._defining("a b a")],
        (files._glob, "match"): [files._glob(g) for g in ("**/*.test.{js,ts}", "**/_*/**")],
        (questions._compiled, "search"): [
            questions._compiled(text, "any") for text in ("a b", r"a(?:b|c)? \d\b", "a.{0,9}b")
        ],
        (text_kinds._any_of, "search"): [text_kinds._PHRASE, text_kinds._ANYWHERE],
        (text_kinds._patterns, "match"): [
            *text_kinds._LABELS.values(),
            *text_kinds._STRUCTURES.values(),
        ],
        (text_kinds._patterns, "search"): [
            *text_kinds._INSIDE.values(),
            *text_kinds._ORDERS.values(),
        ],
        **{
            (make, "search"): [pattern for topic in topics if (pattern := make(topic))]
            for make in (overview_questions.numbered_part, overview_questions.numbered_path)
        },
    }
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {
        f"{mdx.__name__}._UNWRAPPED": [("match", each) for each in mdx._UNWRAPPED.values()],
        f"{source_words.__name__}._text_of.rest": [
            ("sub", re.compile(each)) for each in source_words._MARKUP
        ],
    }
    for (function, use), patterns in made.items():
        place = f"{function.__module__}.{function.__name__}"
        found.setdefault(place, []).extend((use, pattern) for pattern in patterns)
    return found
