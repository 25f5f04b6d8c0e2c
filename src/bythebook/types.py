"""Immutable data types of the pipeline, from source pages to replies.

One term per concept: page, passage, hit, evidence, citation, reply, thread. The terms of the
HTTP contracts (chunk, source, session) are used only in ``contracts/`` and ``server/contracts/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bythebook.refusals import Refusal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# --- the book -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a passage in the book."""

    file: str  # relative to the docs folder, with forward slashes
    title: str  # of the page
    url: str  # of the page, with "#anchor" if the heading has one
    module: str
    chapter: str
    section: tuple[str, ...]  # heading path below the page's title; empty before the first heading

    @property
    def page_url(self) -> str:
        return self.url.partition("#")[0]

    @property
    def has_position(self) -> bool:
        """Return whether the anchor is a position (``page=12``) and not the id of a heading."""
        return "=" in self.url.partition("#")[2]

    @property
    def heading(self) -> str:
        """Return the nearest heading above the passage, or the page's title."""
        return self.section[-1] if self.section else self.title

    @property
    def topic(self) -> str:
        """Return the outermost heading: deeper ones may be generic, such as "Common mistakes"."""
        return self.section[0] if self.section else self.title

    @property
    def path(self) -> str:
        """Return the full heading path, ``Title › Section › Subsection``."""
        return " › ".join((self.title, *self.section))


@dataclass(frozen=True, slots=True)
class Metadata:
    """Filterable metadata of a passage, from front matter and from its text."""

    language: str = "en"
    week: int | None = None
    difficulty: str | None = None
    keywords: tuple[str, ...] = ()
    has_code: bool = False


UnitKind = StrEnum("UnitKind", "SENTENCE ITEM ROW CODE MATHS")  # the form of a unit
# What a text is for, decided at ingest (text/text_kinds.py). An "instruction" addresses an
# assistant; it is never shown and never sent to a model.
TextKind = StrEnum(
    "TextKind",
    "TEXT DEFINITION EXERCISE OPTION SOLUTION OBJECTIVE MISTAKE CONTENTS BIBLIOGRAPHY INDEX "
    "TITLE_BLOCK CREDIT INSTRUCTION LINKS NOTICE FILE_NAME",
)


@dataclass(frozen=True, slots=True)
class Unit:
    """Smallest quotable part of a passage: ``passage.text[start:end]``."""

    start: int
    end: int
    kind: UnitKind = UnitKind.SENTENCE
    fragment: str = ""  # "text=…", if a browser can find the unit on its page with it
    text_kind: TextKind = TextKind.TEXT


class MarkKind(StrEnum):
    """Kind of inline markup, named by its sign in Markdown."""

    STRONG = "**"
    EMPHASIS = "*"
    STRUCK = "~~"
    CODE = "`"
    LINK = "["
    IMAGE = "!["
    INSERTED = "+"  # what only Markdown needs: an escape, the indent of a line, an empty line


class Mark(NamedTuple):
    """Markup of a range of plain text (text/markdown.py). An inserted one may be empty."""

    start: int
    end: int
    kind: MarkKind
    target: str = ""  # URL of a link or an image; what is inserted


@dataclass(frozen=True, slots=True)
class Passage:
    """Chunk of one section of one page, as visible text."""

    id: str  # 64 hex digits; the same on every machine
    text: str
    place: Place
    position: int  # 0, 1, 2 … within the page
    content_hash: str  # SHA-256 of the text
    metadata: Metadata = field(default_factory=Metadata)
    units: tuple[Unit, ...] = ()
    source: tuple[int, int] = (0, 0)  # offsets of the passage in its source file
    tokens: int = 0
    neighbours: tuple[str, ...] = ()  # ids of the previous and next passage of the section
    # Set if the previous passage's code or maths block continues here: the separator, "\n" or "".
    continues: str | None = None
    text_kind: TextKind = TextKind.TEXT
    # Outer ones first. None: the text is not from a book's files, and is Markdown as it was found.
    marks: tuple[Mark, ...] | None = None

    def unit_text(self, unit: Unit) -> str:
        return self.text[unit.start : unit.end]

    @property
    def embedded_text(self) -> str:
        """Return the text to embed: the heading path, then the passage text."""
        return f"{self.place.path}\n{self.text}"


# --- questions and search results -------------------------------------------------------------

