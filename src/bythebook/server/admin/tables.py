"""Convert the admin report to JSON, and its gaps to CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from bythebook.server.admin.report import Gap, Report, percentiles

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
