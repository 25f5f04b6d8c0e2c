"""Citations of supported sentences, numbered in order of first use, with deep links."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from bythebook.chunking.text_fragments import folded
from bythebook.grounding.verifier import Supported
from bythebook.types import Citation, Passage, Sentence, Unit

_LONGEST_QUOTE = 500  # envelope: Citation.referenced_text


class Citations:
    """Assign one number to each quote, however often it is cited."""

    def __init__(self) -> None:
        self._citations: dict[tuple[str, str], Citation] = {}

    @property
    def numbered(self) -> tuple[Citation, ...]:
        return tuple(self._citations.values())

    def cite(self, supported: Supported) -> tuple[Sentence, Citation, bool]:
        """Return the sentence with its number, the citation, and whether it is new."""
        passage = supported.hit.passage
        quote = supported.quote[:_LONGEST_QUOTE]
        key = (passage.id, quote)
        new = key not in self._citations
        if new:
            self._citations[key] = Citation(
                number=len(self._citations) + 1,
                passage_id=passage.id,
                place=passage.place,
                quote=quote,
                url=passage.place.url,
                link=deep_link(passage, supported.quote),
                score=supported.hit.score,
                position=passage.position,
            )
        citation = self._citations[key]
        sentence = Sentence(supported.text, (citation.number,), supported.lead, supported.closes)
        return sentence, citation, new


def deep_link(passage: Passage, quote: str) -> str:
    """Return the URL of the section, with a text fragment for the quote if there is one.

    The anchor comes first, so that browsers without text fragments still open the section.
    """
    url = passage.place.url
    start = passage.text.find(quote)
    if not url or start < 0:
        return url
    units = [unit for unit in passage.units if start <= unit.start < start + len(quote)]
    fragment = _fragment(passage, units)
    if not fragment:
        return url
    return f"{url}:~:{fragment}" if "#" in url else f"{url}#:~:{fragment}"


def _fragment(passage: Passage, units: Sequence[Unit]) -> str:
    """Return a fragment from the first to the last unit, or that of the first unit alone.

    A browser ends the range at the first place that has the last words, so they must occur once.
    """
    if not units or not units[0].fragment:
        return ""
    first, last = units[0].fragment, units[-1].fragment
    if len(units) == 1 or not last or "-," in first + last:
        return first
    end = last.removeprefix("text=").rpartition(",")[2]
    between = passage.text[units[0].start : units[-1].end]
    if folded(between).count(folded(unquote(end))) != 1:
        return first
    return f"{first.partition(',')[0]},{end}"
