"""Supported sentences in, numbered citations out: numbers in order of first use."""

from __future__ import annotations

from bythebook.answer.check import Supported
from bythebook.model import Citation, Sentence

_LONGEST_QUOTE = 500  # S2: Citation.referenced_text


class Citations:
    """Numbers each quoted place once, however often it is cited."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Citation] = {}

    def cite(self, supported: Supported) -> tuple[Sentence, Citation, bool]:
        """The sentence with its number, the citation, and whether it is new."""
        passage = supported.hit.passage
        quote = supported.quote[:_LONGEST_QUOTE]
        key = (passage.id, quote)
        new = key not in self._known
        if new:
            self._known[key] = Citation(
                number=len(self._known) + 1,
                passage_id=passage.id,
                place=passage.place,
                quote=quote,
                url=passage.place.url,
                score=supported.hit.score,
            )
        citation = self._known[key]
        sentence = Sentence(supported.text, (citation.number,), supported.lead)
        return sentence, citation, new
