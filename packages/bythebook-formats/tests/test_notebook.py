"""Notebooks: cells and outputs, anchors of nbconvert, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.sources.jupyter import cell, convert, ids_of, notebook, sample_notebook, stream

from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.interfaces.blocks import Anchor, Block, Code, Heading, Maths, Paragraph, Table
from bythebook.interfaces.source import Problem, SiteOptions, SourcePage
from bythebook.sources.files import Files
from bythebook_formats.notebook.source import NotebookSource

MANY = "has more than 20,000 cells"
HEADINGS = [
    "Hello World", "What's New?", "C++ & `code` <b>x</b>", "Über größe", "日本語 見出し",
    "Maths $x^2$ here", "A [link](http://x.y) text", "Dup", "Dup", "1. Numbered, 2nd",
    "a_b *em* __c__", "![alt text](a.png) img", "Dots... and—dashes -- x", "100", "Trailing #",
    "Emoji 😀 yes", "slash/and\\\\back \\* esc", "&amp; entity &copy;", "Vector<T> of", "a <br> b",
    "It's \"quoted\" text...", "Tag {#custom}", "Ⅳ roman ½", "~~gone~~ left", "http://auto.link ok",
]  # fmt: skip


def read(tmp_path: Path, text: str | bytes) -> tuple[SourcePage | None, list[Problem]]:
    file = tmp_path / "book.ipynb"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    problems: list[Problem] = []
    pages = list(NotebookSource().read(file, Files(Path("/")), SiteOptions(), problems.append))
    return (pages[0] if pages else None), problems


def blocks_of(tmp_path: Path, *cells: dict[str, Any], minor: int = 4) -> tuple[Block, ...]:
    page, _ = read(tmp_path, notebook(cells, minor=minor))
    assert page is not None
    return page.document.blocks


def data(**types: Any) -> dict[str, Any]:
    values = {name.replace("__", "/"): value for name, value in types.items()}
    return {"output_type": "display_data", "metadata": {}, "data": values}


def test_cells_become_blocks_and_code_is_kept_byte_for_byte(tmp_path: Path) -> None:
    code = "def f(x):\n\treturn {\n        'a':  x}   # ünïcode\n\n\nf(1)"
    output = "  a\tb\n\n 1  2 \n"
    table = "|a|b|\n|-|-|\n|1|2|"
    found = blocks_of(
        tmp_path,
        cell("markdown", f"# Kites\n\nText with $x$.\n\n{table}\n\n$$ a\n= b $$"),
        cell("code", code, outputs=[stream(output[:4]), stream(output[4:], "stderr")]),
    )
    assert isinstance(found[2], Table)
    assert isinstance(found[0], Heading)
    assert found[0].text == "Kites"
    assert next(block for block in found if isinstance(block, Maths)).text == "a\n= b"
    program, printed = found[-2:]
    assert isinstance(program, Code)
    assert isinstance(printed, Code)
    assert (program.language, program.title, program.text) == ("python", "", code)
    assert (printed.language, printed.title, printed.text) == ("", "Output", output[:-1])


def test_text_of_rich_outputs_is_kept_and_pictures_are_counted(tmp_path: Path) -> None:
    figure = {"text__plain": "<Figure size 640x480 with 1 Axes>", "image__png": "iVBORw0KGgo="}
    outputs = [
        data(text__html="<table></table>", text__plain=["   a\n", "0  1"]),
        data(**figure),
        data(**figure),
        data(**{"application/vnd.jupyter.widget-view+json": {}, "text__plain": "IntSlider(0)"}),
        data(text__html="<b>only</b>"),
        data(text__markdown="## Result\n\n*Good*", text__plain="<IPython.Markdown object>"),
        data(text__latex="$\\alpha$"),
        {"output_type": "error", "ename": "E", "traceback": ["\x1b[0;31mE\x1b[0m: v"]},
    ]  # fmt: skip
    page, problems = read(tmp_path, notebook([cell("code", "x", outputs=outputs)]))
    assert page is not None
    texts = [getattr(block, "text", "") for block in page.document.blocks]
    assert texts == ["x", "   a\n0  1", "Result", "Good", "\\alpha", "E: v"]
    assert [(problem.reason, problem.fatal) for problem in problems] == [
        ("1 HTML output, 2 images and 1 widget are not in the book", False)
    ]


def test_tags_remove_cells_inputs_and_outputs(tmp_path: Path) -> None:
    out = [stream("out")]
    found = blocks_of(
        tmp_path,
        cell("code", "hidden = 1", tags=["hide-cell"], outputs=out),
        cell("code", "a", tags=["remove-input"], outputs=out),
        cell("code", "b", tags=["remove_output"], outputs=out),
        cell("code", "c", tags=["remove-cell"], outputs=out),
        cell("markdown", "# Gone", tags=["remove-cell"]),
    )
    assert [block.text for block in found if isinstance(block, Code)] == [
        *("hidden = 1", "out"),
        *("out", "b"),
    ]
    assert len(found) == 4


def test_plain_raw_cells_are_text_and_others_are_counted(tmp_path: Path) -> None:
    cells = [
        cell("raw", "---\ntitle: x\n---"),
        cell("raw", "plain\ntext\n\nmore"),
        cell("raw", "<p>html</p>", metadata={"format": "text/html"}),
        cell("raw", "rst", metadata={"raw_mimetype": "text/restructuredtext"}),
    ]
    page, problems = read(tmp_path, notebook(cells))
    assert page is not None
    assert [block.text for block in page.document.blocks if isinstance(block, Paragraph)] == [
        *("plain text", "more"),
    ]
    assert [problem.reason for problem in problems] == ["2 raw cells are not in the book"]


def test_the_third_format_is_read(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old  head"], "metadata": {}},
        {"cell_type": "code", "language": "R", "input": ["x <- 1\n", "x"], "metadata": {},
         "outputs": [{"output_type": "pyout", "text": ["[1] 1"], "metadata": {}},
                     {"output_type": "display_data", "png": "iVBORw0KGgo=", "metadata": {}}]},
    ]  # fmt: skip
    value = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    page, problems = read(tmp_path, json.dumps(value))
    assert page is not None
    heading, program, output = page.document.blocks
    assert isinstance(heading, Heading)
    assert (heading.level, heading.text, heading.anchor) == (2, "Old head", "Old-head")
    assert isinstance(program, Code)
    assert (program.language, program.text) == ("r", "x <- 1\nx")
    assert isinstance(output, Code)
    assert output.text == "[1] 1"
    assert [problem.reason for problem in problems] == ["1 image is not in the book"]


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (b"\xff", "not valid UTF-8", 1),
        (b'{"cells":\n[', "is not JSON: Expecting value", 2),
        (b"[1]", "is not a notebook: its JSON is not an object", None),
        (b"{}", "is not a notebook of nbformat 3 or 4 (`nbformat` is 0)", None),
        (b'{"nbformat": 4}', "is not a notebook: it has no list of cells", None),
        (b'{"nbformat": 4, "cells": ' + b"[" * 100_000, "is nested too deeply", None),
        (b'{"nbformat": 4, "cells": [' + b"1," * 20_000 + b"1]}", MANY, None),
    ],
)  # fmt: skip
def test_an_unreadable_notebook_is_reported(
    text: bytes, reason: str, line: int | None, tmp_path: Path
) -> None:
    assert read(tmp_path, text) == (None, [Problem("book.ipynb", line, reason, fatal=True)])


def test_values_of_a_wrong_type_are_read_as_empty(tmp_path: Path) -> None:
    text = notebook(
        [
            cell("markdown", "Half of a pair: \\ud83d"),
            {"cell_type": "code", "source": 5, "outputs": {"a": 1}, "metadata": []},
            {"cell_type": ["code"], "source": "x"},
            {"cell_type": "code", "source": ["a", 1, "b"], "outputs": [1, {"data": [2]}]},
        ]
    ).replace("\\\\ud83d", "\\ud83d")
    page, _ = read(tmp_path, text.replace('"nbformat_minor": 5', f'"nbformat_minor": {"9" * 9999}'))
    assert page is not None
    texts = [getattr(block, "text", "") for block in page.document.blocks]
    assert texts == ["Half of a pair: \ufffd", "ab"]


def test_far_cells_and_headings_without_an_id_are_linked_by_the_id_of_the_cell(
    tmp_path: Path,
) -> None:
    long = "word " * 400
    cells = [
        cell("code", "import kites", "first"),
        cell("markdown", "## Lift\n\nIt flies.", "lift"),
        cell("code", "lift()", "near"),
        cell("markdown", long, "long"),
        cell("markdown", "Far below.", "far"),
        cell("markdown", "## Lift\n\nAgain.", "again"),
    ]
    page, _ = read(tmp_path, notebook(cells))
    assert page is not None
    names = [block.name for block in page.document.blocks if isinstance(block, Anchor)]
    assert names == ["cell-id=first", "cell-id=far", "cell-id=again"]
    page, _ = read(tmp_path, notebook(cells, minor=4))
    assert page is not None
    assert not any(isinstance(block, Anchor) for block in page.document.blocks)


def test_the_page_is_named_by_its_file_and_its_first_heading(tmp_path: Path) -> None:
    page, _ = read(tmp_path, notebook([cell("markdown", "Intro.\n\n# The *title*")]))
    assert page is not None
    assert (page.file, page.title, page.url) == ("book.ipynb", "The title", "/book.html")


def test_no_word_and_no_line_of_code_of_the_sample_book_is_lost(tmp_path: Path) -> None:
    text = sample_notebook()
    (tmp_path / "book.ipynb").write_text(text, encoding="utf-8")
    book = read_book(tmp_path / "book.ipynb")
    page, _ = read(tmp_path, text)
    assert page is not None
    assert book.coverage >= 0.995
    codes = [block.text for block in page.document.blocks if isinstance(block, Code)]
    sources = [one["source"] for one in json.loads(text)["cells"] if one["cell_type"] == "code"]
    assert len(sources) > 20
    assert not [
        source for source in sources if source.strip() and source.removesuffix("\n") not in codes
    ]


@pytest.mark.real
def test_all_anchors_are_on_the_page_of_nbconvert(tmp_path: Path) -> None:
    cells = [cell("markdown", "# Title of it\n\nIntro.", "title")]
    for number, heading in enumerate(HEADINGS):
        level = "#" * (2 + number % 3)
        cells.append(cell("markdown", f"{level} {heading}\n\nText {number}.", f"h-{number}"))
    nested = (
        "Setext\n===\n\n<h2 id='own'>Own</h2>\n\n<h2>None</h2>\n\n- # In list\n\n> ## In quote\n"
    )
    cells.append(cell("markdown", nested, "nested"))
    cells.append(cell("code", "x = 1\n" * 400, "code-1", outputs=[stream("y\n" * 400)]))
    cells.append(cell("markdown", "Text of a cell.", "far-cell"))
    file = tmp_path / "book.ipynb"
    file.write_text(notebook(cells), encoding="utf-8")
    book = read_book(file)
    ids = ids_of(convert(file))
    anchors = [anchor for page in book.pages for _, anchor in page.headings if anchor]
    assert set(anchors) <= ids
    assert len(anchors) >= len(HEADINGS)
    assert fragments(book) <= ids
    assert "cell-id=far-cell" in fragments(book)


def fragments(book: ParsedBook) -> set[str]:
    """Return the anchors that passages link to."""
    found = (urlsplit(passage.place.url).fragment for passage in book.passages)
    return {fragment.partition(":~:")[0] for fragment in found} - {""}
