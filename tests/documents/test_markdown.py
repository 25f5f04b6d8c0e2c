"""The book as Markdown: what is written is read back as the same book."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.documents.markdown.files import broken_links, links_of, write_file
from bythebook.documents.markdown.pages import (
    MarkdownPage,
    file_names,
    list_text,
    relative_link,
    site_link,
    whole_text,
)
from bythebook.errors import InvalidInput
from bythebook.ingestion.pages import compare_words
from bythebook.ingestion.passages import passages_of
from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.interfaces.blocks import Block, Code, Document, Listing, Paragraph, Table
from bythebook.language.text import words
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook.text.markdown import escape_heading, escape_marks, found_marks, markdown
from bythebook.text.outline import OutlineEntry
from bythebook.text.section_text import join
from bythebook.types import MarkKind, Metadata, Place
from tests.documents.book_pages import blocks_of, by_page, pages_of, read_again
from tests.support.samples import FEATURES, SAMPLE_BOOK, WORKSHOP, read

_AS_MARKDOWN = ParseOptions(mdx=False, loose=True)


@pytest.fixture(scope="module")
def sample() -> ParsedBook:
    return read_book(SAMPLE_BOOK / "docs")


def _read_text(text: str) -> list[str]:
    document = parse(MdxSource.of(text), _AS_MARKDOWN)
    place = Place("a.md", "Title", "/a", "", "", ())
    return [passage.text for passage in passages_of(document, place, Metadata())]


def _markdown(*blocks: Block) -> str:
    place = Place("a.md", "Title", "/a", "", "", ())
    joined = join(passages_of(Document(blocks, (), (), ()), place, Metadata()))
    return markdown(joined.text, joined.marks)


def _line(text: str) -> str:
    return _markdown(Paragraph(text, (0, 1)))


# --- round trip -----------------------------------------------------------------------------------


@pytest.mark.parametrize("docs", [SAMPLE_BOOK / "docs", WORKSHOP, FEATURES])
def test_exported_markdown_is_read_back_with_all_words_and_blocks(
    docs: Path, tmp_path: Path
) -> None:
    book = read_book(docs)
    pages = pages_of(book)
    again = {page.file: page for page in read_again(pages, tmp_path / "docs").pages}
    passages, total, kept = by_page(book), 0, 0
    for page in pages:
        read_page = again[page.name]
        visible = next(each for each in book.pages if each.url == page.url)
        wanted = [word for passage in visible.passages for word in words(passage.text)]
        headings = [word for text, _ in read_page.headings for word in words(text)]
        texts = [word for passage in read_page.passages for word in words(passage.text)]
        covered, _ = compare_words(wanted, [*headings, *texts])
        total, kept = total + len(wanted), kept + covered
        assert blocks_of(list(read_page.passages)) == blocks_of(passages[page.url]), page.name
    assert kept / total >= 0.995


def _headings(text: str, options: ParseOptions) -> list[tuple[int, str]]:
    found = parse(MdxSource.of(text), options).headings
    return [(heading.level, heading.text) for heading in found if heading.level > 1]


def test_headings_have_the_level_of_the_sources(sample: ParsedBook) -> None:
    files = {page.url: SAMPLE_BOOK / "docs" / page.file for page in sample.pages}
    pages = [page for page in pages_of(sample) if files[page.url].is_file()]
    assert len(pages) > 15
    for page in pages:
        source = re.sub(r"\A---\n.*?\n---\n", "", files[page.url].read_text("utf-8"), flags=re.S)
        wanted = _headings(source, ParseOptions())
        assert _headings(page.text, _AS_MARKDOWN) == wanted, page.name


def test_page_starts_with_its_title_and_source(sample: ParsedBook) -> None:
    for page in pages_of(sample):
        title, blank, source, *_ = page.text.split("\n")
        assert title == f"# {page.title}"
        assert (blank, source) == ("", f"Source: {page.url}")
        assert page.text.count(f"\n{title}\n") == 0
        assert page.text.endswith("\n")


def test_code_is_written_byte_for_byte() -> None:
    code = "def f():\n\treturn `x`  \n\n```\n<b>&amp;</b> \\* $1\n```\n"
    text = _markdown(Paragraph("Before *it*.", (0, 1)), Code("py", "a.py", code, (1, 2)))
    assert f"a.py\n````py\n{code}\n````" in text
    assert text.startswith("Before \\*it\\*.\n\n")


def test_long_code_split_into_passages_becomes_one_fence() -> None:
    code = "\n".join(f"value_{number} = compute({number})  # step" for number in range(900))
    assert _markdown(Code("py", "", code, (0, 9))) == f"```py\n{code}\n```"


def test_blocks_inside_a_list_stay_inside_their_item() -> None:
    span = (0, 1)
    code = Code("sh", "", "ls\n\n  -a", span)
    inner = Listing(False, 1, ((Paragraph("deep", span), code),), span)
    items = (
        (Paragraph("one", span), inner, Paragraph("after", span)),
        (Paragraph("two", span), Table(("a",), (("1 | 2",),), span)),
    )
    text = _markdown(Listing(True, 9, items, span))
    (again,) = parse(MdxSource.of(text), _AS_MARKDOWN).blocks
    assert isinstance(again, Listing)
    assert [[type(block) for block in item] for item in again.items] == [
        [Paragraph, Listing, Paragraph],
        [Paragraph, Table],
    ]
    assert again.items[0][1].items[0][1].text == code.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [
        "Use <topic> and </b>, but 1 < 2 and a <- b.",
        "__init__ and snake_case, *args and **kwargs, 2 * 3 and 2*3*4",
        "`a` \\* &amp; ~~gone~~ [x](y) [x][y] [^1] ![x](y)",
        "# no heading",
        "> no quote",
        "+ no item",
        "1) no item",
        "---",
        "===",
        "::: no box",
        "The mass $m_1 * m_2$ and $a_{i*}$ cost $5 or $6",
        "[x]: no definition",
        "C:\\dir\\*.txt",
    ],
)
def test_text_that_looks_like_markup_is_read_back_as_text(line: str) -> None:
    assert _read_text(f"Before.\n\n{_line(line)}\n") == [f"Before.\n\n{line}"]


@given(st.text(st.sampled_from("ab1 *_`<>[]()#\\&;{|}$~.:-+!\"'/=") | st.characters(codec="utf-8")))
def test_any_line_keeps_its_words(text: str) -> None:
    line = " ".join(text.split())
    if "{" in line or "$" in line:  # expressions and maths are not escaped
        return
    got = " ".join(_read_text(f"Before.\n\n{_line(line)}\n"))
    wanted = words(line)
    assert compare_words(wanted, words(got))[1] == ()


@pytest.mark.parametrize("part", ["[", "$a ", "*", "<a", "\\", "[x](", "| ", "- ", "`"])
def test_very_long_lines_take_no_quadratic_time(part: str) -> None:
    line = part * 100_000
    assert max(len(found_marks(line)), len(escape_marks(line))) <= len(line) + 1
    assert list(links_of(line)) == []


def test_headings_are_escaped() -> None:
    for text in ("C #", "F#", "__init__", "## twice", "1. one"):
        document = parse(MdxSource.of(f"## {escape_heading(text)}\n"), _AS_MARKDOWN)
        assert [heading.text for heading in document.headings] == [text]


_INLINE = """\
Use **bold *and* more**, `code|x`, ~~gone~~ and [a *link*](https://x.example/a_b "t").
Next ``a ` b``, ![an image](https://x.example/i.png), <em>html</em> and <a href="/docs/b">b</a>.

> Quoted **words**,
> two lines.

- **Item** [one](https://x.example/1)

  more `code`
- two

| `a|b` | [x](https://x.example/) |
|---|---|
| **c** | d\\|e |

:::warning[Hot `surface`]

Keep *away*.

:::
"""


def _marked(text: str) -> list[tuple[str, str, str]]:
    blocks = parse(MdxSource.of(text), _AS_MARKDOWN).blocks
    place = Place("a.md", "Title", "/a", "", "", ())
    return [
        (passage.text[mark.start : mark.end], mark.kind.name, mark.target)
        for passage in passages_of(Document(blocks, (), (), ()), place, Metadata())
        for mark in passage.marks or ()
        if mark.kind is not MarkKind.INSERTED
    ]


def test_inline_markup_is_written_and_read_back() -> None:
    found = _marked(_INLINE)
    assert found[:9] == [
        ("bold and more", "STRONG", ""),
        ("and", "EMPHASIS", ""),
        ("code|x", "CODE", ""),
        ("gone", "STRUCK", ""),
        ("a link", "LINK", "https://x.example/a_b"),
        ("link", "EMPHASIS", ""),
        ("a ` b", "CODE", ""),
        ("an image", "IMAGE", "https://x.example/i.png"),
        ("html", "EMPHASIS", ""),
    ]
    text = _markdown(*parse(MdxSource.of(_INLINE), _AS_MARKDOWN).blocks)
    assert _marked(text) == found
    assert "> Quoted **words**, two lines." in text
    assert "> **Warning — Hot surface**\n>\n> Keep *away*." in text


