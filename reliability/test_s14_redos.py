"""Every regular expression of the package takes linear time.

The patterns are listed from the code; one that the list cannot see is a failure. Each is tested
with texts made of its own parts, in the ways it is used.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable
from itertools import chain, product
from pathlib import Path

import pytest

import bythebook
from bythebook.answering import answer_span
from bythebook.evaluation import questions
from bythebook.grounding import stream_splitter, verbatim
from bythebook.language.english import overview_questions, question_types
from bythebook.sources import files
from bythebook.sources.markdown import mdx
from bythebook.text import text_kinds
from reliability.hard_texts import Attack, attacks, blind_attacks
from reliability.regex_patterns import ANYWHERE, Expression, expressions
from reliability.rows import Rows

_SMALL = (*range(12, 64, 2), 100, 150, 225, 350, 500, 1_000, 2_000, 4_000)  # signs
_LARGE = (8_000, 16_000, 32_000, 64_000)
_NOTHING_S = 0.0001  # for 4,000: their square could not be done in that time
_TOO_LONG_S = 1.0  # for any: a longer one may never end
_STEEPEST = 1.5  # the power of the size that the time grows with; a square's is 2
_MOMENTS = 5
_MOST = (15, 150)  # texts for each pattern, from all over: in a quick count, and in the full one


def test_every_pattern_is_linear(rows: Rows) -> None:
    row = rows.add(
        "S14",
        "Regular expressions with super-linear time (ReDoS)",
        requirement="0 patterns above linear",
    )
    found, hidden = expressions(Path(bythebook.__path__[0]), _made())
    texts = [(each, list(_attacks(each, blindly=row.full))) for each in found]
    most = rows.count(*_MOST)
    texts = [(each, every[:: -(-len(every) // most) or 1]) for each, every in texts]
    tried = sum(len(some) * len(each.uses) for each, some in texts)
    faults = [fault for each, some in texts if (fault := _fault(each, some))]
    row.record(
        f"{len(found)} regular expressions, all that the code has, in the ways it uses them, by "
        f"{tried:,} texts made of their own parts, of up to {_LARGE[-1]:,} signs",
        "; ".join(hidden + faults) or "0 above linear",
        passed=not (hidden or faults),
    )


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"\s+$", "search"),
        (r"[ \t]*\n[ \t]*", "sub"),
        (r"\A\W+|\W+\Z", "sub"),
        (r"[\w ]+ is a [^.]+\.", "fullmatch"),
        (r"/\*.*?\*/", "findall"),
        (r"#\s+(.+?)\s*#*\s*$", "match"),
        (r"x(?=[\d,]*\d!)|\d+(?![\d,]*\d)", "search"),
        (r"(?:a|aa)*b", "match"),
        (r"(?:a+)+b", "match"),
        (r"(?:a*)*b", "search"),
    ],
)
def test_a_pattern_above_linear_is_caught(pattern: str, use: str) -> None:
    each = Expression("here", re.compile(pattern), frozenset([use]))
    assert _fault(each, _attacks(each))


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"(?<!\s)\s++$", "search"),
        (r" ?\n ?", "sub"),
        (r"\w(?:.*\w)?", "search"),
        (r"/\*.*?(?:\*/|\Z)", "findall"),
        (r"(?i)\b(?:one|two|three|four) (?:hundred|thousand)\b", "findall"),
    ],
)
def test_a_linear_pattern_is_not(pattern: str, use: str) -> None:
    each = Expression("here", re.compile(pattern), frozenset([use]))
    assert not _fault(each, _attacks(each, blindly=True))


def test_a_pattern_that_cannot_be_seen_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hiding"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import re\nimport re as other\nfrom re import compile as made\n"
        "SEEN = re.compile('a')\nALSO = [re.compile(SEEN.pattern + 'b', re.I)]\n"
        "def word(text):\n    return re.search(re.escape(text), 'a')\n"
        "def hidden(text):\n    return re.search('a' + text, 'a') or SEEN.match(text)\n"
        "SCANNER = re.Scanner\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found, hidden = expressions(package, {"hiding.gone": ("match", [])})
    assert [(each.where, each.pattern.pattern, each.uses) for each in found] == [
        ("hiding.SEEN", "a", {"match"}),
        ("hiding.ALSO", "ab", {"fullmatch", "sub"}),
    ]
    assert sorted(hidden) == [
        "hiding.gone: is listed, and makes no pattern",
        "hiding.hidden: makes a pattern when it runs, and is not listed",
        "hiding: from re import compile as made",
        "hiding: import re as other",
        "hiding: re.Scanner",
    ]


def _made() -> dict[str, tuple[str, list[re.Pattern[str]]]]:
    """Return patterns that are only known at run time, by the function that makes them."""
    globs = [files._glob(glob) for glob in ("**/*.test.{js,ts}", "**/_*/**")]
    return {
        "bythebook.grounding.verbatim._in_a_row": (
            "finditer",
            [verbatim._in_a_row(["a", "b", "a"])],
        ),
        "bythebook.grounding.stream_splitter._closing": (
            "search",
            [stream_splitter._closing(sign, 3) for sign in "`~"],
        ),
        "bythebook.answering.answer_span._in_a_row": (
            "search",
            [answer_span._in_a_row(["a", "b"])],
        ),
        "bythebook.language.english.question_types._defining": (
            "match",
            [question_types._defining("a b a")],
        ),
        "bythebook.sources.markdown.mdx._UNWRAPPED": ("match", list(mdx._UNWRAPPED.values())),
        "bythebook.sources.files._glob": ("match", globs),
        **{
            f"bythebook.language.english.overview_questions.{make.__name__}": (
                "search",
                [pattern for topic in ("module 2", "chapters 12") if (pattern := make(topic))],
            )
            for make in (overview_questions.numbered_part, overview_questions.numbered_path)
        },
        "bythebook.evaluation.questions._compiled": (
            "search",
            [questions._compiled(text, "any") for text in ("a b", r"a(?:b|c)? \d\b", "a.{0,9}b")],
        ),
        "bythebook.text.text_kinds._any_of": (
            "search",
            [text_kinds._PHRASE, text_kinds._ANYWHERE],
        ),
        "bythebook.text.text_kinds._patterns": (
            "search",
            [
                pattern
                for table in (
                    text_kinds._LABELS,
                    text_kinds._STRUCTURES,
                    text_kinds._INSIDE,
                    text_kinds._ORDERS,
                )
                for pattern in table.values()
            ],
        ),
    }


def _attacks(each: Expression, *, blindly: bool = False) -> dict[Attack, None]:
    found = [attacks(each.pattern, anywhere=way) for way in {use in ANYWHERE for use in each.uses}]
    if blindly:
        found.append(blind_attacks(each.pattern))
    return dict.fromkeys(chain(*found))


def _fault(each: Expression, texts: Iterable[Attack]) -> str | None:
    for use, attack in product(sorted(each.uses), texts):
        steepness = _steepness(_work(each.pattern, use), attack)
        if steepness > _STEEPEST:
            said = f"{attack.head!r}, {attack.pump!r} again and again, {attack.tail!r}"
            return f"{each.where}.{use}: power {steepness:.1f} by {said}"
    return None


def _work(pattern: re.Pattern[str], use: str) -> Callable[[str], object]:
    if use in ("sub", "subn"):
        return lambda text: pattern.sub("", text)
    if use == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    work: Callable[[str], object] = getattr(pattern, use)
    return work


def _steepness(work: Callable[[str], object], attack: Attack) -> float:
    """Return the exponent of time over size, the best of a few runs."""
    for size in _SMALL + _LARGE:
        took = _seconds(work, attack.text(size))
        if took > _TOO_LONG_S:
            return math.inf
        if size == _SMALL[-1] and took < _NOTHING_S:
            return 1
    short, long = attack.text(_SMALL[-1]), attack.text(_LARGE[-1])
    steepness = math.inf
    for _ in range(_MOMENTS):
        growth = _seconds(work, long, runs=2) / _seconds(work, short, runs=8)
        steepness = min(steepness, math.log(growth, len(long) / len(short)))
        if steepness <= _STEEPEST:
            break
    return steepness


def _seconds(work: Callable[[str], object], text: str, runs: int = 1) -> float:
    """Return the CPU time of the best run.

    `tests.support.clock` would run the garbage collector for each of thousands of calls; a pattern
    leaves nothing to collect.
    """
    best = math.inf
    for _ in range(runs):
        start = time.process_time()
        work(text)
        best = min(best, time.process_time() - start)
    return max(best, 1e-6)
