"""A library in, the routes of the author's report out: as HTML, as JSON, and its gaps as CSV.

What readers ask is the author's to know: it takes a secret key, or to sit at the machine itself.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from bythebook.errors import NotAllowed
from bythebook.library import Library
from bythebook.serve.addresses import is_loopback
from bythebook.serve.admin.page import to_html
from bythebook.serve.admin.report import Report, Reporter
from bythebook.serve.admin.tables import to_csv, to_json
from bythebook.serve.reader.routes import fail
from bythebook.serve.routes import contract_route

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Days = Annotated[int, Query(ge=1, le=366)]


def admin_routes(library: Library, *, needs_key: bool) -> APIRouter:
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
        # The mark at the beginning tells spreadsheets that it is UTF-8.
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
        """The door has looked at the key already: a publishable one may not come here."""
        known = request.state
        address = getattr(known, "address", None)
        at_home = address is not None and address.is_loopback
        # A page of the web that a browser here has open comes by another name.
        named = is_loopback(request.url.hostname or "")
        if getattr(known, "owner", None) is None and (needs_key or not (at_home and named)):
            raise NotAllowed(
                "What readers ask is shown to whoever has a secret key.",
                cure="Make one with: bythebook keys create",
            )

    return check