# --- names and lists ------------------------------------------------------------------------------


def _entry(url: str) -> OutlineEntry:
    return OutlineEntry(url, "T", "M", "C", "en", (), 1, 9)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://book.example/docs/a/", "docs/a.md"),
        ("https://book.example/", "index.md"),
        ("", "index.md"),
        ("/docs/%E7%AC%AC", "docs/第.md"),
        ("notes/a.md", "notes/a.md.md"),
        ("/a/../../etc/passwd", "a/etc/passwd.md"),
        ("/..", "index.md"),
        ("/a/%2e%2e/%2E%2E/b", "a/b.md"),
        ("/a\\..\\b", "a/b.md"),
        ("/a%00b/c", "ab/c.md"),
    ],
)
def test_name_of_a_page_stays_inside_the_folder(url: str, name: str) -> None:
    assert list(file_names([_entry(url)])) == [name]


@given(st.lists(st.text(st.sampled_from("ab/.\\%2e"), max_size=12), unique=True))
def test_names_are_unique_and_inside(urls: list[str]) -> None:
    names = file_names([_entry(url) for url in urls])
    assert len(names) == len(urls)
    for name in names:
        assert not Path(name).is_absolute()
        assert ".." not in Path(name).parts


def test_names_are_relative_to_the_base_of_the_site() -> None:
    pages = [
        _entry(f"https://b.example/{path}") for path in ("book", "book/docs/a", "booklet/a", "")
    ]
    assert list(file_names(pages, "/book/")) == ["index.md", "docs/a.md"]


