"""Our addresses, anchors and words against those of real Docusaurus."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from bythebook.book.letters import words
from bythebook.book.site import Book, Page, read_book
from tests.book import docusaurus
from tests.book.docusaurus import BuiltPage
from tests.book.parity_site import PAGES

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "physical-ai-book"
MDX_SAMPLE = ROOT.parent / "shared" / "data" / "docusaurus-mdx-sample" / "website"

PNG = "not an image"
STUBS: dict[str, str] = {
    "src/components/BrowserWindow.js": (
        "import React from 'react';\nexport default function B({children}) {"
        " return <div>{children}</div>; }\n"
    ),
    "src/theme/MDXComponents.js": (
        "import MDXComponents from '@theme-original/MDXComponents';\n"
        "import CodeBlock from '@theme/CodeBlock';\n"
        "export default {...MDXComponents, Code: CodeBlock,"
        " Highlight: ({children}) => <span>{children}</span>};\n"
    ),
    "src/pages/examples/_myComponent.js": "export default function MyComponent() {}\n",
    "static/img/docusaurus.svg": '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    "static/img/docusaurus_keytar.svg": '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    "static/img/docusaurus_speed.svg": '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
    "docs/assets/docusaurus-asset-example.docx": "text",
}


def by_path(book: Book) -> dict[str, Page]:
    from urllib.parse import unquote

    return {unquote(page.url.removeprefix("https://example.org")): page for page in book.pages}


def differences(page: Page, built: BuiltPage) -> list[str]:
    """Runs of words that stand on one side only, in order."""
    ours, theirs = our_words(page), their_words(built)
    found = difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes()
    return [
        f"{tag}: theirs {' '.join(theirs[a:b])!r} ours {' '.join(ours[c:d])!r}"
        for tag, a, b, c, d in found
        if tag != "equal"
    ]
