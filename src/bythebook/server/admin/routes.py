"""Routes of the admin report: HTML, JSON, and its gaps as CSV.

Only the author may see what readers ask: access needs a secret key, or a loopback connection.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from bythebook.book import Book
from bythebook.errors import NotAllowed
from bythebook.server.admin.page import to_html
from bythebook.server.admin.report import Report, Reporter
from bythebook.server.admin.tables import to_csv, to_json
from bythebook.server.middleware.addresses import is_loopback
from bythebook.server.reader.routes import fail
from bythebook.server.routes import contract_route

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Days = Annotated[int, Query(ge=1, le=366)]


def admin_routes(library: Book, *, needs_key: bool) -> APIRouter:
    router = APIRouter(
        tags=["admin"],
        route_class=contract_route(fail),
        include_in_schema=False,
        dependencies=[Depends(_only_the_author(needs_key=needs_key))],
    )
    reporter = Reporter(library)

    @router.get("/admin/report.json")
    async def as_json(days: Days = 30) -> Response:
        told = json.dumps(to_json(await reporter.report(days=days)))
        return Response(told, media_type="application/json", headers=_HEADERS)

    @router.get("/admin/report.html")
    async def as_html(days: Days = 30) -> Response:
        told = to_html(await reporter.report(days=days))
        return Response(told, media_type="text/html; charset=utf-8", headers=_HEADERS)

    @router.get("/admin/gaps.csv")
    async def as_csv(days: Days = 30) -> Response:
        report = await reporter.report(days=days)
        # The byte order mark tells spreadsheets that the file is UTF-8.
        told = f"\ufeff{to_csv(report)}"
        return Response(
            told, media_type="text/csv; charset=utf-8", headers={**_HEADERS, **_file(report)}
        )

    return router


def _file(report: Report) -> dict[str, str]:
    name = f"gaps-{report.until:%Y-%m-%d}.csv"
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _only_the_author(*, needs_key: bool) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        """Raise unless the client is the author; the middleware has rejected publishable keys."""
        known = request.state
        address = getattr(known, "address", None)
        at_home = address is not None and address.is_loopback
        # A web page open in a local browser (DNS rebinding) sends another host name.
        named = is_loopback(request.url.hostname or "")
        if getattr(known, "owner", None) is None and (needs_key or not (at_home and named)):
            raise NotAllowed(
                "What readers ask is shown to whoever has a secret key.",
                hint="Make one with: bythebook keys create",
            )

    return check
