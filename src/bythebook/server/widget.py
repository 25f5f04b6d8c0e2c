"""Build the embeddable widget and serve it at ``/widget.js``, for pages of any origin.

The styles are part of the script, which constructs a stylesheet from them: one line embeds the
widget, and a page's content security policy has to allow nothing else.
"""

from __future__ import annotations

import json
from importlib import resources

from fastapi import APIRouter

from bythebook.server.static_file import StaticFile, read_static

_STYLES = ("palette.css", "widget.css")
_HEADERS = {
    "Access-Control-Allow-Origin": "*",  # the same for all clients, and public
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
    "X-Content-Type-Options": "nosniff",
}


def widget_script() -> str:
    """Return the script with its styles, English texts and list of languages."""
    parts = {
        "styles": "".join(map(read_static, _STYLES)),
        "words": json.loads(read_static("translations/en.json")),
        "languages": languages(),
    }
    script = read_static("widget.js")
    for name, part in parts.items():
        placeholder = f'"{{{{{name}}}}}"'
        assert script.count(placeholder) == 1, name
        script = script.replace(placeholder, json.dumps(part, ensure_ascii=False))
    return script


def languages() -> list[str]:
    """List the languages of the widget: those with a file in ``words``."""
    folder = resources.files("bythebook.server").joinpath("static", "translations")
    return sorted(file.name.removesuffix(".json") for file in folder.iterdir())


def widget_routes() -> APIRouter:
    router = APIRouter(include_in_schema=False)
    script = StaticFile(widget_script(), "text/javascript", _HEADERS)
    router.add_api_route("/widget.js", script.respond)
    for name in languages():
        words = StaticFile(read_static(f"translations/{name}.json"), "application/json", _HEADERS)
        router.add_api_route(f"/widget/{name}.json", words.respond)
    return router
