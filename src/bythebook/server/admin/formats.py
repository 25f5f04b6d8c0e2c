"""Convert the admin report to HTML and JSON, and its gaps to CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from bythebook.drawing import Axes, render
from bythebook.server.admin.report import OUTCOMES, UNSURE, Gap, Report, percentiles
from bythebook.text.outline import path_of

_REASONS = {
    "empty_retrieval": "no passage found",
    "low_relevance": "no passage was relevant enough",
    "insufficient_grounding": "the book did not support the generated answer",
    "selected_text_missing": "the selected text did not contain the answer",
}


def to_html(report: Report) -> str:
    days = report.days
    reasons = sorted(report.tally.refusals.items(), key=lambda reason: (-reason[1], reason[0]))
    return render(
        "admin.html",
        report=report,
        figures=_figures(report),
        axes=Axes(height=190.0),
        most_a_day=max(day.answered + day.refused + day.failed for day in days),
        ends=[(0.0, days[0]), (1.0, days[-1])] if len(days) > 1 else [(0.5, days[0])],
        outcomes=OUTCOMES,
        unsure=UNSURE,
        path_of=path_of,
        refusals=[(_REASONS.get(name, name), f"{count:,}") for name, count in reasons],
        verdicts=[
            ("helpful", f"{report.verdicts['up']:,}"),
            ("not helpful", f"{report.verdicts['down']:,}"),
            *((f"… {reason}", f"{n:,}") for reason, n in sorted(report.complaints.items())),
        ],
        comments=[given.text for given in report.feedback if given.text],
        book=_book(report),
    )


def _figures(report: Report) -> list[tuple[str, str]]:
    times, outcomes = percentiles(report.tally.times_ms), report.outcomes
    return [
        (f"{report.asked:,}", "questions"),
        (f"{outcomes['answered'] / report.asked:.0%}" if report.asked else "–", "answered"),
        (f"{outcomes['refused']:,}", "refused"),
        (f"{outcomes['failed']:,}", "failed"),
        (f"{times[50]:,} ms" if times else "–", "median time"),
        (f"{times[95]:,} ms" if times else "–", "95th percentile"),
    ]


def _book(report: Report) -> list[tuple[str, str]]:
    edition = report.edition
    languages = (f"{name} ({count})" for name, count in sorted(edition.languages.items()))
    return [
        ("Pages", f"{len(edition.pages):,}"),
        ("Passages", f"{edition.passages:,}"),
        ("Words", f"{edition.words:,}"),
        ("Languages (pages)", ", ".join(languages)),
        ("Shortest pages (words)", ", ".join(f"{p.title} ({p.words:,})" for p in edition.thinnest)),
        ("Generation", edition.generation),
        ("Embedder", edition.embedder),
        ("Vectors", edition.vectors),
    ]


# --- as JSON and CSV ------------------------------------------------------------------------------


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = ("topic", "question", "asked", "refused", "unsure", "last_asked", "nearest_pages")


def to_json(report: Report) -> dict[str, Any]:
    edition = report.edition
    return {
        "since": report.since.isoformat(),
        "until": report.until.isoformat(),
        "logged": report.is_logged,
        "questions_kept": report.with_text,
        "questions": {"asked": report.asked, **report.outcomes},
        "days": [asdict(day) | {"day": day.day.isoformat()} for day in report.days],
        "scores": list(report.tally.scores),
        "latency_ms": {
            f"p{percent}": time for percent, time in percentiles(report.tally.times_ms).items()
        },
        "refusals": dict(report.tally.refusals),
        "gaps": [_gap(gap) for gap in report.gaps],
        "feedback": {
            "up": report.verdicts["up"],
            "down": report.verdicts["down"],
            "reasons": report.complaints,
        },
        "book": {
            "generation": edition.generation,
            "embedder": edition.embedder,
            "vectors": edition.vectors,
            "pages": len(edition.pages),
            "passages": edition.passages,
            "words": edition.words,
            "languages": edition.languages,
        },
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "topic": gap.topic.label,
        "count": gap.topic.count,
        "refused": gap.topic.refused,
        "questions": [{"text": one.text, "count": one.count} for one in gap.topic.questions],
        "nearest": [asdict(page) for page in gap.nearest],
    }


def to_csv(report: Report) -> str:
    """Return the gaps as CSV, one row per question."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    for gap in report.gaps:
        nearest = " | ".join(page.url for page in gap.nearest)
        for one in gap.topic.questions:
            last = one.last_at.isoformat(timespec="seconds")
            words = map(harmless, (gap.topic.label, one.text))
            rows.writerow([*words, one.count, one.refused, one.unsure, last, harmless(nearest)])
    return out.getvalue()


def harmless(cell: str) -> str:
    """Prefix an apostrophe to text that a spreadsheet would evaluate as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA) else cell
