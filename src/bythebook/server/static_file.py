"""Serve unchanging content, compressed with gzip for clients that accept it."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cached_property
from importlib import resources

from fastapi import Request, Response


def read_static(name: str) -> str:
    """Return the text of a file in ``static/``."""
    return resources.files("bythebook.server").joinpath("static", name).read_text("utf-8")


class StaticFile:
    """Content with an ETag; it is compressed at the first request and kept in both forms."""

    def __init__(self, content: str, media_type: str, headers: Mapping[str, str]) -> None:
        self.content = content.encode()
        self._media_type = media_type
        self._headers = {"Vary": "Accept-Encoding", **headers}
        self._digest = hashlib.sha256(self.content).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes:
        return gzip.compress(self.content, mtime=0)

    async def respond(self, request: Request) -> Response:
        """Return the content, or 304 if the client has it in the form that it accepts."""
        is_gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))
        # Both forms need an ETag of their own, as their bytes differ.
        tag = f'"{self._digest}-gzip"' if is_gzip else f'"{self._digest}"'
        headers = {**self._headers, "ETag": tag}
        cached = request.headers.get("if-none-match", "").split(",")
        if tag in (one.strip().removeprefix("W/") for one in cached):
            return Response(status_code=304, headers=headers)
        if is_gzip:
            headers["Content-Encoding"] = "gzip"
        content = self.compressed if is_gzip else self.content
        return Response(content, headers=headers, media_type=self._media_type)


def _accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding allows gzip: by name, else by ``*``, with a weight > 0."""
    weights = {}
    for part in header.lower().split(","):
        name, _, parameter = part.partition(";")
        weights[name.strip()] = parameter.partition("=")[2].strip() or "1"
    return weights.get("gzip", weights.get("*", "0")).strip("0.") != ""
