"""Read a folder of sources into a book: pages in reading order, and the problems found.

The folder is a Docusaurus site or its docs folder, an mdBook, or any folder of Markdown files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from bythebook.chunking.pages import (
    Imports,
    Labels,
    Page,
    PageDraft,
    looks_like_mdx,
    make_page,
    read_draft,
)
from bythebook.errors import SourceError
from bythebook.sources.docusaurus.config import (
    DocsPlugin,
    SiteConfig,
    find_config,
    read_config,
    read_versions,
)
from bythebook.sources.docusaurus.page_order import PageOrder
from bythebook.sources.docusaurus.routes import Routes, front_text
from bythebook.sources.docusaurus.sidebars import Sidebars, find_sidebars, read_sidebars
from bythebook.sources.files import FileProbe, Files, UnreadableFile
from bythebook.sources.markdown.frontmatter import UnreadableFrontMatter
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.mdbook import MdBook, find_mdbook, mdbook_slug, with_includes
from bythebook.sources.slugs import slug
from bythebook.types import Passage

__all__ = ["Page", "ParsedBook", "Problem", "SiteOptions", "read_book"]

OnPage = Callable[[Page], None]


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """Site settings given by the author. None: read from the site, or use the default."""

    url: str | None = None
    base_url: str | None = None
    route_base_path: str | None = None
    trailing_slash: bool | None = None
    locale: str | None = None
    exclude: tuple[str, ...] = ()
    markdown_format: str | None = None


_DEFAULTS = SiteOptions()
_NO_SIDEBARS = Sidebars()
_WHOLE = PurePosixPath()


@dataclass(frozen=True, slots=True)
class Problem:
    """File that could not be read, or a remark for its author."""

    file: str
    line: int | None
    reason: str
    fatal: bool  # the file was skipped


@dataclass(frozen=True, slots=True)
class ParsedBook:
    pages: tuple[Page, ...]
    problems: tuple[Problem, ...]
    seen: Mapping[FileProbe, str] = field(default_factory=dict)  # every file access and result

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(passage for page in self.pages for passage in page.passages)

    @property
    def coverage(self) -> float:
        """Return the share of visible words that are in some passage."""
        visible = sum(page.visible_words for page in self.pages)
        return sum(page.covered_words for page in self.pages) / visible if visible else 1.0


@dataclass(frozen=True, slots=True)
class _Tree:
    """Folder of pages: the docs, or a translation of them."""

    folder: PurePosixPath  # relative to the root
    prefix: str  # of the file names in the book
    routes: Routes
    language: str | None
    within: PurePosixPath = _WHOLE  # only pages below this subfolder are read


@dataclass(slots=True)
class _Site:
    """Configuration that is determined before the first page is read."""

    files: Files
    root: Path  # files outside are never read
    trees: list[_Tree]
    format: str
    reading: ParseOptions
    exclude: tuple[str, ...]
    site_prefix: str = ""
    sidebars: Sidebars = _NO_SIDEBARS
    problems: list[Problem] = field(default_factory=list)

    def warn(self, file: str, line: int | None, reason: str, *, fatal: bool = False) -> None:
        self.problems.append(Problem(file, line, reason, fatal))


def read_book(
    docs: Path, options: SiteOptions = _DEFAULTS, *, on_page: OnPage | None = None
) -> ParsedBook:
    """Read every page. An unreadable file becomes a problem; the others are still read."""
    files = Files()
    if not files.has_folder(docs):
        raise SourceError(
            f"There is no folder {docs.name!r}.",
            hint="Name the folder that holds the book's pages.",
        )
    mdbook = find_mdbook(files, docs.resolve())
    if mdbook is None:
        site = _locate(files, docs.resolve(), options)
    else:
        site = _mdbook_site(files, mdbook, options)
    pages: list[Page] = []
    for page in _read_trees(site) if mdbook is None else _read_mdbook(site, mdbook, options):
        pages.append(page)
        if on_page is not None:
            on_page(page)
    _name_doubles(site, pages)
    if not pages and not any(problem.fatal for problem in site.problems):
        raise SourceError(
            f"The folder {docs.name!r} holds no pages.",
            hint="Pages are .md and .mdx files whose names do not start with an underscore.",
        )
    return ParsedBook(tuple(pages), tuple(site.problems), files.seen)


# --- locating the sources -------------------------------------------------------------------------


def _locate(files: Files, docs: Path, options: SiteOptions) -> _Site:
    file = find_config(files, docs)
    if file is None:
        return _plain_folder(files, docs, options)
    config = read_config(files, file)
    within = _WHOLE
    if file.parent == docs:
        plugin = config.plugins[0]
        folder = PurePosixPath(plugin.path)
    else:
        folder = PurePosixPath(docs.relative_to(config.root))
        plugin = _plugin_of(config, folder)
        if plugin.path in map(str, folder.parents):
            within = folder.relative_to(plugin.path)
            folder = PurePosixPath(plugin.path)
    if not files.has_folder(config.root / folder):
        raise SourceError(
            f"The site has no folder {str(folder)!r}.", hint="Name the docs folder itself."
        )
    site = _docusaurus_site(files, config, plugin, folder, options)
    site.trees = [replace(tree, within=within) for tree in site.trees]
    return site


def _plugin_of(config: SiteConfig, folder: PurePosixPath) -> DocsPlugin:
    """Return the plugin whose pages, or a version of them, are in this folder."""
    for plugin in config.plugins:
        versioned = "versioned_docs" if plugin.id == "default" else f"{plugin.id}_versioned_docs"
        is_inside = plugin.path in map(str, (folder, *folder.parents))
        if is_inside or folder.parts[0] == versioned:
            return plugin
    return config.plugins[0]


def _plain_folder(files: Files, docs: Path, options: SiteOptions) -> _Site:
    routes = Routes(
        origin=options.url or "",
        base_url=options.base_url or "/",
        route_base_path="docs" if options.route_base_path is None else options.route_base_path,
        trailing_slash=options.trailing_slash,
    )
    return _Site(
        files=files,
        root=docs,
        trees=[_Tree(PurePosixPath(), "", routes, options.locale)],
        format=options.markdown_format or "guess",
        reading=ParseOptions(maths="guess"),
        exclude=options.exclude,
        site_prefix=f"{docs.name}/",
    )


def _docusaurus_site(
    files: Files,
    config: SiteConfig,
    plugin: DocsPlugin,
    folder: PurePosixPath,
    options: SiteOptions,
) -> _Site:
    route = options.route_base_path
    trailing = options.trailing_slash
    routes = Routes(
        origin=(config.url if options.url is None else options.url) or "",
        base_url=options.base_url or config.base_url,
        route_base_path=plugin.route_base_path if route is None else route,
        version_path=_version_path(files, config.root, plugin, folder),
        trailing_slash=config.trailing_slash if trailing is None else trailing,
        strip_numbers=plugin.strip_numbers,
    )
    locale = options.locale or config.default_locale
    site = _Site(
        files=files,
        root=config.root,
        trees=[_Tree(folder, "", routes, locale)],
        format=options.markdown_format or config.format,
        reading=ParseOptions(
            maths="on" if config.maths else "off",
            comment_ids=config.comment_ids,
            slug=partial(slug, keep_case=config.keep_case),
        ),
        exclude=(*plugin.exclude, *options.exclude),
    )
    try:
        site.trees.extend(_translations(files, config, plugin, folder, routes, locale or "en"))
    except UnreadableFile as error:
        site.warn("i18n", None, error.reason, fatal=True)
    _add_sidebars(site, plugin, folder)
    for name in config.unread:
        site.warn("docusaurus.config", None, f"{name} is not a plain literal and was not read")
    return site


def _add_sidebars(site: _Site, plugin: DocsPlugin, folder: PurePosixPath) -> None:
    versions = _folders(read_versions(site.files, site.root, plugin))
    version = folder.name if folder.name in versions else ""
    file = find_sidebars(
        site.files, site.root, plugin.sidebar_path, version=version, plugin=plugin.id
    )
    if file is not None:
        site.sidebars = read_sidebars(site.files, site.root, file)
        if site.sidebars.note:
            site.warn(str(file), None, site.sidebars.note)


def _version_path(files: Files, root: Path, plugin: DocsPlugin, folder: PurePosixPath) -> str:
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
    files: Files,
    config: SiteConfig,
    plugin: DocsPlugin,
    folder: PurePosixPath,
    routes: Routes,
    locale: str,
) -> Iterator[_Tree]:
    translated = PurePosixPath("i18n")
    name = "docusaurus-plugin-content-docs"
    name += "" if plugin.id == "default" else f"-{plugin.id}"
    inner = folder.name if folder.name.startswith("version-") else "current"
    if not files.has_folder(config.root / translated):
        return
    for entry in files.entries(config.root / translated):
        is_built = config.locales is None or entry.name in config.locales
        tree = translated / entry.name / name / inner
        if entry.name != locale and is_built and files.has_folder(config.root / tree):
            base_url = f"{routes.base_url.rstrip('/')}/{entry.name}/"
            moved = replace(routes, base_url=base_url)
            yield _Tree(tree, f"i18n/{entry.name}/", moved, entry.name)


# --- mdBook ---------------------------------------------------------------------------------------


def _mdbook_site(files: Files, book: MdBook, options: SiteOptions) -> _Site:
    reading = ParseOptions(mdx=False, maths="guess", slug=mdbook_slug)
    return _Site(
        files=files,
        root=book.folder,
        trees=[],
        format="md",
        reading=reading,
        exclude=options.exclude,
    )


def _read_mdbook(site: _Site, book: MdBook, options: SiteOptions) -> Iterator[Page]:
    imports = Imports(site.files, site.root)
    for chapter in book.chapters(site.files):
        name = str(chapter.file)
        if any(_glob(pattern).match(name) for pattern in site.exclude):
            continue
        try:
            draft = read_draft(site.files, site.root, chapter.file, name)
        except (UnreadableFile, UnreadableFrontMatter) as error:
            site.warn(name, error.line, error.reason, fatal=True)
            continue
        text = with_includes(draft.text, chapter.file.parent, _reader(site.files, site.root))
        draft = replace(draft, file=chapter.file, text=text)
        document = imports.document(draft, chapter.file.parent, site.reading)
        for remark in document.remarks:
            site.warn(name, remark.line, remark.text)
        labels = Labels(
            module=chapter.part or chapter.above,
            chapter=chapter.above,
            language=options.locale or book.language,
        )
        url = book.url(chapter.file, options.url or "", options.base_url)
        yield make_page(draft, document, url, chapter.title, labels)


def _reader(files: Files, root: Path) -> Callable[[PurePosixPath], str | None]:
    def read(file: PurePosixPath) -> str | None:
        try:
            return files.read(root, file)
        except UnreadableFile:
            return None

    return read


# --- reading --------------------------------------------------------------------------------------


def _read_trees(site: _Site) -> Iterator[Page]:
    for tree in site.trees:
        yield from _read_tree(site, tree)


def _read_tree(site: _Site, tree: _Tree) -> Iterator[Page]:
    drafts = {draft.file: draft for draft in _drafts(site, tree)}

    def warn(file: str, line: int | None, reason: str) -> None:
        site.warn(tree.prefix + file, line, reason)

    fronts = {file: draft.front for file, draft in drafts.items()}
    shelf = PageOrder(site.files, site.root / tree.folder, fronts, tree.routes, warn)
    imports = Imports(site.files, site.root, site.site_prefix)
    for file in shelf.ordered(site.sidebars):
        draft = drafts.pop(file)
        yield _read_page(site, tree, draft, shelf, imports)


def _drafts(site: _Site, tree: _Tree) -> Iterator[PageDraft]:
    root = site.root / tree.folder

    def refuse(file: str, reason: str) -> None:
        site.warn(tree.prefix + file, None, reason, fatal=True)

    def wanted(path: PurePosixPath) -> bool:
        return tree.within in path.parents and _is_page(path, site.exclude)

    for file in site.files.walk(root, wanted, refuse):
        name = tree.prefix + str(file)
        try:
            draft = read_draft(site.files, site.root, tree.folder / file, name)
        except (UnreadableFile, UnreadableFrontMatter) as error:
            site.warn(name, error.line, error.reason, fatal=True)
            continue
        if draft.front.get("draft") is True or draft.front.get("unlisted") is True:
            kind = "a draft" if draft.front.get("draft") is True else "unlisted"
            site.warn(name, None, f"{kind}: left out of the book")
            continue
        yield replace(draft, file=file)


def _is_page(path: PurePosixPath, exclude: tuple[str, ...]) -> bool:
    if path.suffix not in (".md", ".mdx"):
        return False
    if any(part.startswith(("_", ".")) or part == "node_modules" for part in path.parts):
        return False
    return not any(_glob(pattern).match(str(path)) for pattern in exclude)


def _read_page(
    site: _Site, tree: _Tree, draft: PageDraft, shelf: PageOrder, imports: Imports
) -> Page:
    reading = replace(site.reading, mdx=_is_mdx(site.format, draft), loose=site.format == "guess")
    folder = (tree.folder / draft.file).parent
    document = imports.document(draft, folder, reading)
    for remark in document.remarks:
        site.warn(draft.name, remark.line, remark.text)
    folders = [parent for parent in reversed(draft.file.parents) if parent.parts]
    labels = Labels(
        module=shelf.label(folders[0]) if folders else None,
        chapter=shelf.label(folders[1]) if len(folders) > 1 else None,
        language=tree.language,
    )
    url = tree.routes.url(draft.file, draft.front)
    return make_page(draft, document, url, tree.routes.base_id(draft.file, draft.front), labels)


def _is_mdx(site_format: str, draft: PageDraft) -> bool:
    own = draft.front.get("mdx")
    given = front_text(own, "format") if isinstance(own, dict) else None
    chosen = given or site_format
    if chosen == "guess":
        return draft.file.suffix == ".mdx" or looks_like_mdx(draft.text)
    return draft.file.suffix == ".mdx" if chosen == "detect" else chosen != "md"


def _name_doubles(site: _Site, pages: list[Page]) -> None:
    first: dict[str, str] = {}
    for page in pages:
        other = first.setdefault(page.url, page.file)
        if other != page.file:
            site.warn(page.file, None, f"has the same URL as {other}: {page.url}")


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob with ``**``, ``*``, ``?`` and ``{a,b}``, as in Docusaurus."""
    parts: list[str] = []
    for sign in re.findall(r"\*\*/|\*+|\?|\{[^{}]*\}|.", pattern.removeprefix("./"), re.S):
        if sign == "**/":
            parts.append("(?:[^/]+/)*")
        elif sign == "**":
            parts.append(".*")
        elif sign[0] == "*":
            parts.append("[^/]*")
        elif sign == "?":
            parts.append("[^/]")
        elif sign[0] == "{" and len(sign) > 1:
            choices = "|".join(re.escape(choice) for choice in sign[1:-1].split(","))
            parts.append(f"(?:{choices})")
        else:
            parts.append(re.escape(sign))
    return re.compile("".join(parts) + r"\Z", re.S)
