"""Docusaurus sites: the pages of one docs plugin instance, and their translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from bythebook.errors import SourceError
from bythebook.interfaces.source import (
    Problem,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.docusaurus.config import (
    DocsPlugin,
    SiteConfig,
    find_config,
    read_config,
    read_versions,
)
from bythebook.sources.docusaurus.page_tree import DocsSite, PageTree, read_tree
from bythebook.sources.docusaurus.routes import Routes
from bythebook.sources.docusaurus.sidebars import Sidebars, find_sidebars, read_sidebars
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.slugs import slug


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
        plugin, folder, within = _locate_docs(config, path)
        if not files.has_folder(config.root / folder):
            raise SourceError(
                f"The site has no folder {str(folder)!r}.", hint="Name the docs folder itself."
            )
        routes = _routes(files, config, plugin, folder, options)
        locale = options.locale or config.default_locale
        trees = [PageTree(routes, locale, folder, within=within)]
        try:
            for tree in _translations(files, config, plugin, folder, routes, locale or "en"):
                trees.append(replace(tree, within=within))
        except UnreadableFile as error:
            report(Problem("i18n", None, error.reason, fatal=True))
        site = DocsSite(
            files=files,
            root=config.root,
            format=options.markdown_format or config.format,
            parsing=ParseOptions(
                maths="on" if config.maths else "off",
                comment_ids=config.comment_ids,
                slug=partial(slug, keep_case=config.keep_case),
            ),
            exclude=(*plugin.exclude, *options.exclude),
            report=report,
            sidebars=_sidebars(files, config.root, plugin, folder, report),
        )
        for name in config.unread:
            reason = f"{name} is not a plain literal or not valid, and was not read"
            report(Problem("docusaurus.config", None, reason))
        for tree in trees:
            yield from read_tree(site, tree)


def _locate_docs(config: SiteConfig, path: Path) -> tuple[DocsPlugin, PurePosixPath, PurePosixPath]:
    """Return the plugin of a path, its folder below the site, and the subfolder to read."""
    if path == config.root:
        plugin = config.plugins[0]
        return plugin, PurePosixPath(plugin.path), PurePosixPath()
    folder = PurePosixPath(path.relative_to(config.root))
    plugin = _plugin_of(config, folder)
    if plugin.path in map(str, folder.parents):
        return plugin, PurePosixPath(plugin.path), folder.relative_to(plugin.path)
    return plugin, folder, PurePosixPath()


def _plugin_of(config: SiteConfig, folder: PurePosixPath) -> DocsPlugin:
    """Return the plugin whose pages, or a version of them, are in this folder."""
    for plugin in config.plugins:
        is_inside = plugin.path in map(str, (folder, *folder.parents))
        if is_inside or folder.parts[0] == f"{plugin.prefix}versioned_docs":
            return plugin
    return config.plugins[0]


def _routes(
    files: SourceFiles,
    config: SiteConfig,
    plugin: DocsPlugin,
    folder: PurePosixPath,
    options: SiteOptions,
) -> Routes:
    route = options.route_base_path
    trailing = options.trailing_slash
    return Routes(
        origin=(config.url if options.url is None else options.url) or "",
        base_url=options.base_url or config.base_url,
        route_base_path=plugin.route_base_path if route is None else route,
        version_path=_version_path(files, config.root, plugin, folder),
        trailing_slash=config.trailing_slash if trailing is None else trailing,
        strip_numbers=plugin.strip_numbers,
    )


def _sidebars(
    files: SourceFiles, root: Path, plugin: DocsPlugin, folder: PurePosixPath, report: Report
) -> Sidebars:
    versions = _folders(read_versions(files, root, plugin))
    version = folder.name if folder.name in versions else ""
    file = find_sidebars(files, root, plugin.sidebar_path, version=version, prefix=plugin.prefix)
    sidebars = Sidebars() if file is None else read_sidebars(files, root, file)
    if sidebars.note:
        report(Problem(str(file), None, sidebars.note))
    return sidebars


def _version_path(files: SourceFiles, root: Path, plugin: DocsPlugin, folder: PurePosixPath) -> str:
    versions = read_versions(files, root, plugin)
    if not versions:
        return ""
    name = folder.name.removeprefix("version-") if folder.name in _folders(versions) else "current"
    settings = (plugin.versions or {}).get(name)
    path = settings.get("path") if isinstance(settings, dict) else None
    if isinstance(path, str):
        return path
    if name == (plugin.last_version or versions[0]):
        return ""
    return "next" if name == "current" else name


def _folders(versions: tuple[str, ...]) -> set[str]:
    return {f"version-{version}" for version in versions}


def _translations(
    files: SourceFiles,
    config: SiteConfig,
    plugin: DocsPlugin,
    folder: PurePosixPath,
    routes: Routes,
    default_locale: str,
) -> Iterator[PageTree]:
    translated = PurePosixPath("i18n")
    content = "docusaurus-plugin-content-docs"
    content += "" if plugin.id == "default" else f"-{plugin.id}"
    inner = folder.name if folder.name.startswith("version-") else "current"
    if not files.has_folder(config.root / translated):
        return
    for locale in files.names(config.root / translated):
        is_built = config.locales is None or locale in config.locales
        tree = translated / locale / content / inner
        if locale != default_locale and is_built and files.has_folder(config.root / tree):
            moved = replace(routes, base_url=f"{routes.base_url.rstrip('/')}/{locale}/")
            yield PageTree(moved, locale, tree, f"i18n/{locale}/")
