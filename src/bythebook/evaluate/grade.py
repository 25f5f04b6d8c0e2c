"""A row, what was replied and the book in; a ``Case`` out: all that is counted about one question.

Pure: what is right is decided here, by comparing words and places, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bythebook.evaluate.places import Places, Whereabouts
from bythebook.evaluate.questions import Row
from bythebook.evaluate.words import holds
from bythebook.model import Answer, Citation, Hit, Reply, Timings

DEEPEST_RANK = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and everything that came back for it."""

    row: Row
    reply: Reply
    pressed: Reply  # the reply itself, or what the floor kept it from saying
    found: tuple[Hit, ...] = ()  # the ten best, whatever the floor
    supported: tuple[bool, ...] = ()  # each sentence shown, checked again


@dataclass(frozen=True, slots=True)
class Case:
    row: Row
    answered: bool
    confidence: float
    right: bool | None  # the answer, shown or pressed for; None where there is none to judge
    rank: int | None = None  # of the first passage of the right section among the ten found
    placed: bool = False  # the right section is known, so that a rank could be looked for
    gold: bool | None = None  # the shown text contains an answer
    page: bool | None = None  # … cites the right page
    section: bool | None = None  # … cites the right section
    marked: str | None = None  # the words that the answer points at, if it does
    sentences: int = 0
    quoted: tuple[bool, ...] = ()  # for each citation
    linked: tuple[bool, ...] = ()
    supported: tuple[bool, ...] = ()  # for each sentence
    refusal: str | None = None
    text: str = ""  # what was shown, or what the floor kept back
    cited: tuple[str, ...] = ()
    best: str | None = None  # where the best hit stands
    timings: Timings = field(default_factory=Timings)


def grade(asked: Asked, book: Places) -> Case:
    row, reply, outcome = asked.row, asked.reply, asked.reply.outcome
    where = book.whereabouts(row) if row.answerable else None
    written = asked.pressed.outcome
    shown = outcome if isinstance(outcome, Answer) else None
    considered = reply.evidence.considered
    return Case(
        row=row,
        answered=shown is not None,
        confidence=confidence_of(reply),
        right=_is_right(written, row, where) if isinstance(written, Answer) else None,
        rank=_rank(asked.found, where),
        placed=where is not None,
        gold=_says(shown, row) if shown and row.answers else None,
        page=_cites_page(shown, where) if shown and where else None,
        section=_cites_section(shown, where) if shown and where else None,
        marked=shown.span if shown else None,
        sentences=len(shown.sentences) if shown else 0,
        quoted=tuple(_is_quoted(c, row, book) for c in shown.citations) if shown else (),
        linked=_links(shown, row, book) if shown else (),
        supported=asked.supported,
        refusal=None if isinstance(outcome, Answer) else str(outcome.type),
        text=_words(written) if isinstance(written, Answer) else "",
        cited=tuple(c.place.path for c in shown.citations) if shown else (),
        best=considered[0].passage.place.path if considered else None,
        timings=reply.timings,
    )


def confidence_of(reply: Reply) -> float:
    """How sure the reply is, also where it was not sure enough: its best hit's score."""
    return max((hit.score for hit in reply.evidence.considered), default=0.0)


def _words(answer: Answer) -> str:
    return " ".join(sentence.text for sentence in answer.sentences)


def _says(answer: Answer, row: Row) -> bool:
    return holds(_words(answer), row.answers)


def _is_right(answer: Answer, row: Row, where: Whereabouts | None) -> bool | None:
    """By its words where the right ones are known, or else by its place."""
    if not row.answerable:
        return False
    if row.answers:
        return _says(answer, row)
    return _cites_section(answer, where) if where else None


def _rank(found: Sequence[Hit], where: Whereabouts | None) -> int | None:
    wanted = where.passage_ids if where else frozenset()
    return next((hit.rank for hit in found if hit.passage.id in wanted), None)


def _cites_page(answer: Answer, where: Whereabouts) -> bool:
    return any(citation.place.file == where.file for citation in answer.citations)


def _cites_section(answer: Answer, where: Whereabouts) -> bool:
    return any(citation.passage_id in where.passage_ids for citation in answer.citations)


# --- citations: looked up again in the catalog, whatever the reply says --------------------------


def _is_quoted(citation: Citation, row: Row, book: Places) -> bool:
    source = book.source(citation, row)
    return source is not None and _flat(citation.quote) in _flat(source.text)


def _links(answer: Answer, row: Row, book: Places) -> tuple[bool, ...]:
    if row.selection:
        return ()  # the reader has the page open
    return tuple(_is_linked(citation, book) for citation in answer.citations)


def _is_linked(citation: Citation, book: Places) -> bool:
    source = book.passages.get(citation.passage_id)
    address = citation.url.partition(":~:")[0].removesuffix("#")  # less the text fragment
    return source is not None and address == source.place.url


def _flat(text: str) -> str:
    return " ".join(text.split())
