"""Routes of the author's report: HTML, JSON, and its gaps as CSV.

Only the author may see what readers ask: access needs an author's key, or a private server.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from bythebook.book import Book
from bythebook.drawing import Axes, render
from bythebook.errors import Forbidden, NotAllowed
from bythebook.server.report import OUTCOMES, UNSURE, Gap, Report, Reporter, percentiles
from bythebook.server.static_files import PAGE_HEADERS
from bythebook.text.outline import path_of

_HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-store"}
_CREATE = "Create one that may with: bythebook keys create --author"
_REASONS = {
    "empty_retrieval": "no passage found",
    "low_relevance": "no passage was relevant enough",
    "insufficient_grounding": "the book did not support the generated answer",
    "selected_text_missing": "the selected text did not contain the answer",
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = ("topic", "question", "asked", "refused", "unsure", "last_asked", "nearest_pages")
Days = Annotated[int, Query(ge=1, le=366)]


def admin_routes(book: Book, *, needs_key: bool) -> APIRouter:
    only_the_author = Depends(_only_the_author(needs_key=needs_key))
    router = APIRouter(tags=["admin"], include_in_schema=False, dependencies=[only_the_author])
    reporter = Reporter(book)

    @router.get("/admin/report.json")
    async def as_json(days: Days = 30) -> Response:
        return JSONResponse(to_json(await reporter.report(days=days)), headers=_HEADERS)

    @router.get("/admin/report.html")
    async def as_html(days: Days = 30) -> Response:
        return HTMLResponse(to_html(await reporter.report(days=days)), headers=_HEADERS)

    @router.get("/admin/gaps.csv")
    async def as_csv(days: Days = 30) -> Response:
        report = await reporter.report(days=days)
        name = f"gaps-{report.until:%Y-%m-%d}.csv"
        headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        # The byte order mark tells spreadsheets that the file is UTF-8.
        return Response(f"\ufeff{to_csv(report)}", media_type="text/csv", headers=headers)

    return router


def _only_the_author(*, needs_key: bool) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        """Raise unless the client is the author; the middleware has rejected publishable keys."""
        state = request.state
        if state.owner is not None:
            if not state.is_author:
                raise Forbidden("This key may not read the report.", hint=_CREATE)
        elif needs_key or state.address is None or not state.address.is_loopback:
            raise NotAllowed("This report requires an author's API key.", hint=_CREATE)

    return check


# --- formats --------------------------------------------------------------------------------------


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
    languages = (f"{name} ({count})" for name, count in sorted(report.languages.items()))
    return [
        ("Pages", f"{len(report.contents.pages):,}"),
        ("Passages", f"{report.passages:,}"),
        ("Words", f"{report.words:,}"),
        ("Languages (pages)", ", ".join(languages)),
        ("Shortest pages (words)", ", ".join(f"{p.title} ({p.words:,})" for p in report.thinnest)),
        ("Generation", report.contents.generation),
        ("Embedder", report.embedder),
        ("Vectors", report.vectors),
    ]


def to_json(report: Report) -> dict[str, Any]:
    times = percentiles(report.tally.times_ms)
    return {
        "since": report.since.isoformat(),
        "until": report.until.isoformat(),
        "logged": report.is_logged,
        "questions_kept": report.with_text,
        "questions": {"asked": report.asked, **report.outcomes},
        "days": [asdict(day) | {"day": day.day.isoformat()} for day in report.days],
        "scores": list(report.tally.scores),
        "latency_ms": {f"p{percent}": time for percent, time in times.items()},
        "refusals": dict(report.tally.refusals),
        "gaps": [_gap(gap) for gap in report.gaps],
        "feedback": {
            "up": report.verdicts["up"],
            "down": report.verdicts["down"],
            "reasons": report.complaints,
        },
        "book": {
            "generation": report.contents.generation,
            "embedder": report.embedder,
            "vectors": report.vectors,
            "pages": len(report.contents.pages),
            "passages": report.passages,
            "words": report.words,
            "languages": report.languages,
        },
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "topic": gap.label,
        "count": gap.count,
        "refused": gap.refused,
        "questions": [{"text": one.text, "count": one.count} for one in gap.questions],
        "nearest": [{"title": place.title, "url": place.page_url} for place in gap.nearest],
    }


def to_csv(report: Report) -> str:
    """Return the gaps as CSV, one row per question."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    for gap in report.gaps:
        nearest = " | ".join(place.page_url for place in gap.nearest)
        for one in gap.questions:
            last = one.last_at.isoformat(timespec="seconds")
            words = map(harmless, (gap.label, one.text))
            rows.writerow([*words, one.count, one.refused, one.unsure, last, harmless(nearest)])
    return out.getvalue()


def harmless(cell: str) -> str:
    """Prefix an apostrophe to text that a spreadsheet would evaluate as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA) else cell
