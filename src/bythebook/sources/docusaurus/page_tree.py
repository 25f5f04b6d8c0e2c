"""Read one folder tree of Markdown pages by Docusaurus' rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bythebook.interfaces.source import Problem, Report, SourceFiles, SourcePage, UnreadableFile
from bythebook.sources.docusaurus.page_order import PageOrder
from bythebook.sources.docusaurus.routes import Routes
from bythebook.sources.docusaurus.sidebars import Sidebars
from bythebook.sources.files import matches_glob
from bythebook.sources.inventory import MARKDOWN, is_hidden
from bythebook.sources.markdown.frontmatter import front_text
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.pages import Imports, Labels, PageDraft, make_page, read_draft
from bythebook.sources.markdown.plain import looks_like_mdx, plain_options

# (pages in order, with their front matter) -> pages in the order of the site, with their labels
Arrange = Callable[[dict[PurePosixPath, Mapping[str, object]]], dict[PurePosixPath, Labels | None]]

_NO_SIDEBARS = Sidebars()
_ROOT = PurePosixPath()


@dataclass(frozen=True, slots=True)
class DocsSite:
    """Settings that all folder trees of a site share."""

    files: SourceFiles
    root: Path  # files outside are never read
    format: str  # "mdx", "md", "detect" or "guess": any Markdown
    parsing: ParseOptions
    exclude: tuple[str, ...]
    report: Report
    site_prefix: str = ""  # path from "@site/" to the root, if the root is not the site folder
    sidebars: Sidebars = _NO_SIDEBARS
    only: str | None = None  # name of the only file to read
    shown: tuple[str, ...] = ()  # names that begin with "_" and are read
    arrange: Arrange = dict.fromkeys
    values: Mapping[str, object] | None = None  # of {{ site.name }}; None: it stays


@dataclass(frozen=True, slots=True)
class PageTree:
    """Folder of pages: the docs, or a translation of them."""

    routes: Routes
    language: str | None
    folder: PurePosixPath = _ROOT  # relative to the root
    prefix: str = ""  # of the file names in the book
    within: PurePosixPath = _ROOT  # only pages below this subfolder are read


def read_tree(site: DocsSite, tree: PageTree) -> Iterator[SourcePage]:
    drafts = {draft.file: draft for draft in _drafts(site, tree)}

    def warn(file: str, line: int | None, reason: str) -> None:
        site.report(Problem(tree.prefix + file, line, reason))

    fronts = {file: draft.front for file, draft in drafts.items()}
    order = PageOrder(site.files, site.root / tree.folder, fronts, tree.routes, warn)
    imports = Imports(site.files, site.root, site.site_prefix)
    arranged = site.arrange({file: fronts[file] for file in order.ordered(site.sidebars)})
    for file, labels in arranged.items():
        yield _read_page(site, tree, drafts.pop(file), labels or order.labels(file), imports)


def _drafts(site: DocsSite, tree: PageTree) -> Iterator[PageDraft]:
    def refuse(file: str, reason: str) -> None:
        site.report(Problem(tree.prefix + file, None, reason, fatal=True))

    def wanted(path: PurePosixPath) -> bool:
        if site.only is not None:
            return str(path) == site.only
        return tree.within in path.parents and _is_page(path, site)

    for file in site.files.walk(site.root / tree.folder, wanted, refuse):
        name = tree.prefix + str(file)
        try:
            draft = read_draft(site.files, site.root, tree.folder / file, name)
        except UnreadableFile as error:
            site.report(Problem(name, error.line, error.reason, fatal=True))
            continue
        hidden = next((key for key in ("draft", "unlisted") if draft.front.get(key) is True), None)
        if hidden:
            kind = "a draft" if hidden == "draft" else hidden
            site.report(Problem(name, None, f"{kind}: left out of the book"))
        else:
            yield replace(draft, file=file)


def _is_page(path: PurePosixPath, site: DocsSite) -> bool:
    if path.suffix.lower() not in (MARKDOWN if site.format == "guess" else (".md", ".mdx")):
        return False
    named = PurePosixPath(*(part for part in path.parts if part not in site.shown))
    return not is_hidden(named) and not matches_glob(str(path), site.exclude)


def _read_page(
    site: DocsSite, tree: PageTree, draft: PageDraft, labels: Labels, imports: Imports
) -> SourcePage:
    parsing = replace(site.parsing, mdx=_is_mdx(site.format, draft), loose=site.format == "guess")
    if parsing.loose and not parsing.mdx:
        parsing = plain_options(parsing, draft.text, draft.front, site.values)
    document = imports.document(draft, (tree.folder / draft.file).parent, parsing)
    labels = replace(labels, language=tree.language)
    url = tree.routes.url(draft.file, draft.front)
    return make_page(draft, document, url, tree.routes.base_id(draft.file, draft.front), labels)


def _is_mdx(site_format: str, draft: PageDraft) -> bool:
    own = draft.front.get("mdx")
    given = front_text(own, "format") if isinstance(own, dict) else None
    chosen = given or site_format
    if chosen == "guess":
        return draft.file.suffix == ".mdx" or looks_like_mdx(draft.text)
    return draft.file.suffix == ".mdx" if chosen == "detect" else chosen != "md"
