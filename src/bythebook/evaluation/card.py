"""Trust card of a book: the figures that a reader of its answers needs, on one printable page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from string import Template

from bythebook import __version__
from bythebook.chunking.outline import outline
from bythebook.drawing.markup import Markup, element, joined, text
from bythebook.evaluation.metrics import Evaluation, Figure
from bythebook.evaluation.report import confidence_figures
from bythebook.interfaces.store import Generation
from bythebook.types import Passage

NOT_MEASURED = "not measured"
# The figures of the card: name, title, and what is counted.
_ROWS = (
    ("answered", "Coverage", "of the questions that the book answers were answered"),
    ("right", "Right answers", "of the questions that the book answers were answered correctly"),
    ("wrongly_refused", "Wrongly refused", "of the questions that the book answers were refused"),
    ("refused", "Refusals", "of the questions that the book does not answer were refused"),
    ("risk", "Wrong answers", "of the answers shown were wrong"),
    ("supported", "Verified", "of the sentences shown are supported by a cited passage"),
    ("verbatim", "Verbatim", "of the sentences shown are in the book word for word"),
    ("withheld", "Withheld", "of the sentences written were withheld by the check"),
)


@dataclass(frozen=True, slots=True)
class BookFacts:
    """The evaluated book. Its title is that of its first page."""

    title: str
    embedder: str  # that made the index
    pages: int
    passages: int
    indexed_at: datetime | None


def book_facts(passages: Iterable[Passage], generation: Generation | None) -> BookFacts:
    pages = outline(passages)
    return BookFacts(
        title=pages[0].title if pages else "",
        embedder=generation.embedder if generation else "",
        pages=len(pages),
        passages=sum(page.passages for page in pages),
        indexed_at=generation.published_at if generation else None,
    )


def trust_card(evaluation: Evaluation, facts: BookFacts, setup: Mapping[str, object]) -> str:
    """Return the page. ``card.html`` forbids scripts, in case escaping fails."""
    used = {**setup, "embedder": facts.embedder or setup["embedder"]}
    folder = resources.files("bythebook.evaluation")
    style = "".join(folder.joinpath(name).read_text("utf-8") for name in ("report.css", "card.css"))
    return Template(folder.joinpath("card.html").read_text("utf-8")).substitute(
        style=style,
        title=text(facts.title),
        about=text(_about(evaluation, facts)),
        tiles=joined(*(_tile(evaluation, *row) for row in _ROWS)),
        curves=joined(
            *confidence_figures(evaluation, float(str(setup["min_score"])), numbers=False)
        ),
        setup=joined(*(_pair(name.replace("_", " "), value) for name, value in used.items())),
        sample=text(_sample(evaluation)),
        version=text(__version__),
    )


def figure_of(evaluation: Evaluation, name: str) -> Figure | None:
    """Return a figure of the card; ``wrongly_refused`` is the complement of ``answered``."""
    if name != "wrongly_refused":
        return evaluation.figures.get(name)
    answered = evaluation.figures.get("answered")
    if answered is None or answered.interval is None:
        return None
    low, high = answered.interval
    return Figure(name, 1 - answered.value, answered.count, (1 - high, 1 - low))


def _about(evaluation: Evaluation, facts: BookFacts) -> str:
    indexed = f"indexed on {facts.indexed_at:%Y-%m-%d}" if facts.indexed_at else ""
    counts = (
        f"{facts.pages:,} pages",
        f"{facts.passages:,} passages",
        f"{len(evaluation.cases):,} questions asked",
    )
    return " · ".join(filter(None, (indexed, *counts)))


def _tile(evaluation: Evaluation, name: str, title: str, about: str) -> Markup:
    figure = figure_of(evaluation, name)
    if figure is None or figure.interval is None:
        value, range_of_value = element("b", NOT_MEASURED, class_="quiet"), ""
    else:
        low, high = (f"{100 * bound:.0f}" for bound in figure.interval)
        value = element("b", f"{figure.value:.1%}")
        range_of_value = f"{low} to {high} %, n = {figure.count}"
    return element(
        "li",
        element("h3", title),
        value,
        element("span", about),
        element("small", range_of_value),
    )


def _pair(name: str, value: object) -> Markup:
    return joined(element("dt", name), element("dd", str(value)))


def _sample(evaluation: Evaluation) -> str:
    answerable = sum(case.row.answerable for case in evaluation.cases)
    without = len(evaluation.cases) - answerable
    return f"{answerable} questions that it answers and {without} that it does not answer"