FilterValue = str | int | bool
FILTERS: Mapping[str, type[FilterValue]] = {
    "module": str,
    "chapter": str,
    "section": str,
    "url": str,
    "language": str,
    "difficulty": str,
    "week": int,
    "hasCode": bool,
    "kind": TextKind,
}


class VectorState(StrEnum):
    """Availability of semantic search; without it, search is by keywords."""

    READY = "ready"
    PENDING = "pending"
    AWAY = "away"  # index or embedder does not respond: keyword search for now


Level = StrEnum("Level", "HIGH MEDIUM LOW INSUFFICIENT")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    selection: str | None = None
    selection_url: str | None = None
    selection_only: bool = True  # answer from the selection only; otherwise it guides the search
    thread: str | None = None
    top_k: int = 5
    min_score: float = 0.5  # similarity of the best hit, to answer at all
    min_evidence: float = 0.0  # similarity of any hit, to be used as evidence
    min_confidence: Level = Level.INSUFFICIENT  # to answer; ``min_score`` applies first
    min_answerability: float | None = None  # of the evidence, to answer; None: the fitted limit
    filters: Mapping[str, FilterValue] = field(default_factory=dict)
    context: str = ""  # earlier questions that it depends on; searched with it
    current_page: str | None = None  # URL of the page being read: preferred among similar hits
    thread_metadata: Mapping[str, object] = field(default_factory=dict)  # merged into the thread's


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of a passage before it is read (retrieval/score.py)."""

    passage_cosine: float = 0.0  # scaled: 0 for unrelated text, 1 for the text itself
    unit_cosine: float = 0.0  # of the unit nearest to the question, scaled
    term_weight: float = 0.0  # BM25 as a share of the question's maximum, 0–1
    coverage: float = 0.0  # share of the question's weighted terms found in the passage, 0–1
    heading_coverage: float = 0.0  # … in its heading path
    best_unit_coverage: float = 0.0  # … in the unit that has most of them


@dataclass(frozen=True, slots=True)
class PassageReading:
    """What a reading model finds in one passage: probabilities, and the best short answer."""

    probability: float  # that the passage answers the question
    span: tuple[int, int] | None  # of the short answer, ``passage.text[start:end]``; in one unit
    relevance: tuple[float, ...] = ()  # that each unit belongs in the answer


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    rank: int  # 1 is best
    cosine: float  # raw, may be negative
    score: float  # similarity: the probability that it is about what is asked
    answers: float = 0.0  # the probability that it holds the answer
    order: float = 0.0  # log odds by which candidates are ordered before they are read
    signals: Signals = field(default_factory=Signals)
    unit_cosines: tuple[float, ...] = ()  # one for each unit of the passage
    reading: PassageReading | None = None  # None: not read by a reading model
    vector: Vectors | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Confidence:
    """ConfidenceMetrics of the contract chat, computed on similarities."""

    average: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    count: int = 0
    diversity: float = 0.0
    level: Level = Level.INSUFFICIENT

    @property
    def should_answer(self) -> bool:
        return self.level is not Level.INSUFFICIENT


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hits for the writer, best first, within the token budget."""

    hits: tuple[Hit, ...] = ()
    tokens: int = 0
    confidence: Confidence = field(default_factory=Confidence)
    considered: tuple[Hit, ...] = ()  # all hits, also those below ``min_score``
    answerability: float = 0.0  # probability that the passages found answer the question


