"""Front matter: YAML 1.2 as Docusaurus reads it, and what is rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.markdown.frontmatter import (
    UnreadableFrontMatter,
    read_front_matter,
)


def front(body: str) -> dict[str, object]:
    return read_front_matter(f"---\n{body}\n---\ntext")[0]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("v: No", "No"),
        ("v: on", "on"),
        ("v: 010", 10),
        ("v: 12:30:45", "12:30:45"),
        ("v: 2025-12-29", "2025-12-29"),
        ("v: true", True),
        ("v: ~", None),
        ("v: 1.5", 1.5),
        ("v: '7'", "7"),
        ("v: [a, 'b', 3]", ["a", "b", 3]),
        ("v: {a: {b: 1}}", {"a": {"b": 1}}),
        ("v: |\n  two\n  lines", "two\nlines\n"),
    ],
)
def test_front_matter_values_match_docusaurus(line: str, value: object) -> None:
    assert front(line)["v"] == value


def test_front_matter_line_count_is_returned() -> None:
    assert read_front_matter("---\na: 1\nb: 2\n---\ntext")[1] == 4
    assert read_front_matter("---\n---\ntext") == ({}, 2)


def test_horizontal_rule_at_the_top_is_not_front_matter() -> None:
    assert read_front_matter("---\nno end in sight") == ({}, 0)
    assert read_front_matter("----\na: 1\n---\n") == ({}, 0)
    assert read_front_matter("text\n---\na: 1\n---\n") == ({}, 0)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("---js\nprocess.exit()\n---\n", "'js'", 1),
        ("---toml\na = 1\n---\n", "'toml'", 1),
        ("---\na: &x 1\nb: *x\n---\n", "aliases", 3),
        ("---\na: !!python/object:os.system x\n---\n", "tag", 2),
        ("---\na: 1\nb: : :\n---\n", "YAML", 3),
        ("---\n- a\n- b\n---\n", "names and values", 2),
        ("---\na: " + "[" * 5000 + "\n---\n", "deeper", 2),
        ("---\na: " + "x" * 70_000 + "\n---\n", "64 KiB", 1),
    ],
)
def test_unsafe_yaml_is_rejected_with_its_line(text: str, reason: str, line: int) -> None:
    with pytest.raises(UnreadableFrontMatter) as caught:
        read_front_matter(text)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_yaml_bomb_is_rejected() -> None:
    """With aliases expanded it would have 9 to the power of 8 items."""
    bomb = "\n".join(
        f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" if n else "k0: &a0 [x]" for n in range(9)
    )
    with pytest.raises(UnreadableFrontMatter):
        front(bomb)


@given(st.text(max_size=300))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        values, lines = read_front_matter(f"---\n{text}\n---\n")
    except UnreadableFrontMatter:
        return
    assert lines >= 0
    assert all(isinstance(key, str) for key in values)
