"""Books built by real generators: coverage, links, code, and no word of the theme."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bythebook.api import ingest, open_book
from bythebook.ingestion.integrity import lost_in_build
from bythebook.ingestion.pages import compare_words
from bythebook.ingestion.read_book import ParsedBook, ParsedPage, read_book
from bythebook.language.text import words
from bythebook.types import Answer
from tests.documents.book_pages import pages_of
from tests.sources import docusaurus, jupyter
from tests.sources.built_sites import CODE, mkdocs, sphinx
from tests.support.samples import SAMPLE_BOOK

pytestmark = pytest.mark.real

_ALT = "A red kite over a beach"
_FENCE = re.compile(r"^```\S*$", re.M)
_CODE = r"(?ms)^(```+)(\S*)\n(.*?)^\1$"
_TEX = re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.S)
_KIND = re.compile(r"^(Note|Tip|Info|Warning|Danger) — (?=(.+))", re.M)  # of a box with a title
_ORDER = ["Kite Book", "Features of a kite", "Second chapter"]


def _text(book: ParsedBook) -> str:
    return "\n".join(passage.text for passage in book.passages)


def _words(*pages: ParsedPage) -> set[str]:
    """Return the words of pages, without the languages of their code."""
    passages = [passage for page in pages for passage in page.passages]
    texts = [page.title for page in pages]
    texts += [heading for passage in passages for heading in passage.place.section]
    texts += [_FENCE.sub("", passage.text) for passage in passages]
    return set(words(" ".join(texts)))


def _listed(page: ParsedPage) -> list[str]:
    texts = (_FENCE.sub("", passage.text) for passage in page.passages)
    return [word for text in texts for word in words(text)]


@pytest.mark.parametrize("theme", ["furo", "sphinx_rtd_theme", "alabaster"])
def test_sphinx(theme: str) -> None:
    site = sphinx("html", theme=theme)
    book = read_book(site)
    assert [page.title for page in book.pages] == _ORDER
    assert {passage.place.module for passage in book.pages[1].passages} == {"Flying"}
    assert book.coverage == 1.0
    assert not [problem for problem in book.problems if problem.fatal]
    assert lost_in_build([passage.place.url for passage in book.passages], site) == []
    assert f"fly.py\n```python\n{CODE}\n```" in _text(book)
    _check_kept(_text(book))
    # Sphinx' own text of the same book.
    own = " ".join(file.read_text("utf-8") for file in sphinx("text").rglob("*.txt"))
    assert _words(*book.pages) - set(words(own)) <= set(words(_ALT))


def test_mkdocs_material() -> None:
    site = mkdocs()
    book = read_book(site)
    assert [page.title for page in book.pages] == _ORDER
    assert {passage.place.module for passage in book.pages[1].passages} == {"Flying"}
    assert book.coverage == 1.0
    urls = [passage.place.url for passage in book.passages]
    assert all(url.startswith("https://kites.example/book/") for url in urls)
    assert lost_in_build(urls, site) == []
    text = _text(book)
    assert f"fly.py\n```\n{CODE}\n```" in text
    assert 'Python\n```\nprint("a")\n```\n\nC\n```' in text
    _check_kept(text)
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    own = " ".join(f"{entry['title']} {entry['text']}" for entry in index["docs"])
    own = re.sub(r"<[^>]+>", " ", own)
    # The search index leaves out images, the labels of tabs and the colours of boxes.
    assert _words(*book.pages) - set(words(own)) <= set(words(f"{_ALT} Python C Danger"))
    assert "Danger — Keep away from lines\nPower lines kill." in text


def test_epub_of_sphinx() -> None:
    (file,) = sphinx("epub").glob("*.epub")
    book = read_book(file)
    assert [page.title for page in book.pages][:3] == _ORDER
    assert book.coverage == 1.0
    text = _text(book)
    assert f"fly.py\n```python\n{CODE}\n```" in text
    _check_kept(text)
    page = f"/{file.name}/guide/features.xhtml"
    urls = [passage.place.url for passage in book.pages[1].passages]
    assert urls == [f"{page}#lift-drag", f"{page}#terms"]


def test_jupyter_book(tmp_path: Path) -> None:
    cells = [
        jupyter.cell("markdown", "# Notebook\n\nWords of a cell."),
        jupyter.cell("code", CODE, outputs=[_OUTPUT], execution_count=1),
        jupyter.cell("markdown", "## More\n\nThe end."),
    ]
    jupyter.write(
        tmp_path,
        {
            "_toc.yml": _TOC,
            "_config.yml": "title: Kite Book\nexecute: {execute_notebooks: 'off'}\n",
            "intro.md": "# Kite Book\n\nThis book teaches how to fly kites.\n",
            "lift.md": _MYST,
            "cells.ipynb": jupyter.notebook(cells),
        },
    )
    source = read_book(tmp_path)
    built = jupyter.build_book(tmp_path)
    book = read_book(built)
    assert book.coverage == 1.0
    assert [page.url for page in book.pages] == [page.url for page in source.pages]
    assert [page.title for page in book.pages] == ["Kite Book", "Lift", "Notebook"]
    assert book.passages[-1].place.module == "Flying"
    assert lost_in_build([passage.place.url for passage in book.passages], built) == []
    text = _text(book)
    assert CODE in text
    assert "flying high" in text
    assert "A\none\n\nB\ntwo" in text
    assert "Own title\nHidden." in text
    assert _words(*book.pages) - _words(*source.pages) <= set(words("Listing 1"))


_OUTPUT = {"output_type": "stream", "name": "stdout", "text": "flying high\n"}
_TOC = """format: jb-book
root: intro
parts:
- caption: Flying
  chapters:
  - file: lift
  - file: cells
