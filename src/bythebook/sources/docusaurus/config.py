"""Reader of the settings in ``docusaurus.config.*`` that affect URLs and page order.

The file is never executed. Only plain literals are read; for computed values, Docusaurus' default
or the author's own options apply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bythebook.interfaces.source import SITE_URL, SourceFiles, UnreadableFile
from bythebook.sources.files import read_json
from bythebook.sources.js_literals import UNKNOWN, read_value

NAMES = tuple(f"docusaurus.config.{ending}" for ending in ("js", "ts", "mjs", "cjs", "mts", "cts"))

_OBJECT = re.compile(r"(?:=|\bdefault|\breturn|\()\s*(?=\{)")
_MAX_CHARACTERS = 256 * 1024
_TELLTALE = ("url", "baseUrl", "presets", "plugins", "title", "themeConfig")
_DOCS_PLUGINS = ("@docusaurus/plugin-content-docs", "content-docs")
_CLASSIC = ("classic", "@docusaurus/preset-classic")


@dataclass(frozen=True, slots=True)
class DocsPlugin:
    """Options of one docs plugin instance: one set of pages of a site."""

    id: str = "default"
    path: str = "docs"
    route_base_path: str = "docs"
    exclude: tuple[str, ...] = ()
    strip_numbers: bool = True
    last_version: str | None = None
    versions: Mapping[str, object] | None = None
    sidebar_path: object = None  # a string, False, or UNKNOWN if it is computed

    @property
    def prefix(self) -> str:
        """Return what the names of its files and folders beside the docs start with."""
        return "" if self.id == "default" else f"{self.id}_"


@dataclass(frozen=True, slots=True)
class SiteConfig:
    root: Path
    url: str | None = None
    base_url: str = "/"
    trailing_slash: bool | None = None
    default_locale: str | None = None
    locales: tuple[str, ...] | None = None
    format: str = "mdx"
    maths: bool = False
    comment_ids: bool = False
    keep_case: bool = False  # of anchors
    plugins: tuple[DocsPlugin, ...] = (DocsPlugin(),)
    unread: tuple[str, ...] = ()  # settings that are present but not plain literals


def find_config(files: SourceFiles, folder: Path, *, levels: int = 3) -> Path | None:
    """Return the nearest configuration file in ``folder`` or above, or None."""
    candidates = (above / name for above in (folder, *folder.parents[:levels]) for name in NAMES)
    return next(filter(files.has_file, candidates), None)


def read_config(files: SourceFiles, file: Path) -> SiteConfig:
    try:
        source = files.read(file.parent, PurePosixPath(file.name))
    except UnreadableFile as error:
        return SiteConfig(file.parent, unread=(f"{file.name} ({error.reason})",))
    values = _config_object(source)
    i18n = _mapping(values.get("i18n"))
    markdown = _mapping(values.get("markdown"))
    locales = i18n.get("locales")
    unread = [name for name in ("url", "baseUrl", "trailingSlash") if values.get(name) is UNKNOWN]
    url = _text(values.get("url"))
    if url is not None and not SITE_URL.fullmatch(url):
        url, unread = None, [*unread, "url (it should look like https://example.org)"]
    trailing = values.get("trailingSlash")
    return SiteConfig(
        root=file.parent,
        url=url,
        base_url=_text(values.get("baseUrl")) or "/",
        trailing_slash=trailing if isinstance(trailing, bool) else None,
        default_locale=_text(i18n.get("defaultLocale")),
        locales=_texts(locales) if isinstance(locales, list) else None,
        format=_text(markdown.get("format")) or "mdx",
        maths="remark-math" in source or "remarkMath" in source,
        comment_ids=_mapping(markdown.get("mdx1Compat")).get("comments") is False,
        keep_case=_mapping(markdown.get("anchors")).get("maintainCase") is True,
        plugins=tuple(_docs_plugins(values)) or (DocsPlugin(),),
        unread=tuple(unread),
    )


def _config_object(source: str) -> Mapping[str, object]:
    """Return the object in the file that looks most like a site configuration."""
    best: Mapping[str, object] = {}
    offset = 0
    source = source[:_MAX_CHARACTERS]
    while (match := _OBJECT.search(source, offset)) is not None:
        value, after = read_value(source, match.end())
        offset = match.end()
        if isinstance(value, dict):
            offset = max(offset, after)
            if _likeness(value) > _likeness(best):
                best = value
    return best


def _likeness(values: Mapping[str, object]) -> int:
    return sum(name in values for name in _TELLTALE)


def _docs_plugins(values: Mapping[str, object]) -> list[DocsPlugin]:
    plugins: list[DocsPlugin] = []
    for name, options in _entries(values.get("presets")):
        docs = options.get("docs", {})
        if name in _CLASSIC and docs is not False:
            plugins.append(_docs_plugin(_mapping(docs)))
    for name, options in _entries(values.get("plugins")):
        if name in _DOCS_PLUGINS:
            plugins.append(_docs_plugin(options))
    return plugins


def _entries(value: object) -> list[tuple[str, Mapping[str, object]]]:
    """Return name and options of presets or plugins: ``'name'`` or ``['name', options]``."""
    match: list[tuple[str, Mapping[str, object]]] = []
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, str):
            match.append((entry, {}))
        elif isinstance(entry, list) and entry and isinstance(entry[0], str):
            match.append((entry[0], _mapping(entry[1] if len(entry) > 1 else {})))
    return match


def _docs_plugin(options: Mapping[str, object]) -> DocsPlugin:
    route = options.get("routeBasePath")
    exclude = options.get("exclude")
    return DocsPlugin(
        id=_text(options.get("id")) or "default",
        path=(_text(options.get("path")) or "docs").removeprefix("./").rstrip("/"),
        route_base_path=route if isinstance(route, str) else "docs",
        exclude=_texts(exclude) if isinstance(exclude, list) else (),
        strip_numbers=options.get("numberPrefixParser") is not False,
        last_version=_text(options.get("lastVersion")),
        versions=_mapping(options.get("versions")),
        sidebar_path=options.get("sidebarPath"),
    )


def read_versions(files: SourceFiles, root: Path, plugin: DocsPlugin) -> tuple[str, ...]:
    """Return the names in ``versions.json``, newest first; empty for an unversioned site."""
    try:
        value = read_json(files.read(root, PurePosixPath(f"{plugin.prefix}versions.json")))
    except (UnreadableFile, ValueError, RecursionError):
        return ()
    return _texts(value) if isinstance(value, list) else ()


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(values: list[object]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))
