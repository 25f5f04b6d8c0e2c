"""JavaScript expressions are skipped, and literals read, without executing anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.js_literals import (
    UNKNOWN,
    ScanBudget,
    is_comment,
    read_literal,
    skip_expression,
)


@pytest.mark.parametrize(
    "code",
    [
        "{a}",
        "{{a: 1}}",
        "{'}'}",
        '{"\\"}"}',
        "{`}${x}`}",
        "{/* } */}",
        "{a // }\n}",
        "{f(`a`, {b: [1, '}']})}",
        "{'https://example.org/}'}",
    ],
)
def test_an_expression_ends_at_its_own_brace(code: str) -> None:
    text = f"{code} and more }}"
    assert skip_expression(text, 0, len(text), ScanBudget(len(text))) == len(code)


@pytest.mark.parametrize("code", ["{", "{a", "{'", "{/* ", "{(}"])
def test_unclosed_expression_has_no_end(code: str) -> None:
    assert skip_expression(code, 0, len(code), ScanBudget(100)) in (-1, len(code))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("'a'", "a"),
        ('"it\'s \\"so\\""', 'it\'s "so"'),
        ("`two\nlines`", "two\nlines"),
        ("'a' + 'b' +\n 'c'", "abc"),
        ("'\\u007B\\n'", "{\n"),
        ("42", 42),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("[1, 'b', [true]]", [1, "b", [True]]),
        ("{a: 1, 'b': {c: 'd',},}", {"a": 1, "b": {"c": "d"}}),
        ("{a: f(x, y), b: 2}", {"a": UNKNOWN, "b": 2}),
        ("{...rest, /* c */ b: 2 // x\n}", {"b": 2}),
        ("({a: 1})", {"a": 1}),
        ("{a: {b: 1} satisfies Options, c: 3}", {"a": {"b": 1}, "c": 3}),
        ("{async f() { return {x: 1}; }, b: 2}", {"b": 2}),
    ],
)
def test_literals_are_read(code: str, value: object) -> None:
    assert read_literal(code) == value


@pytest.mark.parametrize(
    "code", ["x", "f()", "`a${b}`", "'a'.length", "a ? 'b' : 'c'", "1 + 1", ""]
)
def test_computed_values_are_unknown(code: str) -> None:
    assert read_literal(code) is UNKNOWN


def test_code_of_only_comments_is_empty() -> None:
    assert is_comment(" /* a */ // b")
    assert not is_comment("/* a */ b")


@given(st.text(alphabet="{}[]()'\"`/*\\$,:a \n+", max_size=80))
def test_any_code_is_read_without_error(code: str) -> None:
    read_literal(code)
    assert is_comment(code) in (True, False)
    end = skip_expression("{" + code, 0, len(code) + 1, ScanBudget(len(code)))
    assert end == -1 or 0 < end <= len(code) + 1
