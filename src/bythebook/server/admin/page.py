"""Render the admin report as HTML, with plots as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from bythebook.chunking.outline import path_of
from bythebook.drawing.markup import Markup, element, joined
from bythebook.drawing.svg_plot import LEFT, Axes, axis, bars, label, picture
from bythebook.interfaces.conversations import SCORE_BINS, DayTally
from bythebook.server.admin.report import OUTCOMES, UNSURE, Gap, Report, percentiles

_FIRST = 10  # topics shown without expanding the list
_EXAMPLES = 5  # questions shown per topic
_HEIGHT = 190.0
_REASONS = {
    "empty_retrieval": "no passage found",
    "low_relevance": "no passage was relevant enough",
    "insufficient_grounding": "the book did not support the generated answer",
    "selected_text_missing": "the selected text did not contain the answer",
}
_NOTHING = Markup("")


def to_html(report: Report) -> Markup:
    if not report.is_logged:
        message = "The query log is switched off (log.queries): there is nothing to report."
        return joined(_empty(message), _book(report))
    return joined(
        _figures(report),
        _pair(
            _panel("Questions per day", _per_day(report), _legend()),
            _panel("Confidence of the answers", _confidence(report), _edge()),
        ),
        _gaps(report),
        _pair(_refusals(report), _feedback(report)),
        _book(report),
    )


def _figures(report: Report) -> Markup:
    times = percentiles(report.tally.times_ms)
    outcomes = report.outcomes
    share = f"{outcomes['answered'] / report.asked:.0%}" if report.asked else "–"
    figures = [
        (f"{report.asked:,}", "questions"),
        (share, "answered"),
        (f"{outcomes['refused']:,}", "refused"),
        (f"{outcomes['failed']:,}", "failed"),
        (f"{times[50]:,} ms" if times else "–", "median time"),
        (f"{times[95]:,} ms" if times else "–", "95th percentile"),
    ]
    shown = (element("div", element("dt", name), element("dd", value)) for value, name in figures)
    return element("dl", *shown, class_="figures")


# --- plots ----------------------------------------------------------------------------------------


def _per_day(report: Report) -> Markup:
    days = report.days
    most = max(day.answered + day.refused + day.failed for day in days)
    if not most:
        return _empty("No questions yet.")
    plane = Axes(height=_HEIGHT)
    parts = [*_scale(plane, most), *_dates(plane, days)]
    ground = [0.0] * len(days)
    for outcome in OUTCOMES:
        shares = [getattr(day, outcome) / most for day in days]
        parts += bars(plane, shares, class_=f"bar {outcome}", ground=ground)
        ground = [low + share for low, share in zip(ground, shares, strict=True)]
    return picture(plane, f"{report.asked} questions in {len(days)} days", parts)


def _confidence(report: Report) -> Markup:
    scores = report.tally.scores
    most = max(scores)
    if not most:
        return _empty("No questions yet.")
    plane = Axes(height=_HEIGHT)
    edge = round(UNSURE * SCORE_BINS)
    shares = [count / most for count in scores]
    parts = [
        *_scale(plane, most),
        *axis(plane, "score of the best passage"),
        *bars(plane, [*shares[:edge], *[0.0] * (SCORE_BINS - edge)], class_="bar unsure"),
        *bars(plane, [*[0.0] * edge, *shares[edge:]], class_="bar answered"),
    ]
    return picture(plane, "Questions by the score of their best passage", parts)


def _scale(plane: Axes, most: int) -> list[Markup]:
    ground = plane.y(0)
    return [
        element("line", x1=plane.x(0), y1=ground, x2=plane.x(1), y2=ground, class_="axis"),
        label(f"{most:,}", LEFT - 8, plane.y(1) + 4, anchor="end"),
        label("0", LEFT - 8, ground + 4, anchor="end"),
    ]


def _dates(plane: Axes, days: Sequence[DayTally]) -> list[Markup]:
    ends = (
        [(days[0], 0.0, "start"), (days[-1], 1.0, "end")]
        if len(days) > 1
        else [(days[0], 0.5, "middle")]
    )
    return [
        label(f"{day.day.day} {day.day:%b}", plane.x(at), plane.y(0) + 20, anchor=anchor)
        for day, at, anchor in ends
    ]


def _legend() -> Markup:
    keys = (element("span", name, class_=f"key {name}") for name in OUTCOMES)
    return element("p", *keys, class_="legend")


def _edge() -> Markup:
    return element("p", f"Pale bars: low confidence, below {UNSURE:g}.", class_="legend")


# --- gaps -----------------------------------------------------------------------------------------


def _gaps(report: Report) -> Markup:
    title = "What the book does not cover"
    if not report.gaps:
        return _panel(title, _empty(_why_no_gaps(report)), name="gaps")
    most = max(gap.topic.count for gap in report.gaps)
    lead = (
        "Questions that were refused or answered with low confidence, grouped by topic: what "
        "readers look for and do not find."
    )
    rows = [_gap(gap, most) for gap in report.gaps]
    return _panel(
        title,
        element("button", "Export as CSV", type="button", id="export"),
        element("p", lead, class_="lead"),
        element("ol", *rows[:_FIRST], class_="topics"),
        _more(rows[_FIRST:]),
        name="gaps",
    )


def _more(rows: Sequence[Markup]) -> Markup:
    if not rows:
        return _NOTHING
    return element(
        "details", element("summary", f"{len(rows)} more"), element("ol", *rows, class_="topics")
    )


def _why_no_gaps(report: Report) -> str:
    if report.error:
        return f"The topics cannot be computed now. {report.error}"
    if not report.with_text:
        return "The text of questions is not stored (log.text), only their number."
    return "No question was refused, and no answer had low confidence."


def _gap(gap: Gap, most: int) -> Markup:
    topic = gap.topic
    asked = f"{topic.count} asked · {topic.refused} refused"
    head = element(
        "div",
        element("h3", topic.label, dir="auto"),
        element("span", asked, class_="count"),
        class_="head",
    )
    share = element("meter", asked, max=most, value=topic.count, aria_label=topic.label)
    return element("li", head, share, _examples(gap), _nearest(gap))


def _examples(gap: Gap) -> Markup:
    questions = gap.topic.questions
    if len(questions) == 1 and questions[0].text == gap.topic.label:
        return _NOTHING
    shown = (
        element("li", one.text, element("small", f" × {one.count}") if one.count > 1 else "")
        for one in questions[:_EXAMPLES]
    )
    return element("ul", *shown, class_="examples", dir="auto")


def _nearest(gap: Gap) -> Markup:
    if not gap.nearest:
        return _NOTHING
    links = (
        element("a", page.title, href=f"read/{quote(path_of(page.url))}", dir="auto")
        for page in gap.nearest
    )
    listed = [part for link in links for part in (", ", link)][1:]
    return element("p", "Nearest pages: ", *listed, class_="nearest")


# --- other panels ---------------------------------------------------------------------------------


def _refusals(report: Report) -> Markup:
    reasons = sorted(report.tally.refusals.items(), key=lambda reason: (-reason[1], reason[0]))
    rows = [(_REASONS.get(name, name), f"{count:,}") for name, count in reasons]
    return _panel("Reasons for refusals", _table(rows) if rows else _empty("No refusals."))


def _feedback(report: Report) -> Markup:
    title = "Feedback of readers"
    if not report.feedback:
        return _panel(title, _empty("No feedback yet."))
    verdicts = [
        ("helpful", f"{report.verdicts['up']:,}"),
        ("not helpful", f"{report.verdicts['down']:,}"),
        *((f"… {reason}", f"{count:,}") for reason, count in sorted(report.complaints.items())),
    ]
    texts = [element("li", given.text, dir="auto") for given in report.feedback if given.text]
    comments = element("ul", *texts[:_EXAMPLES], class_="examples") if texts else _NOTHING
    return _panel(title, _table(verdicts), comments)


def _book(report: Report) -> Markup:
    edition = report.edition
    languages = (f"{name} ({count})" for name, count in sorted(edition.languages.items()))
    rows = [
        ("Pages", f"{len(edition.pages):,}"),
        ("Passages", f"{edition.passages:,}"),
        ("Words", f"{edition.words:,}"),
        ("Languages (pages)", ", ".join(languages)),
        ("Shortest pages (words)", ", ".join(f"{p.title} ({p.words:,})" for p in edition.thinnest)),
        ("Generation", edition.generation),
        ("Embedder", edition.embedder),
        ("Vectors", edition.vectors),
    ]
    return _panel("The book", _table(rows), name="book")


def _table(rows: Iterable[tuple[str, str]]) -> Markup:
    return element(
        "table",
        *(
            element("tr", element("th", name, scope="row"), element("td", value, dir="auto"))
            for name, value in rows
        ),
    )


def _panel(title: str, *parts: Markup, name: str = "") -> Markup:
    return element("section", element("h2", title), *parts, class_=f"panel {name}".strip())


def _pair(one: Markup, other: Markup) -> Markup:
    return element("div", one, other, class_="pair")


def _empty(message: str) -> Markup:
    return element("p", message, class_="empty")
