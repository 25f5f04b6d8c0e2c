"""Grade the reply to one question: everything that is counted about it becomes a ``Case``.

Pure functions; the only module that decides what is right, by comparing words and locations.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bythebook.errors import InvalidInput
from bythebook.evaluation.questions import GoldPlace, NuggetScore, Row, Section, score_nuggets
from bythebook.grounding.stream_splitter import without_line_mark
from bythebook.text.selections import passage_of_selection
from bythebook.text.text_fragments import folded
from bythebook.text.units import inside_fence
from bythebook.types import Answer, Citation, Hit, Passage, Place, Reply, Timings

# --- where the answers are -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Location of an answer: its pages, and the passages of its sections."""

    files: frozenset[str]
    passage_ids: frozenset[str]


class Places:
    """Passages of the book, looked up by file and heading."""

    def __init__(self, passages: Mapping[str, Passage]) -> None:
        self.passages = passages
        self._pages: defaultdict[str, list[Passage]] = defaultdict(list)
        for passage in passages.values():
            self._pages[passage.place.file].append(passage)

    def whereabouts(self, row: Row) -> Whereabouts | None:
        """Return the location of the answer; None if the row names none that this book has."""
        places = () if row.selection else row.places
        found = [passage for place in places for passage in self._under(place)]
        if not found:
            return None
        files = frozenset(passage.place.file for passage in found)
        return Whereabouts(files, frozenset(passage.id for passage in found))

    def hidden(self, row: Row) -> frozenset[str]:
        """Return the passages that are held out for this question."""
        if row.held_out is None:
            return frozenset()
        hidden = self._within(row.held_out)
        if not hidden:
            raise InvalidInput(
                f"The question {row.id} holds out a section that this book does not have.",
                hint="Make the questions again: bythebook eval --make N",
            )
        return hidden

    def source(self, citation: Citation, row: Row) -> Passage | None:
        """Return the catalog's passage for a citation, or the row's selection if it has one."""
        if row.selection:
            return passage_of_selection(row.selection, url=None)
        return self.passages.get(citation.passage_id)

    def _under(self, place: GoldPlace) -> list[Passage]:
        pages = self._pages[self._file(place.file) or ""]
        return [passage for passage in pages if _is_under(passage.place, place.heading)]

    def _within(self, section: Section) -> frozenset[str]:
        file = self._file(section.file)
        depth = len(section.path)
        return frozenset(
            passage.id
            for passage in (self._pages[file] if file else ())
            if passage.place.section[:depth] == section.path
        )

    def _file(self, name: str) -> str | None:
        """Return the book's name of a file; question sets often have paths with more parents."""
        parts = name.split("/")
        names = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((each for each in names if each in self._pages), None)


def _is_under(place: Place, heading: str | None) -> bool:
    return heading is None or heading in (*place.section, place.heading)


# --- words: compared as SQuAD does, in every script ----------------------------------------------


_ARTICLES = frozenset({"a", "an", "the"})
# Scripts without spaces between words: each character counts as one word.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
)


def words_of(text: str) -> list[str]:
    """Return the words in lower case, without punctuation and articles."""
    plain = unicodedata.normalize("NFKC", text).lower()
    bare = "".join(char for char in plain if unicodedata.category(char)[0] not in "PS")
    spaced = _UNSPACED.sub(r" \1 ", bare)
    return [word for word in spaced.split() if word not in _ARTICLES]


def holds(text: str, answers: Iterable[str]) -> bool:
    """Return whether the text contains one of the answers word for word."""
    shown = words_of(text)
    return any(_contains(shown, answer, text) for answer in answers)


def _contains(shown: list[str], answer: str, text: str) -> bool:
    wanted = words_of(answer)
    if not wanted:  # "++" or "The": only punctuation or articles, compared unchanged
        return bool(answer.strip()) and answer.strip().lower() in text.lower()
    return f" {' '.join(wanted)} " in f" {' '.join(shown)} "


