"""Our addresses, anchors and words against those of real Docusaurus, page by page.

Differences that are allowed, and why:

- An admonition without a title shows its kind; with one, only the title. We say the kind always.
- A fence's language, a list's numbers and mermaid's source are in our text and not on the page.
- Comments such as ``highlight-next-line`` stay in our code: it is kept byte for byte.
- Maths is drawn by KaTeX on the page and stays TeX with us.
- Words in a component's properties or in its own source are reported by the ingest, not kept.
- A page that prints its own table of contents or front matter does so by running code.
- ``<summary>`` inside a paragraph: the theme does not see it and adds the word "Details".
- A themed image is two images on the page, with the same words.
- A locale falls back to the untranslated page; the book holds that page once.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bythebook.book.letters import words
from bythebook.book.site import Book, Page, read_book
from tests.book import docusaurus
from tests.book.docusaurus import BuiltPage
from tests.book.parity_site import PAGES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "physical-ai-book"
MDX_SAMPLE = ROOT.parent / "shared" / "data" / "docusaurus-mdx-sample" / "website" / "docs"
BIG_BOOK = ROOT.parent / "shared" / "data" / "physical-ai-book" / "docs"
FEATURES = "docs/guides/markdown-features"

SVG = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
STUBS: dict[str, str] = {
    "src/components/BrowserWindow.js": (
        "import React from 'react';\nexport default function B({children}) {"
        " return <div>{children}</div>; }\n"
    ),
    "src/theme/MDXComponents.js": (
        "import MDXComponents from '@theme-original/MDXComponents';\n"
        "import CodeBlock from '@theme/CodeBlock';\n"
        "import Tabs from '@theme/Tabs';\nimport TabItem from '@theme/TabItem';\n"
        "export default {...MDXComponents, Code: CodeBlock, Tabs, TabItem,"
        " Highlight: ({children}) => <span>{children}</span>};\n"
    ),
    "src/pages/examples/_myComponent.js": "export default function MyComponent() {}\n",
    "static/img/docusaurus.svg": SVG,
    "static/img/docusaurus_keytar.svg": SVG,
    "static/img/docusaurus_speed.svg": SVG,
    "docs/assets/docusaurus-asset-example.docx": "text",
    f"{FEATURES}/markdown-features-tabs-styles.module.css": ".a{}",
    f"{FEATURES}/markdown-features-react.module.css": ".a{}",
}
CALLOUT_LABELS = "Key idea Example Background In the lab"
KINDS = frozenset(words("note tip info warning danger caution details"))
MAGIC = frozenset(words("highlight next line start end"))
CODE = re.compile(r"^(`{3,})(\S*)\n(.*?)\n\1$", re.M | re.S)
TEX = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.S)


def path_of(page: Page) -> str:
    return unquote(urlsplit(page.url).path)


def folded(text: str) -> Counter[str]:
    return Counter(word.casefold() for word in words(text))


def our_text(page: Page) -> str:
    carried = {heading for passage in page.passages for heading in passage.place.section}
    headings = [text for text, _ in page.headings if text in carried]
    texts = [passage.text for passage in page.passages]
    return "\n".join([page.title, *headings, *texts])


def prose_and_code(text: str) -> str:
    """Our text without what the page does not show: TeX, mermaid, languages."""

    def shown(fence: re.Match[str]) -> str:
        return "" if fence.group(2) == "mermaid" else fence.group(3).replace("$", " ")

    return TEX.sub(" ", CODE.sub(shown, text))


def lost_and_foreign(page: Page, built: BuiltPage) -> tuple[Counter[str], set[str]]:
    """Words of the built page that we lack, and kinds of words that only we have."""
    lost = folded(built.text) - folded(our_text(page)) - Counter({"details": 9})
    shown = set(folded(built.text))
    foreign = {
        word
        for word in folded(prose_and_code(our_text(page)))
        if word not in shown | KINDS | MAGIC and not word.isdigit()
    }
    return lost, foreign


def assert_same_pages(book: Book, built: dict[str, BuiltPage]) -> None:
    assert {path_of(page) for page in book.pages} == set(built)


def assert_same_anchors(book: Book, built: dict[str, BuiltPage]) -> None:
    for page in book.pages:
        theirs = [anchor for _, _, anchor in built[path_of(page)].headings if anchor]
        ours = [anchor for _, anchor in page.headings if anchor]
        assert ours == theirs, page.file


def assert_passages_land(book: Book, built: dict[str, BuiltPage]) -> None:
    """Every address of a passage exists, with its anchor, in the built site."""
    for passage in book.passages:
        address = urlsplit(passage.place.url)
        anchors = {anchor for _, _, anchor in built[unquote(address.path)].headings}
        assert not address.fragment or unquote(address.fragment) in anchors, passage.place.url


# --- every rule at once ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rules() -> tuple[Book, dict[str, BuiltPage]]:
    sources = {
        **PAGES,
        "docusaurus.config.js": docusaurus.config(),
        "sidebars.js": docusaurus.SIDEBARS,
    }
    site = docusaurus.build("rules", sources)
    return read_book(site / "docs"), docusaurus.pages(site)


def test_every_routing_rule_gives_the_same_address(
    rules: tuple[Book, dict[str, BuiltPage]],
) -> None:
    assert_same_pages(*rules)


def test_every_kind_of_heading_gives_the_same_anchor(
    rules: tuple[Book, dict[str, BuiltPage]],
) -> None:
    assert_same_anchors(*rules)
    assert_passages_land(*rules)


def test_every_kind_of_block_keeps_its_words(rules: tuple[Book, dict[str, BuiltPage]]) -> None:
    book, built = rules
    for page in book.pages:
        lost, foreign = lost_and_foreign(page, built[path_of(page)])
        assert not lost, page.file
        assert not foreign, page.file


# --- the sample book, in two languages ------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> tuple[Book, dict[str, BuiltPage]]:
    site = docusaurus.build("sample", {".": SAMPLE})
    return read_book(site), docusaurus.pages(site)


def without_fallbacks(book: Book, built: dict[str, BuiltPage]) -> dict[str, BuiltPage]:
    ours = {path_of(page) for page in book.pages}
    return {path: page for path, page in built.items() if path in ours or "/ur/" not in path}


def test_the_sample_book_has_the_same_addresses_and_anchors(
    sample: tuple[Book, dict[str, BuiltPage]],
) -> None:
    book, built = sample
    built = without_fallbacks(book, built)
    assert_same_pages(book, built)
    assert_same_anchors(book, built)
    assert_passages_land(book, built)


def test_the_sample_book_keeps_its_words(sample: tuple[Book, dict[str, BuiltPage]]) -> None:
    book, built = sample
    for page in book.pages:
        source = source_of(page)
        lost, foreign = lost_and_foreign(page, built[path_of(page)])
        assert not lost - folded(held_by_components(source)), page.file
        assert not foreign, page.file


def source_of(page: Page) -> str:
    if page.file.startswith("i18n/"):
        _, locale, rest = page.file.split("/", 2)
        folder = SAMPLE / "i18n" / locale / "docusaurus-plugin-content-docs" / "current"
        return (folder / rest).read_text(encoding="utf-8")
    return (SAMPLE / "docs" / page.file).read_text(encoding="utf-8")


def held_by_components(source: str) -> str:
    quizzes = re.findall(r"<Quiz\b.*?/>", source, re.S)
    labels = [CALLOUT_LABELS] * source.count("<Callout")
    computed = ["33"] if "Math.round(1000 / 30)" in source else []
    return " ".join([*quizzes, *labels, *computed])


# --- Docusaurus' own pages about Markdown ---------------------------------------------------------


@pytest.fixture(scope="module")
def features() -> tuple[Book, dict[str, BuiltPage]]:
    if not MDX_SAMPLE.is_dir():
        pytest.skip("needs docusaurus-mdx-sample in ../shared/data")
    sources = {
        **STUBS,
        "docs": MDX_SAMPLE,
        "docusaurus.config.js": docusaurus.config(),
        "sidebars.js": docusaurus.SIDEBARS,
    }
    site = docusaurus.build("features", sources)
    return read_book(site / "docs"), docusaurus.pages(site)


def test_docusaurus_own_pages_have_the_same_addresses_and_anchors(
    features: tuple[Book, dict[str, BuiltPage]],
) -> None:
    assert_same_pages(*features)
    assert_same_anchors(*features)
    assert_passages_land(*features)


def test_docusaurus_own_pages_keep_their_words(
    features: tuple[Book, dict[str, BuiltPage]],
) -> None:
    book, built = features
    for page in book.pages:
        lost, foreign = lost_and_foreign(page, built[path_of(page)])
        source = (MDX_SAMPLE / page.file).read_text(encoding="utf-8")
        if "toc={toc" in source or "JSON.stringify(toc" in source:
            contents = " ".join(
                f"{text} {anchor} value id level 2 3" for text, anchor in page.headings
            )
            lost -= folded(f"{contents} {contents} {source[:300]} {page.title}")
        lost -= folded(" ".join(re.findall(r'<ThemedImage\s+alt="([^"]*)"', source)))
        assert not lost, page.file
        assert not foreign, page.file


# --- a whole textbook by somebody else ------------------------------------------------------------


def test_every_page_of_the_big_book_is_the_same() -> None:
    if not BIG_BOOK.is_dir():
        pytest.skip("needs physical-ai-book in ../shared/data")
    config = docusaurus.config(markdown_format="detect", maths=False)
    sources = {"docs": BIG_BOOK, "docusaurus.config.js": config, "sidebars.js": docusaurus.SIDEBARS}
    site = docusaurus.build("big", sources)
    book, built = read_book(site / "docs"), docusaurus.pages(site)
    assert_same_pages(book, built)
    assert_same_anchors(book, built)
    assert_passages_land(book, built)
    for page in book.pages:
        lost, foreign = lost_and_foreign(page, built[path_of(page)])
        assert not lost, page.file
        assert not foreign, page.file