"""
_MYST = """# Lift

Text with $x^2$.

````{tab-set}
```{tab-item} A
one
```
```{tab-item} B
two
```
````

```{admonition} Own title
:class: dropdown
Hidden.
```

## Drag

```{math}
F = m a
```
"""


def _check_kept(text: str) -> None:
    """Check what every generator shows of the features that all books have."""
    for line in (
        "The law is $F = m a$.",
        r"L = \frac{1}{2} \rho v^2 S C_L",
        "Note\nWind must be steady.",
        "Keep away from lines\nPower lines kill.",
        "Bridle\nThe strings that hold the kite.",
        "| Name | Speed |\n|---|---|\n| Breeze | 5 \\| 6 |\n| Gale | 20 |",
        "A red kite over a beach",
        "Wind makes lift.",
    ):
        assert line in text, line
    assert "¶" not in text


@pytest.fixture(scope="module")
def sample() -> ParsedBook:
    book = read_book(SAMPLE_BOOK)
    english = tuple(page for page in book.pages if not page.file.startswith("i18n"))
    return replace(book, pages=english)


@pytest.mark.parametrize("generator", ["sphinx", "mkdocs", "epub"])
def test_the_sample_book_built_by_other_generators(generator: str, sample: ParsedBook) -> None:
    markdown = pages_of(sample, "/physical-ai-book/docs/")
    pages = {f"book/{page.name}": page.text for page in markdown}
    if generator == "mkdocs":
        built = mkdocs(pages)
    else:
        built = sphinx("html" if generator == "sphinx" else "epub", theme="furo", pages=pages)
    if generator == "epub":
        (built,) = built.glob("*.epub")
    book = read_book(built)
    assert book.coverage >= 0.995
    assert set(_code(sample)) - set(_code(book)) == set()
    found = {page.title: page for page in book.pages}
    titles = [page.title for page in sample.pages]
    assert [title for title in found if title in titles] == titles  # the same order
    for page in sample.pages:
        kept = _listed(found[page.title])
        kept += [word for heading, _ in found[page.title].headings for word in words(heading)]
        written = _listed(page)
        covered, missing = compare_words(written, [*kept, *words(page.title)])
        assert covered >= 0.995 * len(written), (page.file, missing)


@pytest.fixture(scope="module")
def built_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample book as its readers get it, away from its sources."""
    build = docusaurus.build("sample", {".": SAMPLE_BOOK}) / "build"
    folder = tmp_path_factory.mktemp("built") / "site"
    shutil.copytree(build, folder, ignore=lambda *_: {"assets"})
    return folder


def test_docusaurus(built_sample: Path) -> None:
    book, source = read_book(built_sample), read_book(SAMPLE_BOOK)
    assert book.coverage == 1.0
    assert [page.url for page in book.pages] == [page.url for page in source.pages]
    assert lost_in_build([p.place.url for p in book.passages], built_sample) == []
    assert _code(book) == _code(source)
    boxes = _KIND.findall(_english(book))
    assert boxes
    assert boxes == _KIND.findall(_english(source))
    built = docusaurus.pages(docusaurus.HOME / "sites" / "sample")
    for page in book.pages:
        shown = set(words(built[unquote(urlsplit(page.url).path)].text))
        passages = tuple(
            replace(p, text=_TEX.sub("", _KIND.sub("", p.text))) for p in page.passages
        )
        own = {word for word in _words(replace(page, passages=passages)) if not word.isdigit()}
        # The page shows list numbers and the kinds of boxes by style, not as text.
        assert own <= shown, page.file


def _english(book: ParsedBook) -> str:
    pages = tuple(page for page in book.pages if "/ur/" not in page.url)
    return _text(replace(book, pages=pages))


def _code(book: ParsedBook) -> list[str]:
    """Return the code of all blocks but diagrams, which the site draws."""
    found = [m for passage in book.passages for m in re.finditer(_CODE, passage.text)]
    return [match[3] for match in found if match[2] != "mermaid"]


def test_questions_find_the_same_sections_in_the_sources_and_in_the_built_site(
    built_sample: Path, sample_home: Path, tmp_path: Path
) -> None:
    ingest(built_sample, home=tmp_path / "home")
    lines = [
        line
        for name in ("reader-questions.jsonl", "questions.jsonl")
        for line in (SAMPLE_BOOK / name).read_text("utf-8").splitlines()
    ]
    questions = [json.loads(line)["question"] for line in lines]
    first, second = (_sections(home, questions) for home in (sample_home, tmp_path / "home"))
    different = [
        question for question, a, b in zip(questions, first, second, strict=True) if a != b
    ]
    assert len(different) <= 0.02 * len(questions), different


def _sections(home: Path, questions: list[str]) -> list[str | None]:
    """Return the first cited section of each answer; None for a refusal."""
    with open_book(home=home) as book:
        outcomes = [book.ask(question).outcome for question in questions]
    return [
        outcome.citations[0].place.url if isinstance(outcome, Answer) else None
        for outcome in outcomes
    ]
