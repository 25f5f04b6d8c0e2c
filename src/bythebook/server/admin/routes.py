"""Routes of the admin report: HTML, JSON, and its gaps as CSV.

Only the author may see what readers ask: access needs an author's key, or a private server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from bythebook.book import Book
from bythebook.errors import Forbidden, NotAllowed
from bythebook.server.admin.formats import to_csv, to_html, to_json
from bythebook.server.admin.report import Reporter
from bythebook.server.static_pages import PAGE_HEADERS

_HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-store"}
_CREATE = "Create one that may with: bythebook keys create --author"
Days = Annotated[int, Query(ge=1, le=366)]


def admin_routes(book: Book, *, needs_key: bool) -> APIRouter:
    router = APIRouter(
        tags=["admin"],
        include_in_schema=False,
        dependencies=[Depends(_only_the_author(needs_key=needs_key))],
    )
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
        address = getattr(state, "address", None)
        is_local = address is not None and address.is_loopback
        if getattr(state, "owner", None) is not None:
            if not state.is_author:
                raise Forbidden("This key may not read the report.", hint=_CREATE)
        elif needs_key or not is_local:
            raise NotAllowed("This report requires an author's API key.", hint=_CREATE)

    return check
