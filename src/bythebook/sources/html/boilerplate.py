"""Remove what themes of any kind repeat at the top and bottom of every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lxml import etree

from bythebook.sources.html.content import is_chrome
from bythebook.sources.html.text import BLOCKS, one_line
from bythebook.sources.html.tree import Element

_EDGE = 12  # blocks at either end of a page
_SHARE = 0.6  # of the pages, on which a text is repeated
_LEAST = 4  # pages
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def edge_texts(content: Element) -> frozenset[str]:
    """Return the texts of the blocks at the top and bottom of a page."""
    leaves = list(_leaves(content))
    return frozenset(text for _, text in (*_top(leaves), *leaves[-_EDGE:]))


def repeated_texts(pages: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the texts that most pages have at an edge."""
    counts = Counter(text for page in pages for text in page)
    least = max(_LEAST, _SHARE * len(pages))
    return frozenset(text for text, count in counts.items() if count >= least)


def remove_repeated(content: Element, repeated: frozenset[str]) -> None:
    """Remove the repeated blocks before the first and after the last block of a page's own."""
    leaves = list(_leaves(content))
    for edge in (_top(leaves), reversed(leaves)):
        for element in _until_own(edge, repeated):
            _remove(element)


def _until_own(edge: Iterable[tuple[Element, str]], repeated: frozenset[str]) -> Iterator[Element]:
    for element, text in edge:
        if text not in repeated:
            return
        yield element


def _top(leaves: Sequence[tuple[Element, str]]) -> list[tuple[Element, str]]:
    headings = [i for i, (element, _) in enumerate(leaves[:_EDGE]) if element.tag in _HEADINGS]
    return list(leaves[: headings[0] if headings else _EDGE])


def _leaves(content: Element) -> Iterator[tuple[Element, str]]:
    """Yield the blocks without blocks inside, and their text, in page order."""
    walker = etree.iterwalk(content, events=("start", "end"))
    innermost: Element | None = None
    element: Element
    for event, element in walker:
        if event == "start":
            if element is not content and is_chrome(element):
                walker.skip_subtree()
            elif element.tag in BLOCKS:
                innermost = element
        elif element is innermost:
            innermost = None
            if text := one_line(element):
                yield element, text


def _remove(element: Element) -> None:
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    elif element.tail:
        parent.text = (parent.text or "") + element.tail
    parent.remove(element)
