"""URLs of pages by Docusaurus' rules."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from bythebook.sources.markdown.page_tree import Routes, is_index, split_number


def url(file: str, routes: Routes | None = None, **front: object) -> str:
    return (routes or Routes()).url(PurePosixPath(file), front)


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("01-intro", ("intro", 1)),
        ("003 - my doc", ("my doc", 3)),
        ("01.intro", ("intro", 1)),
        ("01--dd", ("dd", 1)),
        ("2021-11-foo", ("2021-11-foo", None)),
        ("7.0-foo", ("7.0-foo", None)),
        ("1-", ("1-", None)),
        ("intro", ("intro", None)),
    ],
)
def test_number_prefixes(name: str, stripped: tuple[str, int | None]) -> None:
    assert split_number(name) == stripped


@pytest.mark.parametrize(
    ("file", "front", "path"),
    [
        ("intro.md", {}, "/docs/intro"),
        ("M1/C1/S1.md", {"id": "m1-c1-s1"}, "/docs/M1/C1/m1-c1-s1"),
        ("01-ros2/index.md", {"id": "custom"}, "/docs/ros2/"),
        ("01-ros2/README.md", {}, "/docs/ros2/"),
        ("02-gaz/02-gaz.md", {}, "/docs/gaz/"),
        ("03-sim/sim.md", {}, "/docs/sim/sim"),
        ("04-x/01-index.md", {}, "/docs/x/index"),
        ("README.md", {}, "/docs/"),
        ("a/b.md", {"slug": "/top"}, "/docs/top"),
        ("a/b.md", {"slug": "/"}, "/docs/"),
        ("a/b.md", {"slug": "../up"}, "/docs/up"),
        ("a/b.md", {"slug": "../../../up"}, "/docs/up"),
        ("a/b.md", {"slug": "c/d"}, "/docs/a/c/d"),
        ("06-np/07-keep.md", {"parse_number_prefixes": False}, "/docs/06-np/07-keep"),
        ("UPPER_Case/my doc.md", {}, "/docs/UPPER_Case/my%20doc"),
        ("a/b.md", {"id": 10}, "/docs/a/10"),
    ],
)
def test_paths(file: str, front: dict[str, object], path: str) -> None:
    assert url(file, **front) == path


def test_url_starts_with_site_and_base_url() -> None:
    routes = Routes(origin="https://x.example/", base_url="/book/")
    assert url("intro.md", routes) == "https://x.example/book/docs/intro"
    assert url("intro.md", Routes(route_base_path="/")) == "/intro"
    assert url("i.md", Routes(route_base_path="/"), slug="/") == "/"
    assert url("intro.md", Routes(version_path="next")) == "/docs/next/intro"


def test_trailing_slash_setting_does_not_affect_the_base_url() -> None:
    with_slash, without = Routes(trailing_slash=True), Routes(trailing_slash=False)
    assert url("a/b.md", with_slash) == "/docs/a/b/"
    assert url("a/index.md", without) == "/docs/a"
    root = Routes(base_url="/book/", route_base_path="/", trailing_slash=False)
    assert url("index.md", root) == "/book/"


def test_index_file_is_the_page_of_its_folder() -> None:
    assert is_index(PurePosixPath("a/Index.md"))
    assert is_index(PurePosixPath("a/A.md"))
    assert not is_index(PurePosixPath("a/b.md"))
