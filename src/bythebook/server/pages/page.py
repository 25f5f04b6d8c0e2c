"""Build the HTML of a page from its passages: headings, anchors and text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, count, groupby

from bythebook.language.text import word_set
from bythebook.server.pages.blocks import section_html, words_html
from bythebook.sources.slugs import slug
from bythebook.text.outline import HeadingTrail
from bythebook.text.section_text import join
from bythebook.text.text_fragments import folded
from bythebook.types import Passage, Place

_RIGHT_TO_LEFT = word_set("ar arc ckb dv fa he ku ps sd ug ur yi")
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class PageHeading:
    text: str
    anchor: str
    level: int  # 2 is the level below the page's title


@dataclass(frozen=True, slots=True)
class PageView:
    html: str
    headings: tuple[PageHeading, ...]


def direction(language: str) -> str:
    return "rtl" if language.lower().partition("-")[0] in _RIGHT_TO_LEFT else "ltr"


def page_view(passages: Sequence[Passage]) -> PageView:
    """Return the HTML and the headings of a page, without its title."""
    page = _Page()
    parts = [
        page.section(place, list(section))
        for place, section in groupby(passages, key=lambda passage: passage.place)
    ]
    return PageView("\n".join(filter(None, parts)), tuple(page.headings))


class _Page:
    def __init__(self) -> None:
        self.headings: list[PageHeading] = []
        self._trail = HeadingTrail()
        self._anchors: set[str] = set()
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))

    def section(self, place: Place, passages: Sequence[Passage]) -> str:
        joined = join(passages)
        new = list(self._new_headings(place))
        self.headings += new
        if place.has_position and not new:  # the section goes on, on the next page of a PDF file
            return f"{self._position(place)}{section_html(joined)}"
        parts = [_heading(heading, escape(heading.text)) for heading in new]
        if new and folded(joined.text) == folded(place.heading):
            parts[-1] = _heading(new[-1], words_html(joined))  # a section without text
        else:
            parts.append(section_html(joined))
        return "\n".join(parts)

    def _position(self, place: Place) -> str:
        anchor = place.url.partition("#")[2]
        if anchor in self._anchors:
            return ""
        self._anchors.add(anchor)
        return f'<span id="{escape(anchor)}"></span>\n'

    def _new_headings(self, place: Place) -> Iterator[PageHeading]:
        """Yield the headings of this section not yet shown; the last one has the URL's anchor."""
        for depth, text, anchor in self._trail.new(place):
            yield PageHeading(text, self._free(anchor or slug(text)), min(depth + 1, _DEEPEST))

    def _free(self, anchor: str) -> str:
        """Return the anchor, with a number appended if the page has it already."""
        names = chain([anchor], (f"{anchor}-{number}" for number in self._numbers[anchor]))
        free = next(name for name in names if name not in self._anchors)
        self._anchors.add(free)
        return free


def _heading(heading: PageHeading, words: str) -> str:
    link = (
        f'<a class="anchor" href="#{escape(heading.anchor)}" aria-hidden="true" tabindex="-1">#</a>'
    )
    name = f"h{heading.level}"
    return f'<{name} id="{escape(heading.anchor)}" dir="auto">{words}{link}</{name}>'
