"""PDF files: reading order, paragraphs, lists, code, tables, headings, pages and refusals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.pdf_writer import BOLD, COURIER, MATHS, TIMES, Entry, PdfWriter

from bythebook.ingestion.pages import split_page
from bythebook.ingestion.read_book import ParsedBook, read_book
from bythebook.interfaces.blocks import (
    Anchor,
    Block,
    Code,
    Document,
    Heading,
    Listing,
    Paragraph,
    Table,
)
from bythebook.interfaces.source import Problem, SiteOptions, SourcePage
from bythebook.sources.documents import headings_of, plain_text
from bythebook.sources.files import Files
from bythebook_formats.pdf.chapters import chapters_of
from bythebook_formats.pdf.extraction import extract, lost_words
from bythebook_formats.pdf.model import PdfChapter, PdfRefused
from bythebook_formats.pdf.process import WorkerLimits
from bythebook_formats.pdf.source import PdfSource

_LONG = [
    "A kite is an aircraft that is heavier than air and that flies on a string. The wind",
    "pushes against the sail, and the string keeps the kite from drifting away, so that",
    "the air is turned downwards and the kite is lifted.",
]


def _chapters(pdf: PdfWriter) -> list[PdfChapter]:
    chapters = chapters_of(extract(pdf.bytes()), "book")
    for chapter in chapters:
        assert _missing(chapter) == ()
    return chapters


def _missing(chapter: PdfChapter) -> tuple[str, ...]:
    blocks = tuple(chapter.blocks)
    document = Document(blocks, tuple(headings_of(blocks)), tuple(chapter.words))
    return split_page(SourcePage("f", chapter.title, "/f", document)).missing


def _blocks(pdf: PdfWriter) -> list[Block]:
    [chapter] = _chapters(pdf)
    return [block for block in chapter.blocks if not isinstance(block, Anchor)]


def _texts(blocks: Sequence[Block]) -> list[str]:
    return [plain_text([block]) for block in blocks]


def _read(folder: Path, content: bytes, **limits: int) -> tuple[list[SourcePage], list[Problem]]:
    file = folder / "book.pdf"
    file.write_bytes(content)
    problems: list[Problem] = []
    source = PdfSource(WorkerLimits(**limits))
    return list(source.read(file, Files(Path("/")), SiteOptions(), problems.append)), problems


# --- text -----------------------------------------------------------------------------------------


def test_lines_become_paragraphs() -> None:
    pdf = PdfWriter()
    page = pdf.page().lines(72, 700, _LONG).lines(72, 640, _LONG)
    page.lines(90, 580, _LONG[:1]).lines(72, 568, _LONG[1:])  # indent of a first line
    page.lines(90, 544, _LONG[:1]).lines(72, 532, _LONG[1:])
    assert _texts(_blocks(pdf)) == [" ".join(_LONG)] * 4


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        ("This is an exam-", "ple of a word.", "This is an example of a word."),
        ("The kite is well-", "known here.", "The kite is well-known here."),
        ("It was Monte-", "Carlo again.", "It was Monte-Carlo again."),
        ("In the years 1990-", "1995 it flew.", "In the years 1990-1995 it flew."),
        (
            "See https://kites.example/",
            "lift for more.",
            "See https://kites.example/lift for more.",
        ),
    ],
)
def test_hyphens_at_line_ends(first: str, second: str, joined: str) -> None:
    pdf = PdfWriter()
    page = pdf.page().lines(72, 700, [f"{first}", second])
    page.text(72, 600, "A well-known word, and another line.")
    assert _texts(_blocks(pdf))[0] == joined


def test_ligatures_and_soft_hyphens_are_letters() -> None:
    from bythebook_formats.pdf.extraction import _text_of
    from bythebook_formats.pdf.layout.joining import visible

    assert [_text_of(code) for code in (0xFB01, 0xFB03, 0xF0B7, 0xA0, 0xFFFE)] == [
        "fi", "ffi", "•", " ", "",
    ]  # fmt: skip
    assert visible("ex\N{SOFT HYPHEN}ample\N{SOFT HYPHEN}") == "example-"


def test_two_columns_are_read_one_after_the_other() -> None:
    pdf = PdfWriter()
    page = pdf.page().text(72, 740, "A title that is above both of the columns of this page", 12)
    left = [f"left line number {number} of this column" for number in range(12)]
    right = [f"right line number {number} of this column" for number in range(12)]
    for number in range(12):  # the file has them row by row
        page.text(72, 700 - 12 * number, left[number])
        page.text(320, 700 - 12 * number, right[number])
    text = " ".join(_texts(_blocks(pdf)))
    assert text.index("left line number 11") < text.index("right line number 0 ")
    assert text.startswith("A title")


def test_columns_of_code_and_text_are_told_apart_by_the_order_of_the_file() -> None:
    pdf = PdfWriter()
    page = pdf.page()
    page.lines(
        72, 700, [f"x{number} = fly_high({number}, 1)" for number in range(10)], font=COURIER
    )
    page.lines(320, 700, [f"words of line number {number}" for number in range(10)])
    code, prose = _blocks(pdf)
    assert isinstance(code, Code)
    assert code.text.splitlines() == [f"x{number} = fly_high({number}, 1)" for number in range(10)]
    assert plain_text([prose]).startswith("words of line number 0")


def test_turned_text_is_kept_apart() -> None:
    pdf = PdfWriter()
    pdf.page().turned(30, 300, "arXiv stamp").lines(72, 700, _LONG)
    assert _texts(_blocks(pdf)) == [" ".join(_LONG), "arXiv stamp"]


def test_superscripts_are_marked() -> None:
    pdf = PdfWriter()
    page = pdf.page().text(72, 700, "It has 5 m").text(116, 704, "2", 6)
    page.text(72, 600, "A kite").text(99, 604, "1", 6).text(110, 600, "flies.")
    assert _texts(_blocks(pdf)) == ["It has 5 m²", "A kite 1 flies."]


# --- blocks ---------------------------------------------------------------------------------------


def test_lists_are_nested_by_their_indent() -> None:
    pdf = PdfWriter()
    page = pdf.page().lines(72, 700, ["Cut these:"])
    page.text(80, 680, "\u2022").text(92, 680, "sticks of spruce that are as long as")
    page.text(92, 668, "an arm,")
    page.text(100, 656, "\u2022").text(112, 656, "two of them,")
    page.text(80, 644, "\u2022").text(92, 644, "paper.")
    _, listing = _blocks(pdf)
    assert isinstance(listing, Listing)
    assert not listing.ordered
    first, second = listing.items
    assert plain_text(first[:1]) == "sticks of spruce that are as long as an arm,"
    assert isinstance(first[1], Listing)
    assert plain_text(first[1:]) == "two of them,"
    assert plain_text(second) == "paper."


def test_numbers_of_a_list_are_kept_over_a_page_break() -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 700, ["1. Cut two sticks.", "2. Tie them into a cross."])
    pdf.page().lines(72, 700, ["3. Stretch paper over it."])
    lists = [block for block in _blocks(pdf) if isinstance(block, Listing)]
    assert [(each.ordered, each.start, len(each.items)) for each in lists] == [
        (True, 1, 2),
        (True, 3, 1),
    ]


def test_drawn_bullets_make_a_list() -> None:
    pdf = PdfWriter()
    page = pdf.page().dot(74, 702).text(84, 700, "paper").dot(74, 688).text(84, 686, "string")
    page.lines(72, 600, _LONG)
    listing = _blocks(pdf)[0]
    assert isinstance(listing, Listing)
    assert [plain_text(item) for item in listing.items] == ["paper", "string"]


def test_letters_of_another_font_are_bullets_and_code_is_not() -> None:
    pdf = PdfWriter()
    page = pdf.page()
    for base, item in ((700, "paper"), (686, "string")):
        page.text(72, base, "o", font=COURIER).text(90, base, f"{item} is part of a kite")
    page.lines(72, 640, ["The shortest of all the names that a reader can see is"])
    page.text(72, 628, "o", font=COURIER).text(80, 628, "and nobody uses it.")
    listing, prose = _blocks(pdf)
    assert isinstance(listing, Listing)
    assert len(listing.items) == 2
    assert plain_text([prose]).endswith("can see is o and nobody uses it.")


def test_code_keeps_lines_indents_and_blank_lines() -> None:
    code = ["def fly(kite):", "    if kite.wind:", "        return 1", "", "    return 0  # no"]
    pdf = PdfWriter()
    page = pdf.page().lines(72, 700, _LONG).lines(72, 640, code, 9, COURIER)
    page.lines(72, 560, ["The function is short, and it is explained below."])
    _, block, _ = _blocks(pdf)
    assert isinstance(block, Code)
    assert block.text == "\n".join(code)


def test_code_within_a_sentence_is_part_of_it() -> None:
    pdf = PdfWriter()
    page = pdf.page().lines(72, 700, ["The longest of all the names that a reader can see here is"])
    page.text(72, 688, "kite_factory_factory", font=COURIER)
    page.lines(72, 676, ["and nobody uses it."])
    assert len(_blocks(pdf)) == 1


def test_aligned_cells_are_a_table() -> None:
    pdf = PdfWriter()
    page = pdf.page().lines(72, 740, _LONG)
    rows = [("cloth", "weight"), ("ripstop nylon", "40 grams"), ("paper", "60 grams")]
    for number, (cloth, weight) in enumerate(rows):
        page.text(72, 680 - 16 * number, cloth).text(200, 680 - 16 * number, weight)
    page.text(200, 636, "when dry")  # a second line of the last cell
    page.lines(72, 600, ["Table 1: What cloth weighs."])
    _, table, caption = _blocks(pdf)
    assert isinstance(table, Table)
    assert table.header == ("cloth", "weight")
    assert table.rows == (("ripstop nylon", "40 grams"), ("paper", "60 grams when dry"))
    assert plain_text([caption]) == "Table 1: What cloth weighs."


def test_footnotes_come_after_the_paragraph_that_goes_on() -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 400, _LONG[:2]).text(72, 90, "1 A note about strings.", 8)
    pdf.page().lines(72, 700, _LONG[2:]).lines(72, 600, _LONG)
    assert _texts(_blocks(pdf)) == [
        " ".join(_LONG),
        "1 A note about strings.",
        " ".join(_LONG),
    ]


def test_a_sentence_goes_on_below_a_table_at_the_top_of_the_next_page() -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 700, _LONG[:2])
    page = pdf.page()
    for row in range(3):
        page.text(200, 740 - 14 * row, f"cell {row}").text(320, 740 - 14 * row, "another cell")
    page.lines(72, 680, ["Table 2: Cells that interrupt a sentence of the book, and this is their"])
    page.lines(72, 668, ["caption, which has two lines."])
    page.lines(72, 620, [f"{_LONG[2]} It stays up there for hours, if nobody"])
    page.lines(72, 608, ["cuts the string."]).lines(72, 560, _LONG)
    first, table, caption, last = _blocks(pdf)
    assert plain_text([first]).startswith(" ".join(_LONG))
    assert isinstance(table, Table)
    assert plain_text([caption]).startswith("Table 2: Cells")
    assert plain_text([last]) == " ".join(_LONG)


def test_running_heads_and_page_numbers_are_left_out() -> None:
    pdf = PdfWriter()
    for number in range(1, 7):
        page = pdf.page().text(72, 760, f"Chapter {number // 3}: Kites").text(500, 760, str(number))
        page.text(300, 30, f"- {number} -")
        page.lines(72, 700, [f"Sentence {number} is about kites.", "It is short."])
    text = " ".join(_texts(_blocks(pdf)))
    assert "Chapter" not in text
    assert text.startswith("Sentence 1 is about kites. It is short. Sentence 2")
    chapters = _chapters(pdf)
    assert sum(len(chapter.words) for chapter in chapters) == 6 * 8
    left_out = [each for chapter in chapters for each in chapter.left_out]
    assert {each.reason for each in left_out} == {"running heads, running feet and page numbers"}
    assert "- 3 -" in {each.text for each in left_out}


def test_characters_beyond_the_first_plane_are_kept() -> None:
    pdf = PdfWriter()
    pdf.page().text(72, 700, "The density p(").text(132, 700, "q", font=MATHS)
    pdf.pages[0].text(140, 700, "| y) is known.")
    assert "\U0001d703" in " ".join(_texts(_blocks(pdf)))


def test_text_that_extraction_loses_is_missing() -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 700, _LONG)
    [page] = extract(pdf.bytes()).pages
    whole = " ".join(_LONG)
    assert list(page.lost) == lost_words(whole, page.words) == []
    assert lost_words(f"{whole} 47 (β|θ)", page.words) == ["47", "(β|θ)"]
    assert lost_words(whole.replace("sail", "sθil"), page.words) == ["θ"]


def test_bullets_and_brackets_at_the_top_are_no_running_heads() -> None:
    pdf = PdfWriter()
    for number in range(1, 9):
        page = pdf.page().text(72, 730, "•" if number % 2 else "o")
        page.text(90, 730, f"The {'abcdefgh'[number - 1]} item is the first line of its page.")
        page.lines(72, 690, [f"Sentence {number} is about kites.", "It is short."])
        page.text(300, 30, str(number))
    text = " ".join(_texts(_blocks(pdf)))
    assert text.count("is the first line of its page") == 8


@pytest.mark.parametrize("line", ["}", "model {", "// end of the model"])
def test_code_at_the_top_of_many_pages_is_kept(line: str) -> None:
    pdf = PdfWriter()
    for number in range(1, 9):
        page = pdf.page().text(72, 760, f"{number} CHAPTER 1. KITES")
        page.text(72, 730, line, font=COURIER)
        page.lines(72, 680, [*_LONG, f"Sentence {number} is about kites.", "It is short."])
    text = "\n".join(_texts(_blocks(pdf)))
    assert text.count(line) == 8
    assert "CHAPTER" not in text


def test_a_repeated_line_below_a_line_of_the_text_is_kept() -> None:
    pdf = PdfWriter()
    for number in range(1, 9):
        page = pdf.page().text(72, 745, f"The {'abcdefgh'[number - 1]} measure of the plan")
        page.text(72, 725, f"is paid for by department {number}.")
        page.lines(72, 690, [f"Sentence {number} is about kites.", "It is short."])
        page.text(300, 30, f"- {number} -")
    text = " ".join(_texts(_blocks(pdf)))
    assert text.count("is paid for by department") == 8
    assert "- 1 -" not in text


def test_a_sentence_that_starts_some_pages_far_apart_is_kept() -> None:
    pdf = PdfWriter()
    for number in range(1, 21):
        other = f"Kites fly {'abcdefghijklmnopqrst'[number - 1]}."
        page = pdf.page().text(72, 730, "Proof of the claim." if number % 9 == 1 else other)
        page.lines(72, 690, [f"Sentence {number} is about kites.", "It is short."])
    text = " ".join(_texts(_blocks(pdf)))
    assert text.count("Proof of the claim.") == 3


def test_the_steps_of_a_slide_keep_their_lines() -> None:
    pdf = PdfWriter()
    for step in range(1, 7):
        page = pdf.page().text(72, 740, "The string keeps the kite from drifting away.")
        page.lines(72, 700, ["One", "Two", "Three", "Four", "Five", "Six"][:step])
        page.text(500, 30, "1 / 9")
    assert "drifting away" in " ".join(_texts(_blocks(pdf)))


def test_a_page_without_a_running_head_keeps_its_first_line() -> None:
    pdf = PdfWriter()
    for number in range(1, 7):
        page = pdf.page()
        if number == 3:
            page.lines(72, 760, _LONG)
        else:
            page.text(72, 760, "A book about kites")
            page.lines(72, 700, [f"Sentence {number} is about kites.", "It is short."])
    text = " ".join(_texts(_blocks(pdf)))
    assert "A book about kites" not in text
    assert _LONG[0] in text


def test_a_page_of_contents_is_left_out() -> None:
    pdf = PdfWriter("Kites")
    page = pdf.page().text(72, 740, "Contents", 20)
    for number in range(8):
        page.text(
            72, 700 - 20 * number, f"{number} Kites of kind {number} " + ". " * 30 + f"{number}"
        )
    pdf.page().text(72, 740, "Flying", 20).text(72, 700, "A kite flies.")
    text = "\n".join(plain_text(chapter.blocks) for chapter in _chapters(pdf))
    assert "A kite flies." in text
    assert "of kind" not in text


def test_a_table_of_contents_keeps_its_lines() -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 700, ["Lift . . . . . . . . . 5", "Drag . . . . . . . . . 9"])
    assert _texts(_blocks(pdf)) == ["Lift … 5\nDrag … 9"]


# --- headings and pages ---------------------------------------------------------------------------


def _book() -> PdfWriter:
    """Return a book of two chapters with sections; one paragraph goes on over a page break."""
    pdf = PdfWriter("The book of kites")
    pdf.page().lines(72, 700, ["Preface of the book, which is short."])
    page = pdf.page().text(72, 740, "Chapter 1", 12).text(72, 720, "Kites", 18, BOLD)
    page.lines(72, 680, _LONG).text(72, 600, "1.1 Lift", 14, BOLD).lines(72, 580, _LONG[:2])
    pdf.page().lines(72, 740, _LONG[2:]).lines(72, 700, ["Another paragraph of the section."])
    pdf.page().text(72, 740, "Wind", 18, BOLD).lines(72, 700, ["It blows."])
    pdf.outline = [
        Entry("Kites", 1, 735, [Entry("Lift", 1, 612)]),
        Entry("Wind", 3, 760),
    ]
    return pdf


def test_chapters_and_sections_are_those_of_the_outline() -> None:
    front, kites, wind = _chapters(_book())
    assert (front.title, kites.title, wind.title) == (
        "The book of kites",
        "Chapter 1: Kites",
        "Wind",
    )
    assert [chapter.page for chapter in (front, kites, wind)] == [1, 2, 4]
    assert [(each.level, each.text, each.anchor) for each in headings_of(kites.blocks)] == [
        (1, "Chapter 1: Kites", "page=2"),
        (2, "1.1 Lift", "page=2"),
    ]
    assert "Chapter" not in plain_text(front.blocks)


def test_without_an_outline_headings_are_found_by_their_type() -> None:
    pdf = _book()
    pdf.outline = []
    _, kites, wind = _chapters(pdf)
    assert [heading.text for heading in headings_of(kites.blocks)] == ["Kites", "1.1 Lift"]
    assert wind.title == "Wind"


def test_an_entry_that_is_not_on_its_page_is_a_heading_all_the_same() -> None:
    pdf = _book()
    pdf.outline[1] = Entry("About the wind", 3, 760)
    assert [chapter.title for chapter in _chapters(pdf)][-1] == "About the wind"


def test_parts_are_modules() -> None:
    pdf = _book()
    kites, wind = pdf.outline
    pdf.outline = [Entry("Part I: Air", 1, 790, [kites, wind])]
    modules = [(chapter.title, chapter.module) for chapter in _chapters(pdf)]
    assert modules[-2:] == [("Chapter 1: Kites", "Part I: Air"), ("Wind", "Part I: Air")]


@pytest.mark.parametrize(
    ("metadata", "largest", "title"),
    [("Kites", "", "Kites"), ("", "A large title", "A large title"), ("a.dvi", "", "book")],
)
def test_a_file_without_chapters_has_one_page_with_a_title(
    metadata: str, largest: str, title: str
) -> None:
    pdf = PdfWriter(metadata)
    page = pdf.page().lines(72, 600, _LONG)
    if largest:
        page.text(72, 740, largest, 20)
    [chapter] = _chapters(pdf)
    assert chapter.title == title


def test_every_passage_links_to_the_page_on_which_it_starts(tmp_path: Path) -> None:
    book = _parsed(tmp_path, _book(), SiteOptions(url="https://kites.example", base_url="/books/"))
    links = {passage.text.split()[0]: passage.place.url for passage in book.passages}
    assert links == {
        "Preface": "https://kites.example/books/book.pdf#page=1",
        "A": "https://kites.example/books/book.pdf?chapter=2#page=2",
        "Another": "https://kites.example/books/book.pdf?chapter=2#page=3",
        "It": "https://kites.example/books/book.pdf?chapter=3#page=4",
    }
    lift = next(passage for passage in book.passages if passage.place.section == ("1.1 Lift",))
    assert lift.text == " ".join(_LONG)
    assert [page.file for page in book.pages] == [
        "book.pdf/page-1",
        "book.pdf/page-2",
        "book.pdf/page-4",
    ]
    assert book.coverage == 1.0


def _parsed(folder: Path, pdf: PdfWriter, options: SiteOptions) -> ParsedBook:
    (folder / "book.pdf").write_bytes(pdf.bytes())
    return read_book(folder / "book.pdf", options)


def test_a_pdf_in_a_folder_is_part_of_the_book(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "kites.pdf").write_bytes(_book().bytes())
    (tmp_path / "intro.md").write_text("# Welcome\n\nText.\n")
    (tmp_path / "papers" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    book = read_book(tmp_path)
    assert [page.file for page in book.pages][:2] == ["intro.md", "papers/kites.pdf/page-1"]
    assert [(problem.file, problem.fatal) for problem in book.problems] == [
        ("papers/broken.pdf", True)
    ]
    assert book.passages[1].place.url == "/papers/kites.pdf#page=1"


# --- files that cannot be read --------------------------------------------------------------------


def test_scanned_pages_are_named(tmp_path: Path) -> None:
    pdf = PdfWriter()
    pdf.page().lines(72, 700, _LONG)
    for _ in range(2):
        pdf.page().image()
    pages, problems = _read(tmp_path, pdf.bytes())
    assert len(pages) == 1
    part = split_page(pages[0])
    assert part.visible_words == 3 * part.covered_words  # two pages as long as the first
    assert problems == [
        Problem(
            "book.pdf", None, "pages 2 to 3: scanned, no text layer; run OCR, e.g. ocrmypdf", False
        )
    ]


def test_a_file_of_scanned_pages_is_refused(tmp_path: Path) -> None:
    pdf = PdfWriter()
    pdf.page().image()
    _, [problem] = _read(tmp_path, pdf.bytes())
    assert problem.fatal
    assert "ocrmypdf" in problem.reason


@pytest.mark.parametrize("content", [b"", b"no PDF", b"%PDF-1.7\n1 0 obj\n<<"])
def test_a_damaged_file_is_refused(content: bytes, tmp_path: Path) -> None:
    pages, [problem] = _read(tmp_path, content)
    assert not pages
    assert (problem.file, problem.fatal) == ("book.pdf", True)
    assert "not a PDF file" in problem.reason


def test_a_file_that_needs_a_password_is_refused(tmp_path: Path) -> None:
    pdf = _book()
    pdf.encrypted = True
    _, [problem] = _read(tmp_path, pdf.bytes())
    assert "password" in problem.reason


def test_an_empty_file_is_refused() -> None:
    pdf = PdfWriter()
    pdf.page()
    from bythebook_formats.pdf.worker import read_lines

    assert read_lines(pdf.bytes(), "book") == ['{"refused": "there is no text in it"}']


def test_too_many_pages_or_characters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from bythebook_formats.pdf import extraction

    monkeypatch.setattr(extraction, "MAX_PAGES", 3)
    with pytest.raises(PdfRefused, match="more than 3 pages"):
        extract(_book().bytes())
    monkeypatch.setattr(extraction, "MAX_PAGES", 10)
    monkeypatch.setattr(extraction, "MAX_CHARACTERS", 100)
    with pytest.raises(PdfRefused, match="more than 100 characters"):
        extract(_book().bytes())


@pytest.mark.skipif(os.name != "posix", reason="limits of a process need POSIX")
def test_a_worker_that_takes_too_much_is_ended(tmp_path: Path) -> None:
    pdf = PdfWriter()
    for _ in range(400):
        pdf.page().lines(72, 700, _LONG * 18)
    _, [slow] = _read(tmp_path, pdf.bytes(), seconds=1, seconds_per_megabyte=0)
    assert (slow.reason, slow.fatal) == ("takes too long to read", True)
    _, [large] = _read(tmp_path, pdf.bytes(), memory=1, memory_factor=0)
    assert large.fatal


def test_text_in_other_fonts_is_read_alike() -> None:
    pdf = PdfWriter("Kites", compress=True)
    pdf.page().lines(72, 700, _LONG, font=TIMES)
    [block] = _blocks(pdf)
    assert isinstance(block, Paragraph)
    assert not isinstance(block, Heading)
    assert block.text == " ".join(_LONG)
