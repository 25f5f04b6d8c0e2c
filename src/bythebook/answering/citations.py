"""Citations of supported sentences, numbered in order of first use, with deep links."""

from __future__ import annotations

from textwrap import TextWrapper

from bythebook.answering.runs import LONGEST_QUOTE, quotations
from bythebook.grounding.verifier import Supported
from bythebook.text.markdown import inline_marks, moved
from bythebook.text.text_fragments import fragment_of
from bythebook.types import Citation, Evidence, Hit, Mark, Passage, Sentence

_LINES = TextWrapper(
    LONGEST_QUOTE,
    expand_tabs=False,
    replace_whitespace=False,
    drop_whitespace=False,
    break_on_hyphens=False,
)


class Citations:
    """Assign one number to each quote, however often it is cited, and one to each source."""

    def __init__(self, evidence: Evidence | None = None) -> None:
        self._evidence = evidence or Evidence()
        self._sources: dict[str, int] = {}
        self._citations: dict[tuple[str, str], Citation] = {}

    @property
    def numbered(self) -> tuple[Citation, ...]:
        return tuple(self._citations.values())

    def has_room(self, supported: Supported, *, top_k: int) -> bool:
        """Return whether the sentence can be cited without citing more than ``top_k`` passages."""
        cited = {passage for passage, _ in self._citations}
        return supported.hit.passage.id in cited or len(cited) < top_k

    def cite(self, supported: Supported) -> tuple[Sentence, list[Citation]]:
        """Return the sentence with its numbers, and the citations that are new."""
        known = len(self._citations)
        numbers = [self._number(supported.hit, quote) for quote in _quotes(supported)]
        unique = tuple(dict.fromkeys(numbers))
        marks = marks_of_quoted(supported.hit.passage, supported.text, supported.quote)
        sentence = Sentence(supported.text, unique, supported.lead, supported.closes, marks)
        return sentence, list(self._citations.values())[known:]

    def _number(self, hit: Hit, quote: str) -> int:
        passage = hit.passage
        key = (passage.id, quote)
        if key not in self._citations:
            self._citations[key] = Citation(
                number=len(self._citations) + 1,
                passage_id=passage.id,
                place=passage.place,
                quote=quote,
                url=passage.place.url,
                link=deep_link(passage, quote),
                score=hit.score,
                position=passage.position,
                source=self._source(passage.id),
            )
        return self._citations[key].number

    def _source(self, passage_id: str) -> int:
        hit = listed_hit(self._evidence, passage_id)
        source = hit.passage.id if hit else passage_id
        return self._sources.setdefault(source, len(self._sources) + 1)


def _quotes(supported: Supported) -> list[str]:
    """Return the quote in parts of at most ``LONGEST_QUOTE`` characters, unless it is everything.

    Several units are parted between them, a long one (most likely a listing) between its words.
    """
    passage, quote = supported.hit.passage, supported.quote
    groups = list(quotations(passage, _units(passage, quote)))
    if len(groups) > 1 and quote == passage.text:
        return [quote]
    ends = [(passage.units[group[0]].start, passage.units[group[-1]].end) for group in groups]
    parts = [passage.text[start:end] for start, end in ends] if len(groups) > 1 else [quote]
    return [line.strip() for part in parts for line in _LINES.wrap(part)]


def _units(passage: Passage, quote: str) -> list[int]:
    """Return the indices of the units that the quote has words of."""
    start = _start(passage, quote)
    end = start + len(quote)
    if start < 0:
        return []
    return [n for n, unit in enumerate(passage.units) if unit.start < end and unit.end > start]


def _start(passage: Passage, quote: str) -> int:
    """Return where the quote starts: at a unit rather than within one, and ends with a unit."""
    ends = {unit.end for unit in passage.units}
    starts = [unit.start for unit in passage.units if passage.text.startswith(quote, unit.start)]
    return max(
        starts, key=lambda start: start + len(quote) in ends, default=passage.text.find(quote)
    )


def marks_of_quoted(passage: Passage, text: str, quote: str) -> tuple[Mark, ...] | None:
    """Return the markup of a text whose lines are taken from a passage; None if one is not."""
    marks: list[Mark] = []
    place, done = max(0, passage.text.find(quote)), 0
    for line in text.split("\n"):
        near = passage.text.rfind("\n", 0, place) + 1
        start = passage.text.find(line, near)
        start = passage.text.find(line) if start < 0 else start
        found = inline_marks(passage.marks, start, start + len(line))
        if start < 0 or found is None:
            return None
        marks += moved(found, done)
        place, done = start + len(line), done + len(line) + 1
    return tuple(marks)


def listed_hit(evidence: Evidence, passage_id: str) -> Hit | None:
    """Return the hit that lists a passage as a source: itself, or the one that it is next to.

    A neighbour may score below the minimum, which no listed source may.
    """
    hits = evidence.hits[: evidence.confidence.count]
    own = next((hit for hit in hits if hit.passage.id == passage_id), None)
    return own or next((hit for hit in hits if passage_id in hit.passage.neighbours), None)


def deep_link(passage: Passage, quote: str) -> str:
    """Return the URL of the section, with a text fragment for the quote if there is one.

    The anchor comes first, so that browsers without text fragments still open the section.
    """
    url = passage.place.url
    fragment = fragment_of(passage, [passage.units[unit] for unit in _units(passage, quote)])
    if not url or not fragment:
        return url
    return f"{url}:~:{fragment}" if "#" in url else f"{url}#:~:{fragment}"
