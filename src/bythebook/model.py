"""The nouns of the house: frozen values that travel from the book's files to a reader's reply.

One word per idea: page, passage, hit, evidence, citation, reply, thread. The words of the
wire (chunk, source, session) live only in ``serve/contracts/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# --- the book -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the book a passage stands."""

    file: str  # relative to the docs folder, with forward slashes
    title: str  # of the page
    url: str  # of the page, ending in "#anchor" where the heading has one
    module: str
    chapter: str
    section: tuple[str, ...]  # heading path below the page's title; empty before the first heading

    @property
    def page_url(self) -> str:
        return self.url.partition("#")[0]

    @property
    def is_on_the_web(self) -> bool:
        """Whether the address is a URL: without a site URL it is only a path, or empty."""
        return self.url.startswith(("http://", "https://"))

    @property
    def heading(self) -> str:
        """The nearest heading above the passage: the last of the path, or the page's title."""
        return self.section[-1] if self.section else self.title

    @property
    def topic(self) -> str:
        """The outermost heading above the passage: deeper ones may be "Common mistakes"."""
        return self.section[0] if self.section else self.title

    @property
    def path(self) -> str:
        """``Title › Section › Subsection``, as a reader would say where something stands."""
        return " › ".join((self.title, *self.section))


@dataclass(frozen=True, slots=True)
class Metadata:
    """What front matter and the text itself say about a passage; all of it can be filtered on."""

    language: str = "en"
    week: int | None = None
    difficulty: str | None = None
    keywords: tuple[str, ...] = ()
    has_code: bool = False


