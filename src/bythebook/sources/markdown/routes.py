"""URLs of pages and headings by Docusaurus' routing rules."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from bythebook.sources.markdown.frontmatter import front_text

_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_NUMBER_PREFIX = re.compile(r"(\d+)\s*[-_.]+\s*([^-_.\s].*)\Z", re.ASCII)
_SLASHES = re.compile(r"/{2,}")


@dataclass(frozen=True, slots=True)
class Routes:
    """Routing settings of the pages of one folder."""

    origin: str = ""  # "https://example.org", or "" for paths that start at the site's root
    base_url: str = "/"  # includes the locale unless it is the default one
    route_base_path: str = "docs"
    version_path: str = ""
    trailing_slash: bool | None = None
    strip_numbers: bool = True
    positions: tuple[str, ...] = ("sidebar_position",)  # names in front matter

    def url(self, file: PurePosixPath, front: Mapping[str, object]) -> str:
        path = _join(
            self.base_url, self.route_base_path, self.version_path, self._slug(file, front)
        )
        return self.origin.rstrip("/") + quote(self._with_slash(path), safe="/%:@!$&'()*+,;=~-._")

    def base_id(self, file: PurePosixPath, front: Mapping[str, object]) -> str:
        given = front_text(front, "id")
        return given if given is not None else self.strip(file.stem, front)[0]

    def strip(self, name: str, front: Mapping[str, object]) -> tuple[str, int | None]:
        """Return a file or folder name without its number prefix, and the number."""
        if not self.strip_numbers or front.get("parse_number_prefixes") is False:
            return name, None
        return split_number(name)

    def position(self, front: Mapping[str, object]) -> float | None:
        """Return the place of a page in its folder, if its front matter has one."""
        numbers = (number(front.get(name)) for name in self.positions)
        return next((found for found in numbers if found is not None), None)

    def _slug(self, file: PurePosixPath, front: Mapping[str, object]) -> str:
        slug = front_text(front, "slug")
        if slug and slug.startswith("/"):
            return slug
        folders = [self.strip(part, front)[0] for part in file.parent.parts]
        folder = "/" + "".join(f"{name}/" for name in folders)
        if not slug and is_index(file):
            return folder
        return _resolve(slug or self.base_id(file, front), folder)

    def _with_slash(self, path: str) -> str:
        if self.trailing_slash is None or path in ("/", _join(self.base_url, "")):
            return path
        bare = path.removesuffix("/")
        return f"{bare}/" if self.trailing_slash else bare


def split_number(name: str) -> tuple[str, int | None]:
    match = None if _DATE_OR_VERSION.match(name) else _NUMBER_PREFIX.match(name)
    return (match.group(2), int(match.group(1)[:18])) if match else (name, None)


def is_index(file: PurePosixPath) -> bool:
    """Return whether the file is a folder's index: ``index``, ``readme`` or the folder's name."""
    return file.stem.lower() in ("index", "_index", "readme", file.parent.name.lower())


def number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e15 else None


def _resolve(slug: str, folder: str) -> str:
    """Resolve a relative slug against a folder; ``..`` stops at the root."""
    path = posixpath.normpath(posixpath.join(folder, slug))
    is_folder = slug.endswith("/") or slug.rpartition("/")[2] in (".", "..")
    return "/" + path.lstrip("/") + ("/" if is_folder and path.strip("/") else "")


def _join(*parts: str) -> str:
    tail = "/" if parts[-1] and not parts[-1].strip("/") else ""
    return _SLASHES.sub("/", "/" + "/".join(filter(None, parts)) + tail)
