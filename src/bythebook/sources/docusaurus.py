"""Docusaurus sites: the pages of one docs plugin instance, and their translations.

``docusaurus.config.*`` and ``sidebars.*`` are never executed. Only plain literals are read; for
computed values, Docusaurus' default or the author's own options apply. Pages that the readable
part of the sidebars does not name come last, in file order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from bythebook.errors import SourceError
from bythebook.interfaces.source import (
    SITE_URL,
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.files import read_json
from bythebook.sources.js_literals import UNKNOWN, read_objects
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.page_tree import PageSite, PageTree, Routes, read_tree
from bythebook.sources.slugs import slug

_SCRIPTS = ("js", "ts", "mjs", "cjs", "mts", "cts")
_CONFIGS = tuple(f"docusaurus.config.{ending}" for ending in _SCRIPTS)
_SIDEBARS = tuple(f"sidebars.{ending}" for ending in (*_SCRIPTS, "json"))

_MAX_CHARACTERS = 256 * 1024
_TELLTALE = ("url", "baseUrl", "presets", "plugins", "title", "themeConfig")
_DOCS_PLUGINS = ("@docusaurus/plugin-content-docs", "content-docs")
_CLASSIC = ("classic", "@docusaurus/preset-classic")
_ROOT = PurePosixPath()


class DocusaurusSource:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return files.has_folder(path) and find_config(files, path) is not None

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        file = find_config(files, path)
        if file is None:
            raise SourceError(
                f"There is no docusaurus.config file in {path.name!r} or above it.",
                hint="Name the folder of the site, or its docs folder.",
            )
        config = read_config(files, file)
        files.widen(config.root)
        docs = _locate_docs(files, config, path)
        if not files.has_folder(config.root / docs.folder):
            raise SourceError(
                f"The site has no folder {str(docs.folder)!r}.", hint="Name the docs folder itself."
            )
        main = PageTree(docs.routes(options), options.locale or config.default_locale, docs.folder)
        trees = [main]
        try:
            trees += docs.translations(main)
        except UnreadableFile as error:
            report(Problem("i18n", None, error.reason, fatal=True))
        steps = docs.sidebars(report)
        site = PageSite(
            files=files,
            root=config.root,
            format=options.markdown_format or config.format,
            parsing=ParseOptions(
                maths="on" if config.maths else "off",
                comment_ids=config.comment_ids,
                slug=partial(slug, keep_case=config.keep_case),
            ),
            exclude=(*docs.plugin.exclude, *options.exclude),
            report=report,
            arrange=lambda ids, _fronts: dict.fromkeys(in_order(steps, ids)),
        )
        for name in config.unread:
            reason = f"{name} is not a plain literal or not valid, and was not read"
            report(Problem("docusaurus.config", None, reason))
        for tree in trees:
            yield from read_tree(site, replace(tree, within=docs.within))


def _locate_docs(files: SourceFiles, config: SiteConfig, path: Path) -> _Docs:
    """Find the plugin whose pages, or a version of them, are at a path of the site."""
    versions = partial(read_versions, files, config.root)
    if path == config.root:
        plugin = config.plugins[0]
        return _Docs(files, config, plugin, PurePosixPath(plugin.path), versions(plugin))
    folder = PurePosixPath(path.relative_to(config.root))
    above = tuple(map(str, (folder, *folder.parents)))
    owners = (
        plugin
        for plugin in config.plugins
        if plugin.path in above or folder.parts[0] == f"{plugin.prefix}versioned_docs"
    )
    plugin = next(owners, config.plugins[0])
    docs = _Docs(files, config, plugin, folder, versions(plugin))
    if plugin.path not in above[1:]:
        return docs
    return replace(docs, folder=PurePosixPath(plugin.path), within=folder.relative_to(plugin.path))


@dataclass(frozen=True, slots=True)
class _Docs:
    """Pages of one plugin, or of one version of them."""

    files: SourceFiles
    config: SiteConfig
    plugin: DocsPlugin
    folder: PurePosixPath  # of the pages, below the site
    versions: tuple[str, ...]
    within: PurePosixPath = _ROOT  # subfolder that is read

    @property
    def is_version(self) -> bool:
        return self.folder.name in {f"version-{version}" for version in self.versions}

    def routes(self, options: SiteOptions) -> Routes:
        config, route, trailing = self.config, options.route_base_path, options.trailing_slash
        return Routes(
            origin=(config.url if options.url is None else options.url) or "",
            base_url=options.base_url or config.base_url,
            route_base_path=self.plugin.route_base_path if route is None else route,
            version_path=self._version_path(),
            trailing_slash=config.trailing_slash if trailing is None else trailing,
            strip_numbers=self.plugin.strip_numbers,
        )

    def _version_path(self) -> str:
        if not self.versions:
            return ""
        name = self.folder.name.removeprefix("version-") if self.is_version else "current"
        settings = (self.plugin.versions or {}).get(name)
        path = settings.get("path") if isinstance(settings, dict) else None
        if isinstance(path, str):
            return path
        if name == (self.plugin.last_version or self.versions[0]):
            return ""
        return "next" if name == "current" else name

    def sidebars(self, report: Report) -> tuple[Step, ...]:
        version = self.folder.name if self.is_version else ""
        file = find_sidebars(self.files, self.config.root, self.plugin, version)
        steps, note = read_sidebars(self.files, self.config.root, file) if file else ((), "")
        if note:
            report(Problem(str(file), None, note))
        return steps

    def translations(self, main: PageTree) -> Iterator[PageTree]:
        """Yield the translated pages for each locale that the site builds."""
        translated = PurePosixPath("i18n")
        content = "docusaurus-plugin-content-docs"
        content += "" if self.plugin.id == "default" else f"-{self.plugin.id}"
        inner = self.folder.name if self.folder.name.startswith("version-") else "current"
        if not self.files.has_folder(self.config.root / translated):
            return
        for locale in self.files.names(self.config.root / translated):
            is_built = self.config.locales is None or locale in self.config.locales
            tree = translated / locale / content / inner
            is_other = locale != (main.language or "en")
            if is_other and is_built and self.files.has_folder(self.config.root / tree):
                base = f"{main.routes.base_url.rstrip('/')}/{locale}/"
                yield PageTree(replace(main.routes, base_url=base), locale, tree, f"i18n/{locale}/")


# --- configuration --------------------------------------------------------------------------------


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
    candidates = (above / name for above in (folder, *folder.parents[:levels]) for name in _CONFIGS)
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
    return max(read_objects(source[:_MAX_CHARACTERS]), key=_likeness, default={})


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


# --- sidebars -------------------------------------------------------------------------------------

Step = str | PurePosixPath  # a page's id, or a folder whose pages stand in file order


def find_sidebars(
    files: SourceFiles, root: Path, plugin: DocsPlugin, version: str
) -> PurePosixPath | None:
    """Return the sidebars file of a set of pages."""
    given = plugin.sidebar_path
    names: Sequence[str] = _SIDEBARS  # require.resolve('./sidebars.js') and the like
    if version:
        names = (f"{plugin.prefix}versioned_sidebars/{version}-sidebars.json",)
    elif isinstance(given, str):
        names = (given.removeprefix("./"),)
    elif given is None or given is False:  # Docusaurus autogenerates a sidebar, or shows none
        names = ()
    return next((PurePosixPath(name) for name in names if files.has_file(root / name)), None)


def read_sidebars(
    files: SourceFiles, root: Path, file: PurePosixPath
) -> tuple[tuple[Step, ...], str]:
    """Return the steps of the sidebars, and a note for the author about what is not read."""
    try:
        source = files.read(root, file)[:_MAX_CHARACTERS]
    except UnreadableFile as error:
        return (), f"{error.reason}; the pages stand in the order of their files"
    for sidebars in read_objects(source):
        if sidebars and all(isinstance(items, (list, dict)) for items in sidebars.values()):
            steps = list(_steps(list(sidebars.values())))
            partly = "not all of it is plain literals; pages that the rest does not name come last"
            known = tuple(step for step in steps if step is not None)
            return known, partly if None in steps else ""
    return (), "not a plain literal; the pages stand in the order of their files"


def _steps(item: object) -> Iterator[Step | None]:
    """Yield the pages of an item in order; None for a part that is not a plain literal."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for inner in item:
            yield from _steps(inner)
    elif isinstance(item, dict) and "type" in item:
        yield from _typed_steps(item)
    elif isinstance(item, dict):  # {'Label of a category': [items]}
        yield from _steps(list(item.values()))
    else:
        yield None


def _typed_steps(item: Mapping[str, object]) -> Iterator[Step | None]:
    match item:
        case {"type": "doc", "id": str(name)}:
            yield name
        case {"type": "autogenerated", "dirName": str(folder)}:
            yield PurePosixPath(folder)
        case {"type": "category", "items": items}:
            link = item.get("link")
            if isinstance(link, dict) and link.get("type") == "doc":
                yield from _typed_steps(link)
            yield from _steps(items)
        case {"type": "link" | "html" | "ref"}:  # does not affect the page order
            return
        case _:
            yield None


def in_order(steps: Sequence[Step], ids: Mapping[PurePosixPath, str]) -> list[PurePosixPath]:
    """Return the pages (file -> id, in file order) in the order of the sidebars."""
    files = {name: file for file, name in reversed(list(ids.items()))}
    chosen: dict[PurePosixPath, None] = {}
    for step in steps:
        if isinstance(step, PurePosixPath):
            chosen.update((file, None) for file in ids if step in file.parents)
        elif step in files:
            chosen.setdefault(files[step])
    return [*chosen, *(file for file in ids if file not in chosen)]
