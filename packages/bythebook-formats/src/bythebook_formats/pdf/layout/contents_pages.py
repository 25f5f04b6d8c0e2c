"""Pages of a table of contents or a list of figures: marked, so that they are left out.

The outline and the headings say the same; an entry with a page number answers no question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from bythebook_formats.pdf.layout.joining import has_leader
from bythebook_formats.pdf.layout.segments import Segment
from bythebook_formats.pdf.model import Word

_STEP = 3.0  # points within which words are on one line
_FEWEST = 5  # entries
_SHARE = 0.5  # of the lines of a page


def mark_contents(pages: Iterable[list[Segment]]) -> None:
    """Set ``left_out`` of the words on pages whose lines mostly lead to page numbers."""
    for segments in pages:
        lines: defaultdict[int, list[Word]] = defaultdict(list)
        for segment in segments:
            if not segment.words[0].left_out:
                lines[round(segment.base / _STEP)] += segment.words
        entries = [words for words in lines.values() if has_leader(words)]
        if len(entries) >= max(_FEWEST, _SHARE * len(lines)):
            for word in chain.from_iterable(lines.values()):
                word.left_out = "tables of contents"
