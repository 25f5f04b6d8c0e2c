"""Plain Markdown or MDX: a folder or a file, with URLs and order as Docusaurus would give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bythebook.interfaces.source import Report, SiteOptions, SourceFiles, SourcePage
from bythebook.sources.docusaurus.page_tree import DocsSite, PageTree, read_tree
from bythebook.sources.docusaurus.routes import Routes
from bythebook.sources.markdown.mdx import ParseOptions


class MarkdownFolder:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return files.has_folder(path) or (path.suffix in (".md", ".mdx") and files.has_file(path))

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        root = path if files.has_folder(path) else path.parent
        site = DocsSite(
            files=files,
            root=root,
            format=options.markdown_format or "guess",
            parsing=ParseOptions(maths="guess"),
            exclude=options.exclude,
            report=report,
            site_prefix=f"{root.name}/",
            only=None if root == path else path.name,
        )
        routes = Routes(
            origin=options.url or "",
            base_url=options.base_url or "/",
            route_base_path="docs" if options.route_base_path is None else options.route_base_path,
            trailing_slash=options.trailing_slash,
        )
        return read_tree(site, PageTree(routes=routes, language=options.locale))
