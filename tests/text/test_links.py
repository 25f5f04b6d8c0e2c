"""Links of a book lead to its pages, or to the web, or nowhere."""

from dataclasses import replace

import pytest

from bythebook.text.links import BookLinks
from bythebook.types import Mark, MarkKind, Place
from tests.support.samples import passage

_SITE = "https://book.example/base/"
_LINKS = BookLinks(
    [
        ("intro.md", f"{_SITE}docs/"),
        ("a/one.mdx", f"{_SITE}docs/a/first"),
        ("a/two.md", f"{_SITE}docs/a/two"),
    ]
)
_PLACE = Place("a/one.mdx", "One", f"{_SITE}docs/a/first#x", "", "", ())


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("./two.md#end", "docs/a/two#end"),
        ("../intro.md", "docs/"),
        ("/a/two.md", "docs/a/two"),
        ("two", "docs/a/two"),
        ("/docs/a/two#end", "docs/a/two#end"),
        ("/base/docs/a/two", "docs/a/two"),
        ("#here", "docs/a/first#here"),
        ("/img/x.svg", "img/x.svg"),
        ("x.png", "docs/a/x.png"),
    ],
)
def test_link_within_the_book_leads_to_its_page(target: str, found: str) -> None:
    assert _LINKS.resolve(target, _PLACE, _SITE) == _SITE + found


@pytest.mark.parametrize("target", ["https://x.example/a", "mailto:a@x.example"])
def test_link_to_elsewhere_stays(target: str) -> None:
    assert _LINKS.resolve(target, _PLACE) == target


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "data:text/html,x", "//evil.example/", "http://[", ""]
)
def test_unsafe_link_leads_nowhere(target: str) -> None:
    assert _LINKS.resolve(target, _PLACE) == ""


def test_without_a_site_only_links_to_pages_are_kept() -> None:
    links = BookLinks([("src/a.md", "/src/a"), ("src/b.md", "/src/b")])
    marks = [
        Mark(0, 1, kind, target)
        for kind, target in [
            *((MarkKind.LINK, "b.md"), (MarkKind.LINK, "/b"), (MarkKind.LINK, "gone.md")),
            *((MarkKind.IMAGE, "x.png"), (MarkKind.IMAGE, "https://x.example/x.png")),
        ]
    ]
    place = Place("src/a.md", "A", "/src/a", "", "", ())
    made = links.resolved(replace(passage("Words."), place=place, marks=tuple(marks)))
    assert [mark.target for mark in made.marks or ()] == [
        *("/src/b", "/src/b", "https://x.example/x.png")
    ]