# --- the reply ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    number: int  # from 1, in order of first use
    passage_id: str
    place: Place
    quote: str  # verbatim from the passage
    url: str  # of the page, with the heading's anchor
    link: str  # the same, with a text fragment for the quote if a browser can find it
    score: float
    position: int = 0  # of the passage, within its page
    source: int = 1  # number of the listed source that it belongs to


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    citations: tuple[int, ...]
    lead: str = " "  # separator before it, unless it is the first
    closes: bool = True  # its markers are shown; False: a later sentence of its run shows them
    marks: tuple[Mark, ...] | None = None  # of the book's text; None: Markdown that a model wrote

    @property
    def markers(self) -> tuple[int, ...]:
        """Return the citations whose markers follow the sentence."""
        return self.citations if self.closes else ()

    def by_source(self, sources: Mapping[int, int]) -> Sentence:
        """Return the sentence with the numbers of its sources, each once."""
        numbers = dict.fromkeys(sources[number] for number in self.citations)
        return replace(self, citations=tuple(numbers))

    @property
    def gap(self) -> str:
        """Return the separator before the markers: code needs its closing line for itself."""
        return "\n" if self.text.rstrip().endswith(("```", "~~~", "$$")) else " "

    @property
    def cited(self) -> str:
        """Return the sentence with its citation markers."""
        markers = "".join(f"[{number}]" for number in self.markers)
        return self.text + self.gap + markers if markers else self.text


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Span of a sentence that is the short answer."""

    sentence: int  # from 0
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    writer: str
    disclaimer: str | None = None
    mark: AnswerSpan | None = None  # the short answer, if there is one

    @property
    def text(self) -> str:
        """Return the answer with its citation markers."""
        return "".join(s.lead + s.cited for s in self.sentences).strip()

    @property
    def by_source(self) -> Answer:
        """Return the answer with markers that number the listed sources, not the quotes."""
        sources = {each.number: each.source for each in self.citations}
        return replace(self, sentences=tuple(s.by_source(sources) for s in self.sentences))

    @property
    def full_text(self) -> str:
        """Return the text with the disclaimer appended, for contracts without a field for it."""
        return "\n\n".join(filter(None, (self.text, self.disclaimer)))

    @property
    def span(self) -> str | None:
        """Return the marked span, or None."""
        return self.parts[1] or None

    @property
    def markdown(self) -> str:
        """Return the text with the marked span in bold."""
        before, marked, after = self.parts
        return f"{before}**{marked}**{after}" if marked else before

    @property
    def parts(self) -> tuple[str, str, str]:
        """Return the text before the marked span, the span, and the text after it."""
        if self.mark is None:
            return self.text, "", ""
        through = replace(self, sentences=self.sentences[: self.mark.sentence + 1]).text
        start = len(through) - len(self.sentences[self.mark.sentence].cited) + self.mark.start
        end = start + self.mark.end - self.mark.start
        return self.text[:start], self.text[start:end], self.text[end:]


@dataclass(frozen=True, slots=True)
class Timings:
    query_ms: float = 0.0  # embedding the question
    search_ms: float = 0.0
    generation_ms: float = 0.0
    total_ms: float = 0.0

    @property
    def retrieval_ms(self) -> float:
        return self.query_ms + self.search_ms


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage and cost of the language model calls for an answer."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost_usd: float | None = None  # None if the price is unknown

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.calls + other.calls,
            sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of checking one sentence of a draft, and what was removed from it."""

    text: str
    holds: bool
    odds: float  # probability that the book supports it; 1 for a verbatim quote
    reasons: tuple[str, ...] = ()
    markers: int = 0  # removed citation markers that match no passage of the evidence
    addresses: int = 0  # removed links and markup
    replaces: str = ""  # the model's sentence that ``text``, the book's own words, stands for


@dataclass(frozen=True, slots=True)
class Reply:
    question: Question
    outcome: Answer | Refusal
    evidence: Evidence
    timings: Timings
    vectors: VectorState = VectorState.READY
    verdicts: tuple[Verdict, ...] = ()  # for every written sentence, shown or not
    persisted: bool = True  # False: the thread's messages could not be stored
    writer: str = ""  # the configured one, even if a fallback wrote the answer
    usage: Usage = Usage()
    fallback: str | None = None  # why a fallback writer wrote the answer or the rest of it
    cached: bool = False  # served from the cache, without search or writing
    asked_at: datetime | None = None  # when the question arrived
    answered_at: datetime | None = None  # when the answer was complete

    def __str__(self) -> str:
        return self.text

    @property
    def answered(self) -> bool:
        return isinstance(self.outcome, Answer)

    @property
    def text(self) -> str:
        return self.outcome.text

    @property
    def citations(self) -> tuple[Citation, ...]:
        return self.outcome.citations if isinstance(self.outcome, Answer) else ()

    @property
    def withheld(self) -> int:
        """Return the number of sentences that were written but not shown."""
        return sum(not verdict.holds for verdict in self.verdicts)


# --- conversations ------------------------------------------------------------------------------


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str
    timestamp: datetime
    confidence: float | None = None
    citations: tuple[Citation, ...] = ()  # of an answer, as they were at that time
    request: str | None = None  # id of the question's request, if that may be repeated
