"""Jupyter Books: tables of contents, URLs, MyST syntax, and anchors of a real build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from test_notebook import HEADINGS, fragments
from tests.sources.jupyter import build_book, cell, ids_of, notebook, write
from tests.support.samples import SAMPLE_BOOK

from bythebook.errors import SourceError
from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.interfaces.blocks import Block, Box, Code, Heading, Listing, Maths, Table
from bythebook.interfaces.source import SiteOptions
from bythebook.sources.documents import plain_text
from bythebook.sources.markdown.mdx import MdxSource, ParseOptions, parse
from bythebook_formats.jupyter_book.myst import add_jupyter_book
from bythebook_formats.notebook.heading_ids import DocutilsIds, MystIds, add_heading_ids

MYST = ParseOptions(
    mdx=False,
    loose=True,
    maths="on",
    notes_heading=False,
    plugins=(add_jupyter_book, add_heading_ids),
)

CONFIG = """title: Kites
html:
  baseurl: https://kites.example/book
execute:
  execute_notebooks: "off"
"""
TOC = """format: jb-book
root: intro
parts:
- caption: Basics
  chapters:
  - file: wind
    sections:
    - file: part/lift
    - url: https://elsewhere.example
- caption: More
  chapters:
  - glob: more/*
"""
LIFT = notebook([cell("markdown", "# Lift\n\n## Force"), cell("code", "f = 1"), cell("raw", "raw")])
PAGES = {
    "intro.md": "# Intro\n\nRead {doc}`wind` and {ref}`how`, or [](how).\n",
    "wind.md": "# Wind\n\n(how)=\n## How it *blows*\n\nStrongly. See {doc}`part/lift`.\n",
    "part/lift.ipynb": LIFT,
    "more/p10.md": "# Ten\n\nText.\n",
    "more/p2.md": "# Two\n\nText.\n",
    "unlisted.md": "# Unlisted\n",
}


def blocks_of(text: str) -> tuple[Block, ...]:
    return parse(MdxSource.of(text), myst()).blocks


def myst() -> ParseOptions:
    return replace(MYST, env={"heading_ids": DocutilsIds(), "kernel": "python"})


def one(text: str) -> Block:
    (block,) = blocks_of(text)
    return block


def read(folder: Path, files: dict[str, str], **options: str) -> ParsedBook:
    return read_book(write(folder, files), SiteOptions(**options))  # type: ignore[arg-type]


# --- table of contents and configuration ----------------------------------------------------------


def test_pages_are_in_the_order_of_the_table_of_contents(tmp_path: Path) -> None:
    book = read(tmp_path, {"_toc.yml": TOC, "_config.yml": CONFIG, **PAGES})
    places = [page.passages[0].place for page in book.pages]
    assert [(place.title, place.module, place.chapter) for place in places] == [
        ("Intro", "Intro", "Intro"),
        ("Wind", "Basics", "Wind"),
        ("Lift", "Basics", "Wind"),
        ("Two", "More", "Two"),
        ("Ten", "More", "Ten"),
    ]
    assert book.pages[2].url == "https://kites.example/book/part/lift.html"
    assert book.coverage == 1.0
    assert not book.problems
    assert "Read Wind and How it blows, or How it blows." in book.passages[0].text


@pytest.mark.parametrize(
    "toc",
    [
        "format: jb-article\nroot: intro\nsections:\n- file: wind.md\n  sections: [part/lift]\n",
        "format: jb-book\nroot: intro\nchapters:\n- file: wind\n- file: part/lift\n",
        "root: intro\nsubtrees:\n- caption: A\n  entries:\n  - file: wind\n  - file: part/lift\n",
        "- file: intro\n- part: A\n  chapters:\n  - file: wind\n    sections: [part/lift]\n",
        "- file: intro\n- header: A\n- file: wind\n- file: part/lift\n- url: https://a.example\n",
    ],
)  # fmt: skip
def test_every_format_of_the_table_of_contents_is_read(toc: str, tmp_path: Path) -> None:
    book = read(tmp_path, {"_toc.yml": toc, **PAGES})
    assert [page.title for page in book.pages] == ["Intro", "Wind", "Lift"]
    assert [page.url for page in book.pages] == ["/intro.html", "/wind.html", "/part/lift.html"]


def test_the_address_of_the_site_can_be_given(tmp_path: Path) -> None:
    files = {"_toc.yml": TOC, "_config.yml": CONFIG, **PAGES}
    assert read(tmp_path, files, url="https://a.example").pages[0].url == (
        "https://a.example/intro.html"
    )
    other = read(tmp_path, files, url="https://a.example", base_url="/b/")
    assert other.pages[0].url == "https://a.example/b/intro.html"


def test_jupyter_book_2_is_read_with_its_own_urls_and_ids(tmp_path: Path) -> None:
    toc = (
        "version: 1\nproject:\n  title: Kites\n  toc:\n  - file: intro.md\n  - title: Basics\n"
        "    children:\n    - file: wind.md\n      children:\n      - file: part/lift.ipynb\n"
        "  - pattern: more/*.md\n"
    )
    book = read(tmp_path, {"myst.yml": toc, **PAGES})
    assert [page.url for page in book.pages] == ["/", "/wind", "/lift", "/p2", "/p10"]
    assert [anchor for _, anchor in book.pages[1].headings] == [None, "how"]
    assert [anchor for _, anchor in book.pages[2].headings] == [None, "force"]
    assert book.pages[2].passages[0].place.module == "Basics"
    parsed = parse(MdxSource.of("## It's 1\n\n## 1 a\n\n## 1 a\n"), _mystmd())
    assert [heading.anchor for heading in parsed.headings] == ["its-1", "id-1-a", "id-1-a-1"]


def test_folders_named_by_a_number_keep_it_in_the_url(tmp_path: Path) -> None:
    toc = (
        "version: 1\nproject:\n  toc:\n  - file: intro.md\n  - file: book/04/03-drag.md\n"
        "  - file: book/04/05.md\n  - file: book/2024-notes/翼.md\n"
        "site:\n  options:\n    folders: true\n"
    )
    names = ("intro.md", "book/04/03-drag.md", "book/04/05.md", "book/2024-notes/翼.md")
    book = read(tmp_path, {"myst.yml": toc, **dict.fromkeys(names, "# A\n\nText.\n")})
    urls = [page.url for page in book.pages]
    assert urls[:3] == ["/", "/book/04/drag", "/book/04/05"]
    assert unquote(urls[3]) == "/book/2024-notes/翼"


def _mystmd() -> ParseOptions:
    return replace(MYST, env={"heading_ids": MystIds()})


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    toc = "root: intro\nchapters:\n- file: old\n- file: gone\n- file: ../out\n- file: bad\n"
    files = {"_toc.yml": toc, "intro.md": "# Intro\n", "old.rst": "Old\n===\n", "bad.ipynb": "["}
    book = read(tmp_path / "book", {**files, "../out.md": "# Out\n"})
    assert [page.title for page in book.pages] == ["Intro"]
    reasons = {problem.file: problem for problem in book.problems if problem.fatal}
    assert "`jupyter-book build BOOK`" in reasons["old.rst"].reason
    assert "is not JSON" in reasons["bad.ipynb"].reason
    missing = [problem.reason for problem in book.problems if problem.file == "_toc.yml"]
    assert missing == [f"lists {name!r}, which is not in the book" for name in ("gone", "../out")]


@pytest.mark.parametrize("toc", ["a: [", "a: &x 1\nb: *x\n"])
def test_a_broken_table_of_contents_is_an_error_with_a_hint(toc: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read") as caught:
        read(tmp_path, {"_toc.yml": toc})
    assert caught.value.hint


def test_included_files_are_part_of_the_page(tmp_path: Path) -> None:
    page = (
        "# A\n\n```{include} part/inc.md\n```\n\n```{literalinclude} run.py\n:language: python\n"
        ":lines: 2-3\n```\n\n````md\n```{include} part/inc.md\n```\n````\n"
    )
    files = {"part/inc.md": "## Included\n\nWords.\n", "run.py": "a\nb = '```'\nc\nd\n"}
    book = read(tmp_path, {"_toc.yml": "root: a\n", "a.md": page, **files})
    assert [text for text, _ in book.pages[0].headings] == ["A", "Included"]
    shown = "\n".join(passage.text for passage in book.passages)
    assert "Words." in shown
    assert "b = '```'\nc\n" in shown
    assert shown.count("{include}") == 1


# --- MyST -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title", "content"),
    [
        ("```{note}\nA *b*.\n```", "Note", "A b."),
        (":::{tip} First\nSecond\n:::", "Tip", "First\nSecond"),
        ("```{seealso}\nThis.\n```", "See also", "This."),
        (":::{admonition} My `title`\n:class: tip\nBody.\n:::", "My title", "Body."),
        ("::::{dropdown} Out\n:::{note}\nIn.\n:::\n::::", "Out", "Note\nIn."),
        ("```{prf:theorem} Name\n:label: t\nText.\n```", "Theorem (Name)", "Text."),
        ("```{versionadded} 1.0\nNew.\n```", "Added in version 1.0", "New."),
        ("```{unknown-thing} Arg\n---\nkey: value\n---\nText.\n```", "Arg", "Text."),
        ("```{glossary}\nKite\nDragon\n  It *flies*.\n```", "Kite, Dragon", "It flies."),
    ],
)
def test_directives_with_a_title_are_boxes(text: str, title: str, content: str) -> None:
    box = one(text)
    assert isinstance(box, Box)
    assert (box.title, plain_text(box.blocks)) == (title, content)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```{figure} a.png\n:alt: An *alt*\n:name: f\n\nCaption.\n```", "An *alt*\nCaption."),
        ("```{image} a.png\n:alt: words\n```", "words"),
        ("```{tableofcontents}\n```", ""),
        ("```{toctree}\na\nb\n```", ""),
        ("% comment\n\n+++ {\"a\": 1}\n\n(label)=\nText", "Text"),
        ("{ref}`shown <target>`, {term}`Kite`, {kbd}`Ctrl`", "shown, Kite, Ctrl"),
        ("{cite}`a2020` {numref}`Figure %s <f>` {eq}`e`", "[a2020] Figure (e)"),
        ("Is {math}`a^2` and {{ name }} kept?", "Is $a^2$ and {{ name }} kept?"),
        ("{fa}`star` {sub}`2` {abbr}`A (B)`", "2 A (B)"),
        ("```{raw} html\n<b>raw</b>\n```", "raw"),
        ("::::{tab-set}\n:::{tab-item} One\nText.\n:::\n::::", "One\nText."),
    ],
)  # fmt: skip
def test_markup_is_not_shown(text: str, shown: str) -> None:
    assert plain_text(blocks_of(text)) == shown


def test_code_and_maths_are_kept_as_they_are() -> None:
    block = one('```{code-block} python\n:linenos:\n:caption: Cap\n\nprint("x")\n\n\ty\n```')
    assert isinstance(block, Code)
    assert (block.language, block.title, block.text) == ("python", "Cap", 'print("x")\n\n\ty')
    cells = blocks_of(
        "```{code-cell} ipython3\n:tags: [hide-input]\n\na = 1\n```\n\n"
        "```{code-cell}\n---\ntags: [remove-cell]\n---\nb\n```\n\n"
        "```{code-cell}\n:tags: remove-input\nc\n```\n"
    )
    assert [(code.language, code.text) for code in cells if isinstance(code, Code)] == [
        ("python", "a = 1")
    ]
    for text in ("```{math}\n:label: e\na = b\n```", "$$\na = b\n$$ (e)", "$$ a = b $$"):
        maths = one(text)
        assert isinstance(maths, Maths)
        assert maths.text == "a = b"
    environment = "\\begin{align}\na_1 &= b_2 \\\\\nc &= d\n\\end{align}"
    assert one(environment) == Maths(environment, (0, len(environment)))


def test_tables_of_lists_are_tables() -> None:
    text = ":header-rows: 1\n\n* - A\n  - B\n* - 1\n  - 2 `x`\n```"
    box = one(f"```{{list-table}} Title\n{text}")
    assert isinstance(box, Box)
    (table,) = box.blocks
    assert isinstance(table, Table)
    assert (box.title, table.header, table.rows) == ("Title", ("A", "B"), (("1", "2 x"),))
    kept = blocks_of("```{list-table}\n* - A\n  - ```\n    code\n    ```\n```")
    assert isinstance(kept[0], Listing)
    table = one('```{csv-table}\n:header: a, b\n1, "2, 3"\n```')
    assert isinstance(table, Table)
    assert (table.header, table.rows) == (("a", "b"), (("1", "2, 3"),))


def test_the_directives_of_docusaurus_books_are_read_as_before() -> None:
    text = "```{note}\nA\n```\n\n{ref}`a`\n\n(b)=\n\n% c\n"
    plain = parse(MdxSource.of(text), ParseOptions(mdx=False))
    assert isinstance(plain.blocks[0], Code)
    assert plain_text(plain.blocks[1:]) == "{ref}a\n(b)=\n% c"


def test_ids_of_docutils_are_numbered_with_footnotes_and_labels() -> None:
    known = "(a)=\n# A\n\n## A\n\nx[^n]\n\n## 日\n\n"
    text = f"{known}```{{bibliography}}\n```\n\n## A\n\n(b)=\n## A\n\n[^n]: N\n"
    headings = [block for block in blocks_of(text) if isinstance(block, Heading)]
    assert [heading.anchor for heading in headings] == ["a", "id2", "id4", None, "b"]


# --- a real build ---------------------------------------------------------------------------------


def sample_pages() -> dict[str, str]:
    """Return the pages of the sample book as MyST pages."""
    docs = SAMPLE_BOOK / "docs"
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(docs.rglob("*.md"))}
    return {f"sample/{file.stem}-{n}.md": text for n, (file, text) in enumerate(texts.items())}


def rules_page() -> str:
    headings = [
        f"{'#' * (2 + n % 2)} {text}\n\nText {n}.[^note]\n" for n, text in enumerate(HEADINGS)
    ]
    return (
        "(rules)=\n# Rules\n\n" + "\n".join(headings) + "\n(own-label)=\n## Dup\n\n"
        "{cite}`nobody`\n\n## 100\n\n```{note}\n### In a box\n```\n\n> ## In a quote\n\n"
        "```{figure} a.png\n:name: named\n\nCaption.\n```\n\n## Named\n\n"
        "## With {ref}`role <rules>`\n\n[^note]: Footnote.\n"
    )  # fmt: skip


@pytest.mark.real
def test_all_urls_and_anchors_are_in_a_real_build(tmp_path: Path) -> None:
    cells = [cell("markdown", f"# Notebook\n\n(nb)=\n## {text}\n\nText.") for text in HEADINGS]
    sample = sample_pages()
    chapters = "[{file: rules}, {file: part/cells}, {glob: sample/*}]"
    toc = f"format: jb-book\nroot: intro\nchapters: {chapters}\n"
    pages = {
        "intro.md": "(intro)=\n# Intro\n\n## Same\n\n## Same\n\n## Intro\n",
        "rules.md": rules_page(),
        "part/cells.ipynb": notebook([*cells, cell("code", "x = 1")], minor=4),
        **sample,
    }
    folder = write(tmp_path / "book", {"_toc.yml": toc, "_config.yml": CONFIG, **pages})
    book = read_book(folder)
    built = build_book(folder)
    assert len(book.pages) == 3 + len(sample)
    assert book.coverage >= 0.995
    count = 0
    for page in book.pages:
        file = built / unquote(urlsplit(page.url).path).removeprefix("/book/")
        assert file.is_file(), page.url
        anchors = [anchor for _, anchor in page.headings if anchor]
        assert set(anchors) <= ids_of(file), page.file
        assert len(anchors) == len(page.headings) == len(set(anchors)), page.file
        count += len(anchors)
    assert count > 100
    assert fragments(book)