def overlap(text: str, answers: Iterable[str]) -> float:
    """Return the highest SQuAD token F1 over the answers."""
    return max((_f1(words_of(text), words_of(answer)) for answer in answers), default=0.0)


def _f1(one: list[str], other: list[str]) -> float:
    shared = (Counter(one) & Counter(other)).total()
    if not shared:
        return float(one == other)
    precision, recall = shared / len(one), shared / len(other)
    return 2 * precision * recall / (precision + recall)


# --- grading -------------------------------------------------------------------------------------


DEEPEST_RANK = 10


@dataclass(frozen=True, slots=True)
class Case:
    row: Row
    answered: bool
    confidence: float
    right: bool | None  # the answer, shown or withheld; None if there is none to grade
    rank: int | None = None  # of the first passage of the right section among the ten found
    placed: bool = False  # the right section is known, so that a rank can be determined
    gold: bool | None = None  # the shown text contains an answer
    page: bool | None = None  # … cites the right page
    section: bool | None = None  # … cites the right section
    marked: str | None = None  # the answer span, if the answer has one
    sentences: int = 0
    quoted: tuple[bool, ...] = ()  # for each citation
    linked: tuple[bool, ...] = ()
    self_cited: tuple[bool, ...] = ()  # for each sentence, item and row in the book's words
    supported: tuple[bool, ...] = ()  # for each sentence
    verbatim: tuple[bool, ...] = ()
    withheld: tuple[bool, ...] = ()  # for each sentence written, shown or not
    refusal: str | None = None
    text: str = ""  # the answer, shown or withheld
    cited: tuple[str, ...] = ()
    best: str | None = None  # path of the best hit
    timings: Timings = field(default_factory=Timings)
    nuggets: NuggetScore | None = None  # of the shown answer, if the row has nuggets


def grade(
    row: Row,
    reply: Reply,
    book: Places,
    *,
    pressed: Reply | None = None,
    found: Sequence[Hit] = (),
    supported: tuple[bool, ...] = (),
) -> Case:
    """Grade the reply to the question of a row.

    ``pressed`` is the reply without a minimum score, if this one is a refusal; ``found`` are the
    ten best hits, and ``supported`` tells for each sentence shown whether it was verified again.
    """
    outcome = reply.outcome
    where = book.whereabouts(row) if row.answerable else None
    written = (pressed or reply).outcome
    shown = outcome if isinstance(outcome, Answer) else None
    considered = reply.evidence.considered
    return Case(
        row=row,
        answered=shown is not None,
        confidence=confidence_of(reply),
        right=_is_right(written, row, where) if isinstance(written, Answer) else None,
        rank=_rank(found, where),
        placed=where is not None,
        gold=_says(shown, row) if shown and row.answers else None,
        page=_cites_page(shown, where) if shown and where else None,
        section=_cites_section(shown, where) if shown and where else None,
        marked=shown.span if shown else None,
        sentences=len(shown.sentences) if shown else 0,
        quoted=tuple(_is_quoted(c, row, book) for c in shown.citations) if shown else (),
        linked=_links(shown, row, book) if shown else (),
        self_cited=_self_cited(claims_of(shown), row, book) if shown else (),
        supported=supported,
        verbatim=_verbatim(claims_of(shown), row, book) if shown else (),
        withheld=tuple(not verdict.holds for verdict in reply.verdicts),
        refusal=None if isinstance(outcome, Answer) else str(outcome.type),
        text=_words(written) if isinstance(written, Answer) else "",
        cited=tuple(c.place.path for c in shown.citations) if shown else (),
        best=considered[0].passage.place.path if considered else None,
        timings=reply.timings,
        nuggets=score_nuggets(shown.text if shown else None, row.key) if row.key else None,
    )


def claims_of(answer: Answer) -> Answer:
    """Return the answer without headings shown above their items: a heading claims nothing."""
    headings = {head for cited in answer.citations for head in cited.place.section}
    claims = (each for each in answer.sentences if each.text.rstrip(":") not in headings)
    return replace(answer, sentences=tuple(claims))