class UnitKind(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    ROW = "row"
    CODE = "code"
    MATHS = "maths"


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece of a passage that can be shown by itself: ``passage.text[start:end]``."""

    start: int
    end: int
    kind: UnitKind = UnitKind.SENTENCE
    fragment: str = ""  # "text=…", if a browser can find the unit on its page by it


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one section of one page, as a reader sees it."""

    id: str  # 64 hex digits; the same on every machine
    text: str
    place: Place
    position: int  # 0, 1, 2 … within the page
    content_hash: str  # SHA-256 of the text
    metadata: Metadata = field(default_factory=Metadata)
    units: tuple[Unit, ...] = ()
    source: tuple[int, int] = (0, 0)  # offsets of the passage in its source file
    tokens: int = 0
    neighbours: tuple[str, ...] = ()  # ids of those before and after it in the same section
    # The code or maths block of the passage before goes on here: what stood between, "\n" or "".
    continues: str | None = None

    def unit_text(self, unit: Unit) -> str:
        return self.text[unit.start : unit.end]

    @property
    def embedded_text(self) -> str:
        """What the embedder reads: the heading path in front of the text."""
        return f"{self.place.path}\n{self.text}"


# --- a question and what was found for it -----------------------------------------------------

FilterValue = str | int | bool

# What a search can be narrowed by, and what its values are.
FILTERS: Mapping[str, type[FilterValue]] = {
    "module": str,
    "chapter": str,
    "section": str,
    "url": str,
    "language": str,
    "difficulty": str,
    "week": int,
    "hasCode": bool,
}


class VectorState(StrEnum):
    """Whether a book can be searched by meaning yet, or by its words alone."""

    READY = "ready"
    PENDING = "pending"
    AWAY = "away"  # the index or the embedder does not answer: by its words for now


class Level(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    selection: str | None = None
    selection_url: str | None = None
    fenced: bool = True  # only the selection may answer; otherwise it leads the search
    thread: str | None = None
    top_k: int = 5
    floor: float = 0.5
    needs: Level = Level.INSUFFICIENT  # the least confidence that answers; the floor comes first
    filters: Mapping[str, FilterValue] = field(default_factory=dict)
    page: str | None = None  # the address of the page being read: of what is alike, it comes first


@dataclass(frozen=True, slots=True)
class Signals:
    """Why a passage was found: the raw evidence behind its score."""

    passage_cosine: float = 0.0
    unit_cosine: float = 0.0  # of the unit nearest to the question
    term_weight: float = 0.0  # BM25 as a share of the most the question could get, 0–1
    coverage: float = 0.0  # share of the question's weighted terms found in the passage, 0–1
    # What speaks against it, once it has been read (retrieve/read.py):
    missing: float = 0.0  # the rarest asked term that the nearest unit lacks, 0–1
    denied: float = 0.0  # 1: the question negates what the nearest unit affirms
    strange: float = 0.0  # names and numbers of the question that the passage does not have
    hollow: float = 0.0  # 1: it repeats the question, and adds nothing


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where each signal alone would have put a passage, among all that were weighed."""

    passage: int = 1
    unit: int = 1
    words: int = 1
    among: int = 1


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    rank: int  # 1 is best
    cosine: float  # raw, may be negative
    score: float  # calibrated: 0.5 means as likely to hold the answer as not
    signals: Signals = field(default_factory=Signals)
    ranks: Ranks = field(default_factory=Ranks)
    unit_cosines: tuple[float, ...] = ()  # one for each unit of the passage
    vector: Vectors | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Confidence:
    """S4's ConfidenceMetrics, computed on calibrated scores."""

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
    """The hits a writer may use, best first, within the token budget."""

    hits: tuple[Hit, ...] = ()
    tokens: int = 0
    confidence: Confidence = field(default_factory=Confidence)
    considered: tuple[Hit, ...] = ()  # everything found, before the floor


# --- the reply ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    number: int  # from 1, in order of first use
    passage_id: str
    place: Place
    quote: str  # the passage's own words
    url: str  # of the page, with the heading's anchor
    link: str  # the same, and on to the quoted words where a browser can find them
    score: float
    position: int = 0  # of the passage, within its page


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    citations: tuple[int, ...]
    lead: str = " "  # what stands before it, unless it comes first

    @property
    def cited(self) -> str:
        """The sentence with its citation markers."""
        gap = "\n" if "\n" in self.text else " "
        return self.text + gap + "".join(f"[{number}]" for number in self.citations)


@dataclass(frozen=True, slots=True)
class Mark:
    """The few words of a sentence that are the answer."""

    sentence: int  # from 0
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    writer: str
    disclaimer: str | None = None
    mark: Mark | None = None  # where a few words of it are the answer

    @property
    def text(self) -> str:
        """The answer with its citation markers, ready to be read."""
        return "".join(s.lead + s.cited for s in self.sentences).strip()

    @property
    def full_text(self) -> str:
        """The text with the disclaimer below it, for contracts that have no field for one."""
        return "\n\n".join(filter(None, (self.text, self.disclaimer)))

    @property
    def span(self) -> str | None:
        """The marked words."""
        return self.parts[1] or None

    @property
    def markdown(self) -> str:
        """The text with the marked words in bold."""
        before, marked, after = self.parts
        return f"{before}**{marked}**{after}" if marked else before

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the marked words, these, and the text after them."""
        if self.mark is None:
            return self.text, "", ""
        through = replace(self, sentences=self.sentences[: self.mark.sentence + 1]).text
        start = len(through) - len(self.sentences[self.mark.sentence].cited) + self.mark.start
        end = start + self.mark.end - self.mark.start
        return self.text[:start], self.text[start:end], self.text[end:]


class RefusalType(StrEnum):
    """S2's four reasons for saying no."""

    EMPTY_RETRIEVAL = "empty_retrieval"
    LOW_RELEVANCE = "low_relevance"
    INSUFFICIENT_GROUNDING = "insufficient_grounding"
    SELECTED_TEXT_MISSING = "selected_text_missing"


BOOK_DOES_NOT_SAY = (
    "The provided book content does not contain sufficient information to answer this question"
)
SELECTION_DOES_NOT_SAY = "The selected text does not contain this information"


@dataclass(frozen=True, slots=True)
class Topic:
    """Something nearby that the book does cover."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Refusal:
    type: RefusalType
    nearby: tuple[Topic, ...] = ()

    @property
    def text(self) -> str:
        if self.type is RefusalType.SELECTED_TEXT_MISSING:
            return SELECTION_DOES_NOT_SAY
        return BOOK_DOES_NOT_SAY


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
    """What language models read and wrote for an answer, in their own tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost_usd: float | None = None  # None where the price is not known

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
    """What the check found about a sentence of the writer, and what of it was dropped."""

    text: str
    holds: bool
    odds: float  # that the book says as much; 1 where it stands there word for word
    reasons: tuple[str, ...] = ()
    markers: int = 0  # that name no passage of the evidence
    addresses: int = 0  # links and markup


@dataclass(frozen=True, slots=True)
class Reply:
    question: Question
    outcome: Answer | Refusal
    evidence: Evidence
    timings: Timings
    vectors: VectorState = VectorState.READY
    verdicts: tuple[Verdict, ...] = ()  # on every sentence that was written, shown or not
    persisted: bool = True  # False: its thread's messages could not be kept
    writer: str = ""  # the chosen one, whoever wrote it in the end
    usage: Usage = Usage()
    fallback: str | None = None  # why another writer than the chosen one wrote it, or the rest
    cached: bool = False  # nothing was searched or written for it: it was answered before
    asked_at: datetime | None = None  # when the question arrived
    answered_at: datetime | None = None  # when the answer was complete

    @property
    def withheld(self) -> int:
        """Sentences that were written and not shown."""
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
    citations: tuple[Citation, ...] = ()  # of an answer, as they were when it was given
    request: str | None = None  # that a question came by, where it may come by it again


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    messages: tuple[Message, ...]
    created_at: datetime
    updated_at: datetime
    topic_summary: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    owner: str | None = None  # the key that began it; None where no keys are asked for
    archived_at: datetime | None = None  # idle since long; the next message takes it back
    earlier: int = 0  # messages kept before these, and not shown


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as far as anyone needs to know."""

    owner: str | None = None
    session: str | None = None  # S2's, a UUID: for the query log, not a conversation
    address: str | None = None  # of the client; only a part of it is ever kept
    query: str | None = None  # a UUID, under which the question is logged and can be judged
    request: str | None = None  # the same each time that one request is repeated: a digest
