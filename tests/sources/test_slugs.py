"""Anchors equal to those of github-slugger."""

from __future__ import annotations

import pytest

from bythebook.sources.slugs import Slugger, slug


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("Hello World", "hello-world"),
        ("C++ & Python", "c--python"),
        ("1.2.3", "123"),
        ("a\u00a0b", "ab"),
        ("snake_case stays", "snake_case-stays"),
        ("Emoji 🚀 here", "emoji--here"),
        ("Ünïcödé", "ünïcödé"),
        ("روبوٹ کیا ہے؟", "روبوٹ-کیا-ہے"),
        ("हिन्दी में", "हिन्दी-में"),  # vowel signs are kept: Python's \\w would drop them
        ("机器人 基础", "机器人-基础"),
        ("Two\nlines", "twolines"),
        ("", ""),
    ],
)
def test_slugs_match_github_slugger(text: str, anchor: str) -> None:
    assert slug(text) == anchor


def test_repeated_headings_are_numbered_and_a_literal_number_does_not_collide() -> None:
    slugger = Slugger()
    assert [slugger.slug(text) for text in ("foo", "foo", "foo", "foo-1")] == [
        "foo",
        "foo-1",
        "foo-2",
        "foo-1-1",
    ]


def test_case_is_kept_if_configured() -> None:
    assert slug("ROS 2", keep_case=True) == "ROS-2"
