"""Docusaurus sites: the pages of one docs plugin instance, and their translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    Step,
    find_config,
    find_sidebars,
    in_order,
    read_config,
    read_sidebars,
    read_versions,
)
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.page_tree import PageSite, PageTree, Routes, read_tree
from bythebook.sources.slugs import slug

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
