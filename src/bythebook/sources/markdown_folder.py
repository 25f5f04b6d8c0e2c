"""Plain Markdown or MDX: a folder or a file, with URLs and order as its site gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bythebook.interfaces.source import Report, SiteOptions, SourceFiles, SourcePage
from bythebook.sources.docusaurus.page_tree import DocsSite, PageTree, read_tree
from bythebook.sources.inventory import MARKDOWN
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown_sites import find_site


class MarkdownFolder:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return files.has_folder(path) or (path.suffix.lower() in MARKDOWN and files.has_file(path))

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        found = find_site(files, path if files.has_folder(path) else path.parent, options)
        site = DocsSite(
            files=files,
            root=found.root,
            format=options.markdown_format or "guess",
            parsing=ParseOptions(maths="guess"),
            exclude=(*found.exclude, *options.exclude),
            report=report,
            site_prefix=f"{found.root.name}/",
            only=None if files.has_folder(path) else path.name,
            shown=("_index.md", *(f"_{name}" for name in found.names("collections"))),
            arrange=found.arrange,
            values=found.values,
        )
        return read_tree(site, PageTree(routes=found.routes, language=options.locale))
