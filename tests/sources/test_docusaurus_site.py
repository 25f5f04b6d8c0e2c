"""Docusaurus sites: configuration, plugins, versions and hand-written sidebars."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import SiteOptions, read_book
from bythebook.sources.docusaurus import find_config, read_config
from bythebook.sources.files import Files
from tests.sources.book_files import CONFIG, write_files
from tests.support.samples import IN_ORDER, ORDERED


def test_config_literals_are_read_without_executing_code(tmp_path: Path) -> None:
    write_files(tmp_path, {"docusaurus.config.js": CONFIG})
    files = Files(Path("/"))
    file = find_config(files, tmp_path)
    assert file is not None
    config = read_config(files, file)
    assert (config.url, config.base_url) == ("https://book.example", "/base/")
    assert config.plugins[0].route_base_path == "learn"
    assert config.locales == ("en", "ur")
    assert config.maths


def test_computed_setting_is_reported_and_can_be_overridden(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "docusaurus.config.ts": "export default {url: process.env.URL, baseUrl: '/'};",
            "docs/a.md": "text",
        },
    )
    book = read_book(tmp_path / "docs")
    assert book.pages[0].url == "/docs/a"
    assert "url is not a plain literal" in book.problems[0].reason
    settled = read_book(tmp_path / "docs", SiteOptions(url="https://x.example"))
    assert settled.pages[0].url == "https://x.example/docs/a"


@pytest.mark.parametrize("url", ["javascript:alert(1)//", "data:text/html,a", "//evil.example"])
def test_an_address_of_another_scheme_is_not_the_url_of_the_site(tmp_path: Path, url: str) -> None:
    config = f"export default {{url: '{url}', baseUrl: '{url}'}};"
    write_files(tmp_path, {"docusaurus.config.ts": config, "docs/a.md": "text"})
    book = read_book(tmp_path)
    assert book.pages[0].url.startswith("/")
    assert not book.pages[0].url.startswith("//")
    assert book.problems[0].reason.startswith("url (it should look like https://example.org)")


@pytest.mark.parametrize("path", ["../private", "/etc", "docs/../../private", "linked"])
def test_the_path_of_the_docs_stays_in_the_site(tmp_path: Path, path: str) -> None:
    write_files(tmp_path / "private", {"diary.md": "A secret."})
    config = f"export default {{presets: [['classic', {{docs: {{path: '{path}'}}}}]]}};"
    write_files(tmp_path / "site", {"docusaurus.config.js": config})
    (tmp_path / "site" / "linked").symlink_to(tmp_path / "private")
    try:
        book = read_book(tmp_path / "site")
    except SourceError as error:
        told = str(error)
    else:
        assert not book.pages
        told = repr(book.problems)
    assert "diary" not in told
    assert "xdg" not in told


def test_options_override_the_configuration(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"docusaurus.config.js": "module.exports = {baseUrl: '/b/'};", "docs/a/index.md": "text"},
    )
    options = SiteOptions(base_url="/c/", route_base_path="/", trailing_slash=False)
    assert read_book(tmp_path, options).pages[0].url == "/c/a"


def test_a_second_docs_plugin_has_its_own_route(tmp_path: Path) -> None:
    config = """export default {
      presets: [['classic', {docs: {path: 'docs'}}]],
      plugins: [
        ['@docusaurus/plugin-content-docs', {id: 'labs', path: 'labs', routeBasePath: 'l'}],
      ],
    };"""
    write_files(tmp_path, {"docusaurus.config.js": config, "labs/a.md": "x", "docs/b.md": "y"})
    assert read_book(tmp_path / "labs").pages[0].url == "/l/a"
    assert read_book(tmp_path / "docs").pages[0].url == "/docs/b"


def test_subfolder_of_the_docs_keeps_its_urls(tmp_path: Path) -> None:
    files = {"docs/a.md": "# A\n", "docs/01-m/b.md": "# B\n", "docs/01-m/02-n/c.md": "# C\n"}
    write_files(tmp_path, {**files, "docusaurus.config.js": CONFIG})
    whole = {page.file: page for page in read_book(tmp_path / "docs").pages}
    for part, names in (
        ("01-m", ["01-m/02-n/c.md", "01-m/b.md"]),
        ("01-m/02-n", ["01-m/02-n/c.md"]),
    ):
        book = read_book(tmp_path / "docs" / part)
        assert sorted(page.file for page in book.pages) == names
        assert all(page == whole[page.file] for page in book.pages)
    assert whole["01-m/02-n/c.md"].url == "https://book.example/base/learn/m/n/c"


def test_current_docs_of_a_versioned_site_are_under_next(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "docusaurus.config.js": "export default {baseUrl: '/'};",
            "versions.json": '["2.0", "1.0"]',
            "docs/a.md": "x",
            "versioned_docs/version-2.0/a.md": "x",
            "versioned_docs/version-1.0/a.md": "x",
        },
    )
    urls = [
        read_book(tmp_path / folder).pages[0].url
        for folder in ("docs", "versioned_docs/version-2.0", "versioned_docs/version-1.0")
    ]
    assert urls == ["/docs/next/a", "/docs/a", "/docs/1.0/a"]


def test_a_hand_written_sidebar_orders_the_pages(tmp_path: Path) -> None:
    shutil.copytree(ORDERED, tmp_path, dirs_exist_ok=True)
    book = read_book(write_files(tmp_path, {"docusaurus.config.js": CONFIG}) / "docs")
    assert [page.file for page in book.pages] == IN_ORDER
    assert not book.problems


@pytest.mark.parametrize(
    ("sidebars", "order", "reason"),
    [
        ("module.exports = {a: ['b', 'a']};", ["b.md", "a.md", "c.md"], None),
        (
            "export default {a: {X: ['c'], Y: ['gone', 'b']}} satisfies T;",
            ["c.md", "b.md", "a.md"],
            None,
        ),
        ("export default {a: ['c', ...more()]};", ["c.md", "a.md", "b.md"], "not all of it"),
        (
            "export default {a: [{type: 'doc', id: name}, 'b']};",
            ["b.md", "a.md", "c.md"],
            "not all",
        ),
        ("export default make();", ["a.md", "b.md", "c.md"], "not a plain literal"),
        ("export default {a: ['b'", ["a.md", "b.md", "c.md"], "not a plain literal"),
    ],
)
def test_unreadable_sidebar_parts_fall_back_to_file_order(
    tmp_path: Path, sidebars: str, order: list[str], reason: str | None
) -> None:
    pages = {f"docs/{name}.md": f"# {name}\n" for name in "abc"}
    write_files(tmp_path, {**pages, "docusaurus.config.js": CONFIG, "sidebars.js": sidebars})
    book = read_book(tmp_path / "docs")
    assert [page.file for page in book.pages] == order
    assert [problem.file for problem in book.problems] == (["sidebars.js"] if reason else [])
    assert not reason or book.problems[0].reason.startswith(reason)
