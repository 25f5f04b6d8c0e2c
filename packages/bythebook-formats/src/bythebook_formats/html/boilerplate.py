"""Remove what themes of any kind repeat at the top and bottom of every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from lxml import etree

from bythebook_formats.html.text import BLOCKS, one_line
from bythebook_formats.html.tree import Element

_EDGE = 12  # blocks at either end of a page
_SHARE = 0.6  # of the pages, on which a text is repeated
LEAST = 4  # pages
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def edge_texts(content: Element) -> frozenset[str]:
    """Return the texts of the blocks at the top and bottom of a page."""
    leaves = _leaves(content)
    return frozenset(text for _, text in (*_top(leaves), *_first(reversed(leaves))))


def repeated_texts(pages: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the texts that most pages have at an edge."""
    counts = Counter(text for page in pages for text in page)
    least = max(LEAST, _SHARE * len(pages))
    return frozenset(text for text, count in counts.items() if count >= least)


def find_repeated(content: Element, repeated: frozenset[str]) -> list[Element]:
    """Return the repeated blocks before the first and after the last block of a page's own.

    A repeated section with its heading is the author's.
    """
    if not repeated:
        return []
    leaves = _leaves(content)
    top = list(_until_own(_top(leaves), repeated))
    bottom = list(_until_own(_first(reversed(leaves)), repeated))
    if any(element.tag in _HEADINGS for element in bottom):
        bottom = []
    return [*top, *bottom]


def _until_own(edge: Iterable[tuple[Element, str]], repeated: frozenset[str]) -> Iterator[Element]:
    for element, text in edge:
        if text not in repeated:
            return
        yield element


def _top(leaves: Sequence[Element]) -> list[tuple[Element, str]]:
    """Return the blocks before the first heading."""
    return list(takewhile(lambda leaf: leaf[0].tag not in _HEADINGS, _first(leaves)))


def _first(leaves: Iterable[Element]) -> list[tuple[Element, str]]:
    """Return the first blocks that have text, with it."""
    found = ((element, text) for element in leaves if (text := one_line(element)))
    return list(islice(found, _EDGE))


def _leaves(content: Element) -> list[Element]:
    """Return the blocks without blocks inside, in page order."""
    leaves: list[Element] = []
    innermost: Element | None = None
    element: Element
    for event, element in etree.iterwalk(content, events=("start", "end"), tag=tuple(BLOCKS)):
        if event == "start":
            innermost = element
        elif element is innermost:
            innermost = None
            leaves.append(element)
    return leaves