def confidence_of(reply: Reply) -> float:
    """Return the answerability of what was found, also for refusals."""
    return reply.evidence.answerability


def _words(answer: Answer) -> str:
    return " ".join(sentence.text for sentence in answer.sentences)


def _says(answer: Answer, row: Row) -> bool:
    return holds(_words(answer), row.answers)


def _is_right(answer: Answer, row: Row, where: Whereabouts | None) -> bool | None:
    """Grade by the nuggets, or by the gold answers, or without both by the cited section."""
    if not row.answerable:
        return False
    if row.key:
        return score_nuggets(answer.text, row.key).useful
    if row.answers:
        return _says(answer, row)
    return _cites_section(answer, where) if where else None


def _rank(found: Sequence[Hit], where: Whereabouts | None) -> int | None:
    wanted = where.passage_ids if where else frozenset()
    return next((hit.rank for hit in found if hit.passage.id in wanted), None)


def _cites_page(answer: Answer, where: Whereabouts) -> bool:
    return any(citation.place.file in where.files for citation in answer.citations)


def _cites_section(answer: Answer, where: Whereabouts) -> bool:
    return any(citation.passage_id in where.passage_ids for citation in answer.citations)


# --- citations: checked against the catalog, not against the reply -------------------------------


def _is_quoted(citation: Citation, row: Row, book: Places) -> bool:
    source = book.source(citation, row)
    return source is not None and _flat(citation.quote) in _flat(source.text)


def _links(answer: Answer, row: Row, book: Places) -> tuple[bool, ...]:
    if row.selection:
        return ()  # a selection has no link: the reader has the page open
    return tuple(_is_linked(citation, book) for citation in answer.citations)


def _is_linked(citation: Citation, book: Places) -> bool:
    source = book.passages.get(citation.passage_id)
    address = citation.url.partition(":~:")[0].removesuffix("#")  # without the text fragment
    return source is not None and address == source.place.url


def _verbatim(answer: Answer, row: Row, book: Places) -> tuple[bool, ...]:
    """Return for each sentence whether a passage that the answer cites has the same words."""
    sources = [book.source(citation, row) for citation in answer.citations]
    texts = [_flat(source.text) for source in sources if source is not None]
    shown = [_flat(_bare(sentence.text)) for sentence in answer.sentences]
    return tuple(any(sentence in text for text in texts) for sentence in shown)


def _self_cited(answer: Answer, row: Row, book: Places) -> tuple[bool, ...]:
    """Return for each unit of the book in the answer whether the marker after it quotes it."""
    sources = [book.source(citation, row) for citation in answer.citations]
    texts = [folded(source.text) for source in sources if source is not None]
    quotes = {citation.number: folded(citation.quote) for citation in answer.citations}
    marked = ""  # what the next markers quote, from the end of the answer
    found: list[bool] = []
    for sentence in reversed(answer.sentences):
        marked = " ".join(quotes.get(number, "") for number in sentence.markers) or marked
        for unit in _units(sentence.text):
            is_quoted = unit in marked
            is_own = answer.writer != "extractive" and not any(unit in text for text in texts)
            found += [] if is_own and not is_quoted else [is_quoted]
    return tuple(reversed(found))


def _units(text: str) -> list[str]:
    """Return the words of a sentence, an item or code; of a table, those of its rows."""
    rows = text.split("\n")
    if text.startswith("|") and len(rows) > 1:
        rows = rows[2:] if not folded(rows[1]) and len(rows) > 2 else rows  # without its header
        return [folded(row) for row in rows if folded(row)]
    return [folded(_bare(text))] if folded(_bare(text)) else []


def _bare(sentence: str) -> str:
    return inside_fence(sentence) or without_line_mark(sentence)


def _flat(text: str) -> str:
    return " ".join(text.split())
