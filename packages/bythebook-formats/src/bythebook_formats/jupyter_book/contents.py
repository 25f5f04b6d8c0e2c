"""Tables of contents: ``_toc.yml`` of Jupyter Book 1, and ``project.toc`` of ``myst.yml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PARTS = ("parts", "subtrees")
_CHILDREN = ("chapters", "sections", "entries", "children")
_ENUMERATION = re.compile(r"[0-9_.-]+")
_YEAR = re.compile(r"[12][0-9]{3}(?:[^0-9]|\Z)|[0-9]{5}")
_NOT_IN_SLUG = re.compile(r"[^a-z0-9-]+")
_HYPHENS = re.compile(r"--+")


@dataclass(frozen=True, slots=True)
class Entry:
    """Page or group of a table of contents."""

    file: str = ""  # as written: usually without its suffix; empty for a group
    glob: str = ""  # stands for the files that match
    title: str = ""
    part: str = ""  # caption above it
    above: Entry | None = None  # the outermost entry it belongs to


def read_toc(value: object) -> Iterator[Entry]:
    """Yield the entries in reading order. URLs are left out."""
    if isinstance(value, dict):
        root = _text(value, "root")
        if root:
            yield Entry(file=root, title=_text(value, "title"))
        yield from _below(value, "", None)
    else:
        yield from _entries(value, "", None)


def _below(item: Mapping[str, Any], part: str, above: Entry | None) -> Iterator[Entry]:
    for key in _PARTS:
        for inner in _mappings(item.get(key)):
            # Below the first level, a caption only divides the sections of a chapter.
            caption = part if above else _text(inner, "caption") or part
            yield from _below(inner, caption, above)
    for key in _CHILDREN:
        yield from _entries(item.get(key), part, above)


def _entries(items: object, part: str, above: Entry | None) -> Iterator[Entry]:
    for item in _mappings(items):
        caption = _text(item, "part") or _text(item, "caption") or _text(item, "header")
        part = caption if caption and above is None else part
        file, glob = _text(item, "file"), _text(item, "glob") or _text(item, "pattern")
        title = _text(item, "title")
        if glob:
            yield Entry(glob=glob, part=part, above=above)
        elif file:
            entry = Entry(file=file, title=title, part=part, above=above)
            yield entry
            yield from _below(item, part, above or entry)
        else:
            is_part = title and above is None and not caption
            yield from _below(item, title if is_part else part, above)


def _mappings(value: object) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else []
    named = ({"file": item} if isinstance(item, str) else item for item in items)
    return [item for item in named if isinstance(item, dict)]


def _text(item: Mapping[str, Any], key: str) -> str:
    value = item.get(key)
    is_text = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return " ".join(str(value).split()) if is_text else ""


def myst_slug(name: str) -> str:
    """Return the part of a URL that mystmd makes of a file or folder name; it is never empty."""
    found = None if _YEAR.match(name) else _ENUMERATION.match(name)
    rest = (name[found.end() :] if found else name) or name
    slug = _NOT_IN_SLUG.sub("-", rest.replace("&", "-and-").lower())
    return _HYPHENS.sub("-", slug).strip("-")[:50] or name
