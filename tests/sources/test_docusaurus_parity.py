"""URLs, anchors and visible words compared with those of a real Docusaurus build.

The words of a page are the same, in the same order. What is set aside before they are compared,
and why:

- A page whose Markdown begins with an H1 shows that and not the title of its front matter; we keep
  both.
- An admonition without a title shows its kind; with one, only the title. We say the kind always.
- ``<details>`` without a ``<summary>``, or with one that the theme does not see because it stands
  in a paragraph, gets the word "Details".
- The labels of tabs stand in a row above the first; ours stand above the tab that each names.
- A table that is cut into two passages says its header again.
- A list's numbers and mermaid's source are in our text and not in the page's.
- Comments such as ``highlight-next-line`` stay in our code: it is kept byte for byte.
- Maths is drawn by KaTeX on the page and stays TeX with us.
- Words in a component's properties or in its own source are reported by the ingest, not kept.
- Docusaurus draws ``:smile:`` as a picture; we keep the short name. (No page here has one.)
- A locale falls back to the untranslated page; the book holds that page once.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bythebook.ingestion.read_book import ParsedBook, ParsedPage, read_book
from bythebook.language.text import words
from tests.sources import docusaurus
from tests.sources.docusaurus import BuiltPage
from tests.support.samples import FEATURES, IN_ORDER, ORDERED, RULES, SAMPLE_BOOK, WORKSHOP

pytestmark = pytest.mark.real

STUBS: dict[str, str] = {
    "src/components/Frame.js": (
        "import React from 'react';\nexport default function Frame({children}) {"
        " return <div>{children}</div>; }\n"
    ),
    "src/components/Highlight.js": (
        "import React from 'react';\nexport default function Highlight({children}) {"
        " return <span>{children}</span>; }\n"
    ),
}
CALLOUT_LABELS = "Key idea Example Background In the lab"
KIND = re.compile(r"^( *(?:- )?)(?:Note|Tip|Info|Warning|Danger|Caution) — ", re.M)
NUMBER = re.compile(r"^( *(?:- )*)([0-9]+)\. ", re.M)
NUMBERED = "ǂ"  # a letter that no book here has, before what may be the number of a list's item
HEADER = re.compile(r"\|.*\|\n\|(?:---\|)+\n")
MAGIC = (["highlight", "next", "line"], ["highlight", "start"], ["highlight", "end"])
CODE = re.compile(r"^(`{3,})(\S*)\n(.*?)\n\1$", re.M | re.S)
TEX = re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.S)


def path_of(page: ParsedPage) -> str:
    return unquote(urlsplit(page.url).path)


def folded(text: str) -> list[str]:
    return [word.casefold() for word in words(text)]


def our_words(page: ParsedPage, built: BuiltPage, *, maths: bool) -> list[str]:
    """Return the words of the passages and their headings, in reading order."""
    own_title = next((text for level, text, _ in built.headings if level == 1), "")
    texts = [page.title] if own_title.split() == page.title.split() else []
    before: tuple[tuple[str, ...], str] = ((), page.url)
    shown = {before}
    last = ""
    for passage in page.passages:
        path = passage.place.section
        here = (path, passage.place.url)
        last = last if here == before else ""
        is_back = here in shown and before[0][: len(path)] == path  # after a box with headings
        texts += () if is_back else new_headings(before, here)
        before = here
        shown.add(here)
        if path and texts and texts[-1] == path[-1] == passage.text:
            texts.pop()  # a heading with nothing below it is a passage of its own
        texts.append(prose_and_code(without_header(passage.text, last), maths=maths))
        last = passage.text
    return folded("\n".join(texts))


def without_header(text: str, before: str) -> str:
    header = HEADER.match(text)
    return text[header.end() :] if header and header.group() in before else text


def new_headings(
    before: tuple[tuple[str, ...], str], here: tuple[tuple[str, ...], str]
) -> tuple[str, ...]:
    """Return the headings between two passages. Equal headings have different URLs."""
    path = here[0]
    same = 0
    while same < min(len(before[0]), len(path)) and before[0][same] == path[same]:
        same += 1
    if path and same == len(path) and before[1] != here[1]:
        same -= 1
    return path[same:]


def prose_and_code(text: str, *, maths: bool) -> str:
    """Remove what the page does not show: TeX, mermaid, languages, list numbers."""
    parts: list[str] = []
    place = 0
    for fence in CODE.finditer(text):
        parts.append(prose(text[place : fence.start()], maths=maths))
        parts.append("" if fence.group(2) == "mermaid" else fence.group(3))
        place = fence.end()
    return "\n".join([*parts, prose(text[place:], maths=maths)])


def prose(text: str, *, maths: bool) -> str:
    text = NUMBER.sub(rf"\1{NUMBERED}\2 ", KIND.sub(r"\1", text))
    text = "\n".join(line for line in text.split("\n") if line.strip() != "Details")
    return TEX.sub(" ", text) if maths else text


def assert_same_words(
    page: ParsedPage, built: BuiltPage, *, maths: bool = True, computed: str = ""
) -> None:
    """Assert equal words in equal order. ``computed``: words that only the running site renders."""
    ours, theirs = our_words(page, built, maths=maths), folded(built.text)
    extra = Counter(folded(computed))
    place = 0
    for at, word in enumerate(theirs):
        while skipped := not_shown(ours[place : place + 3], theirs[at : at + 3]):
            place += skipped
        if ours[place : place + 1] in ([word], [NUMBERED + word]):
            place += 1
        else:
            here = " ".join(ours[max(0, place - 8) : place + 8])
            assert extra[word] > 0, f"{page.file}: {word!r} instead of {here!r}"
            extra[word] -= 1
    assert ours[place:] == [], page.file


def not_shown(ours: list[str], theirs: list[str]) -> int:
    """Count the next words of the passages that the page does not show."""
    for magic in MAGIC:
        if ours[: len(magic)] == magic != theirs[: len(magic)]:
            return len(magic)
    is_number = bool(ours) and ours[0].startswith(NUMBERED)
    return int(is_number and ours[0] not in (theirs[0], NUMBERED + theirs[0]))


def assert_same_anchors(book: ParsedBook, built: dict[str, BuiltPage]) -> None:
    for page in book.pages:
        theirs = [anchor for _, _, anchor in built[path_of(page)].headings if anchor]
        ours = [anchor for _, anchor in page.headings if anchor]
        assert ours == theirs, page.file


def assert_passages_land(book: ParsedBook, built: dict[str, BuiltPage]) -> None:
    """Assert that every passage URL exists in the built site, with its anchor."""
    for passage in book.passages:
        address = urlsplit(passage.place.url)
        anchors = {anchor for _, _, anchor in built[unquote(address.path)].headings}
        assert not address.fragment or unquote(address.fragment) in anchors, passage.place.url


# --- sites ----------------------------------------------------------------------------------------

PARTS = {"docusaurus.config.js": docusaurus.config(), "sidebars.js": docusaurus.SIDEBARS}
PLAIN = docusaurus.config(markdown_format="detect", maths=False)
SITES: dict[str, dict[str, Path | str]] = {
    "rules": {**PARTS, "docs": RULES},  # every rule at once
    "sample": {".": SAMPLE_BOOK},  # in two languages
    "features": {**PARTS, **STUBS, "docs": FEATURES},  # what MDX adds
    "workshop": {**PARTS, "docs": WORKSHOP, "docusaurus.config.js": PLAIN},  # plain Markdown
}


@pytest.mark.parametrize("name", SITES)
def test_urls_anchors_and_words_match_docusaurus(name: str) -> None:
    site = docusaurus.build(name, SITES[name])
    book = read_book(site if name == "sample" else site / "docs")
    ours = {path_of(page) for page in book.pages}
    built = {
        path: page  # without those that a language takes from another one
        for path, page in docusaurus.pages(site).items()
        if name != "sample" or path in ours or "/ur/" not in path
    }
    assert ours == set(built)
    assert_same_anchors(book, built)
    assert_passages_land(book, built)
    for page in book.pages:
        computed = computed_words(name, page)
        assert_same_words(page, built[path_of(page)], maths=name != "workshop", computed=computed)


def computed_words(name: str, page: ParsedPage) -> str:
    """Return the words of a page that only the running site renders."""
    if name == "sample":
        source = source_of(page)
        quizzes = re.findall(r"<Quiz\b.*?/>", source, re.S)
        labels = [CALLOUT_LABELS] * source.count("<Callout")
        numbers = ["33"] if "Math.round(1000 / 30)" in source else []
        return " ".join([*quizzes, *labels, *numbers])
    return "2" if page.file == "headings.mdx" else ""  # "An {1 + 1} expression"


def source_of(page: ParsedPage) -> str:
    if page.file.startswith("i18n/"):
        _, locale, rest = page.file.split("/", 2)
        folder = SAMPLE_BOOK / "i18n" / locale / "docusaurus-plugin-content-docs" / "current"
        return (folder / rest).read_text(encoding="utf-8")
    return (SAMPLE_BOOK / "docs" / page.file).read_text(encoding="utf-8")


def test_sidebar_order_matches_docusaurus() -> None:
    sources = {".": ORDERED, "docusaurus.config.js": docusaurus.config()}
    site = docusaurus.build("ordered", sources)
    book, built = read_book(site / "docs"), docusaurus.pages(site)
    assert [page.file for page in book.pages] == IN_ORDER
    in_sidebar = book.pages[:-1]
    for page, after in pairwise(in_sidebar):
        assert built[path_of(page)].following == path_of(after), page.file
    assert built[path_of(in_sidebar[-1])].following is None
    assert built[path_of(book.pages[-1])].following is None
