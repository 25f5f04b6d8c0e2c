"""Build the embeddable widget and serve it at ``/widget.js``, for pages of any origin.

The styles are part of the script, which constructs a stylesheet from them: one line embeds the
widget, and a page's content security policy has to allow nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

_STYLES = ("palette.css", "widget.css")
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_SPACE = re.compile(r"\s+")
_TIGHT = re.compile(r" ?([{};,>]) ?|(:) ")
_NEEDLESS = re.compile(r";(?=})|(?<=[ :,(])0(?=\.\d)")
# Strings, templates (not nested) and regular expressions are not minified.
_JS_LITERAL = re.compile(
    r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|`(?:[^`\\]|\\.?)*+(?:`|\Z)'
    r"|(?:(?<=[(=,:?!&|] )(?!/ )|(?<=[(!]))/.{1,200}?/(?=[\s.,;)])|(?<=return )/.{1,200}?/(?=\.)"
)
_JS_TIGHT = re.compile(r" ?([=*<>{}()?:&|,;!]+) ?")
_HEADERS = {
    "Access-Control-Allow-Origin": "*",  # the same for all clients, and public
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": "public, max-age=300, stale-while-revalidate=86400",
    "X-Content-Type-Options": "nosniff",
}


def widget_script() -> bytes:
    """Return the minified script with its styles, English texts and list of languages."""
    lines = [_without_comment(line) for line in _read("widget.js").splitlines()]
    script = "\n".join(_tight(line) for line in lines if line)
    parts = {
        "styles": _styles(),
        "words": json.loads(_read("words/en.json")),
        "languages": languages(),
    }
    for name, part in parts.items():
        place = f'"{{{{{name}}}}}"'
        assert script.count(place) == 1, name
        script = script.replace(place, _compact(part))
    return script.encode()


def _without_comment(line: str) -> str:
    """Remove a comment that has a line of its own or follows the last string of its line."""
    line = line.strip()
    if line.startswith(("//", "/**")):
        return ""
    quoted = max(line.rfind('"'), line.rfind("`")) + 1
    return line[:quoted] + line[quoted:].partition(" // ")[0].rstrip()


def _tight(line: str) -> str:
    """Remove the spaces around operators and brackets, outside of literals."""
    parts, end = [], 0
    for literal in _JS_LITERAL.finditer(line):
        parts += [_JS_TIGHT.sub(r"\1", line[end : literal.start()]), literal[0]]
        end = literal.end()
    return "".join(parts) + _JS_TIGHT.sub(r"\1", line[end:])


def languages() -> list[str]:
    """List the languages of the widget: those with a file in ``words``."""
    return sorted(file.name.removesuffix(".json") for file in _folder("words").iterdir())


def _styles() -> str:
    text = "".join(map(_read, _STYLES))
    text = _SPACE.sub(" ", _CSS_COMMENT.sub("", text)).strip()
    return _NEEDLESS.sub("", _TIGHT.sub(r"\1\2", text))


def _compact(part: object) -> str:
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


def _folder(name: str) -> Traversable:
    return resources.files("bythebook.server").joinpath("static", name)


def _read(name: str) -> str:
    return resources.files("bythebook.server").joinpath("static", name).read_text("utf-8")


def widget_routes() -> APIRouter:
    router = APIRouter()
    files = {"/widget.js": ("text/javascript", widget_script())}
    for name in languages():
        words = _compact(json.loads(_read(f"words/{name}.json"))).encode()
        files[f"/widget/{name}.json"] = ("application/json", words)
    for path, (media_type, content) in files.items():
        router.add_api_route(path, _file(content, media_type), include_in_schema=False)
    return router


def _file(content: bytes, media_type: str) -> Callable[[Request], Response]:
    headers = {**_HEADERS, "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}

    def file(request: Request) -> Response:
        known = request.headers.get("if-none-match", "").split(",")
        if headers["ETag"] in (tag.strip().removeprefix("W/") for tag in known):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=f"{media_type}; charset=utf-8", headers=headers)

    return file