def test_list_has_title_summary_modules_and_descriptions(book_folder: Path) -> None:
    text = list_text(pages_of(read(book_folder)), relative_link)
    assert text == (
        "# Welcome\n\n"
        "> This little book is about kites and kettles.\n\n"
        "## Welcome\n\n"
        "- [Welcome](docs/intro.md): This little book is about kites and kettles.\n\n"
        "## Workshop\n\n"
        "- [Building a kite](docs/workshop/building.md): How a kite is made.\n"
    )


def test_links_are_absolute_with_a_site_url_and_relative_without() -> None:
    page = MarkdownPage("a b.md", "https://x.example/book/a b", "T", "M", "en", "", "", "")
    assert site_link(page, "/book/") == "https://x.example/book/a%20b.md"
    assert site_link(page) == "https://x.example/a%20b.md"
    local = MarkdownPage("a b.md", "/book/a b", "T", "M", "en", "", "", "")
    assert site_link(local, "/book/") == "a%20b.md"


@pytest.mark.parametrize("title", ["a [b] c", "x](y) [z", "\\[", "*a*", "[^1]", "]", "`]`"])
def test_title_in_a_link_is_read_back(title: str, tmp_path: Path) -> None:
    page = MarkdownPage("a.md", "/a", title, "M", "en", "", "A sentence.", "")
    text = list_text([page], relative_link)
    assert list(links_of(text)) == ["a.md"]
    assert _read_text(text)[-1] == f"- {title}: A sentence."


def test_whole_book_has_every_page(sample: ParsedBook) -> None:
    pages = pages_of(sample)
    text = whole_text(pages)
    assert all(page.text in text for page in pages)
    assert text.startswith(f"# {pages[0].title}\n")


# --- files and links ------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "link"), [("/", "docs/"), ("/physical-ai-book/", "docs.md")])
def test_every_link_leads_to_a_written_file(
    sample: ParsedBook, tmp_path: Path, base: str, link: str
) -> None:
    pages = pages_of(sample, base)
    write_file(tmp_path, "llms.txt", list_text(pages, lambda page: site_link(page, base)))
    for page in pages:
        assert len(broken_links(tmp_path, base_url=base)) == len(pages) - pages.index(page)
        write_file(tmp_path, page.name, page.text)
    assert broken_links(tmp_path, base_url=base) == []
    text = (tmp_path / "llms.txt").read_text("utf-8")
    assert len(list(links_of(text))) == len(pages) == 20
    assert any(link in target for target in links_of(text))


def test_links_of_the_list_that_lead_to_no_file_are_found(tmp_path: Path) -> None:
    write_file(tmp_path, "c.md", "")
    write_file(
        tmp_path,
        "llms.txt",
        "[u](c.md) [v](d.md) [w](../e.md) [x](https://b.example/other/c.md) "
        "[y](https://b.example/c.md) [z](https://b.example/book/c.md)",
    )
    assert broken_links(tmp_path, base_url="/book/") == [
        *("d.md", "../e.md", "https://b.example/other/c.md", "https://b.example/c.md")
    ]


def test_no_file_is_written_outside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    for name in ("../x.md", "a/../../x.md", "link/x.md", str(tmp_path / "x.md")):
        with pytest.raises(InvalidInput):
            write_file(folder, name, "text")
    assert not list(tmp_path.rglob("x.md"))


def test_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_file(tmp_path, "a/b.md", "old")
    write_file(tmp_path, "a/b.md", "new")
    assert (tmp_path / "a" / "b.md").read_text() == "new"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.md"]
    (tmp_path / "c.md").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path, "c.md", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c.md"]
