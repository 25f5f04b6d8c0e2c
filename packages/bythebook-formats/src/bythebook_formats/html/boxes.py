"""Recognise admonitions, cards and theorems in HTML, with their titles and kinds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook.language.text import word_set
from bythebook.sources.markdown.elements import admonition_title
from bythebook.text.units import ADMONITIONS
from bythebook_formats.html.content import classes
from bythebook_formats.html.text import BLOCKS
from bythebook_formats.html.tree import Element

_TITLE = re.compile(
    r"(?:admonition|topic|sidebar|callout|alert|note|tip|warning|box|card|exercise|theorem|proof|"
    r"code-?block|code|block)?[-_]*+(?:title|heading|header|label|caption|filename|name)"
    r"(?:[-_][\w-]*+)?+\Z",
    re.I,
)
_BOXED = re.compile(
    r"admonition|callout|alert|topic|sidebar|note|tip|warning|danger|important|box|card|exercise|"
    r"theorem|proof|definition|example|hint|caution",
    re.I,
)
_ADMONITIONS = word_set("note tip warning caution important danger hint info")
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))


def title_of_box(element: Element, names: Sequence[str]) -> Element | None:
    """Return the title of an admonition, a card or a theorem, if the element is one."""
    if not any(_BOXED.search(name) for name in names):
        return None
    first = next(iter(element), None)
    if first is None or len(element) < 2:
        return None
    if first.tag in _HEADINGS:  # DocBook
        return first if is_admonition(names) and "title" in classes(first) else None
    has_blocks = any(each.tag in BLOCKS - {"p", "div"} for each in first)
    return first if (is_title(first) or first.tag == "strong") and not has_blocks else None


def is_title(element: Element) -> bool:
    return any(_TITLE.match(name) for name in classes(element))


def is_admonition(names: Sequence[str]) -> bool:
    return not _ADMONITIONS.isdisjoint(names)


def with_kind(title: str, names: Sequence[str]) -> str:
    """Return "Danger — Title" for a box that shows its kind by colour and icon alone.

    Only for English: in other languages the title may be the translated name of the kind.
    """
    kinds = (name.removeprefix("theme-admonition-").lower() for name in names)
    kind = next((kind for kind in kinds if kind in ADMONITIONS), "")
    return title if not kind or title.casefold() == kind else admonition_title(kind, title)
