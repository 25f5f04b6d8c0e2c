"""Read a folder tree of Markdown pages, with the order, labels and URLs that Docusaurus gives."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bythebook.interfaces.source import Problem, Report, SourceFiles, SourcePage, UnreadableFile
from bythebook.sources.files import matches_glob, read_json
from bythebook.sources.inventory import MARKDOWN, is_hidden
from bythebook.sources.markdown.frontmatter import front_text, read_yaml
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.pages import Imports, Labels, PageDraft, make_page, read_draft
from bythebook.sources.markdown.plain import looks_like_mdx, plain_options

CATEGORY_FILES = ("_category_.json", "_category_.yml", "_category_.yaml")

Fronts = Mapping[PurePosixPath, Mapping[str, object]]  # files with their front matter
# (files with their ids, front matter) -> files in the order of the site, with their labels
Arrange = Callable[[Mapping[PurePosixPath, str], Fronts], Mapping[PurePosixPath, Labels | None]]

_ROOT = PurePosixPath()
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_NUMBER_PREFIX = re.compile(r"(\d+)\s*[-_.]+\s*([^-_.\s].*)\Z", re.ASCII)
_SLASHES = re.compile(r"/{2,}")


@dataclass(frozen=True, slots=True)
class PageSite:
    """Settings that all folder trees of a site share."""

    files: SourceFiles
    root: Path  # files outside are never read
    format: str  # "mdx", "md", "detect" or "guess": any Markdown
    parsing: ParseOptions
    exclude: tuple[str, ...]
    report: Report
    site_prefix: str = ""  # path from "@site/" to the root, if the root is not the site folder
    only: str | None = None  # name of the only file to read
    shown: tuple[str, ...] = ()  # names that begin with "_" and are read
    arrange: Arrange = lambda ids, _fronts: dict.fromkeys(ids)
    values: Mapping[str, object] | None = None  # of {{ site.name }}; None: it stays


@dataclass(frozen=True, slots=True)
class PageTree:
    """Folder of pages: the docs, or a translation of them."""

    routes: Routes
    language: str | None
    folder: PurePosixPath = _ROOT  # relative to the root
    prefix: str = ""  # of the file names in the book
    within: PurePosixPath = _ROOT  # only pages below this subfolder are read


def read_tree(site: PageSite, tree: PageTree) -> Iterator[SourcePage]:
    drafts = {draft.file: draft for draft in _drafts(site, tree)}
    fronts = {file: draft.front for file, draft in drafts.items()}
    categories = dict(_categories(site, tree, fronts))
    indexes = {file.parent: fronts[file] for file in sorted(fronts, reverse=True) if is_index(file)}
    order = _PageOrder(fronts, tree.routes, categories, indexes)
    imports = Imports(site.files, site.root, site.site_prefix)
    for file, labels in site.arrange(order.ids(), fronts).items():
        yield _read_page(site, tree, drafts.pop(file), labels or order.labels(file), imports)


def _drafts(site: PageSite, tree: PageTree) -> Iterator[PageDraft]:
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


def _is_page(path: PurePosixPath, site: PageSite) -> bool:
    if path.suffix.lower() not in (MARKDOWN if site.format == "guess" else (".md", ".mdx")):
        return False
    named = PurePosixPath(*(part for part in path.parts if part not in site.shown))
    return not is_hidden(named) and not matches_glob(str(path), site.exclude)


def _read_page(
    site: PageSite, tree: PageTree, draft: PageDraft, labels: Labels, imports: Imports
) -> SourcePage:
    parsing = replace(site.parsing, mdx=_is_mdx(site.format, draft), loose=site.format == "guess")
    if parsing.loose and not parsing.mdx:
        parsing = plain_options(parsing, draft.text, draft.front, site.values)
    document = imports.document(draft, (tree.folder / draft.file).parent, parsing)
    labels = replace(labels, language=tree.language)
    url = tree.routes.url(draft.file, draft.front)
    page = make_page(draft, document, url, tree.routes.base_id(draft.file, draft.front), labels)
    return replace(page, base=tree.routes.origin.rstrip("/") + tree.routes.base_url)


def _is_mdx(site_format: str, draft: PageDraft) -> bool:
    own = draft.front.get("mdx")
    given = front_text(own, "format") if isinstance(own, dict) else None
    chosen = given or site_format
    if chosen == "guess":
        return draft.file.suffix == ".mdx" or looks_like_mdx(draft.text)
    return draft.file.suffix == ".mdx" if chosen == "detect" else chosen != "md"


def _categories(
    site: PageSite, tree: PageTree, fronts: Fronts
) -> Iterator[tuple[PurePosixPath, Mapping[str, object]]]:
    """Yield each folder with its ``_category_.json`` or ``.yml``."""
    for folder in sorted({parent for file in fronts for parent in file.parents if parent.parts}):
        for file in (folder / name for name in CATEGORY_FILES):
            if not site.files.has_file(site.root / tree.folder / file):
                continue
            line, reason = None, "not readable as JSON"
            try:
                text = site.files.read(site.root / tree.folder, file)
                value = read_json(text) if file.suffix == ".json" else read_yaml(text)
                yield folder, value if isinstance(value, dict) else {}
                break
            except UnreadableFile as error:
                line, reason = error.line, error.reason
            except (ValueError, RecursionError):
                pass
            site.report(Problem(tree.prefix + str(file), line, reason))


@dataclass(frozen=True, slots=True)
class _PageOrder:
    """Order of the pages of one folder tree as in Docusaurus' autogenerated sidebar."""

    fronts: Fronts
    routes: Routes
    categories: Fronts  # folders with their _category_ files
    indexes: Fronts  # folders with the front matter of their index

    def ids(self) -> dict[PurePosixPath, str]:
        """Return the pages in order, with the ids that sidebars use for them."""
        return {file: self._id(file) for file in sorted(self.fronts, key=self._key)}

    def _id(self, file: PurePosixPath) -> str:
        front = self.fronts[file]
        folders = (self.routes.strip(part, front)[0] for part in file.parent.parts)
        return "/".join((*folders, self.routes.base_id(file, front)))

    def labels(self, file: PurePosixPath) -> Labels:
        """Return the labels of the two outermost folders of a page."""
        folders = [*map(self._label, list(file.parents)[-2::-1]), None, None]
        return Labels(module=folders[0], chapter=folders[1])

    def _label(self, folder: PurePosixPath) -> str:
        """Return the folder's sidebar label, or its humanised name if there is none."""
        front = self.indexes.get(folder, {})
        return (
            front_text(self.categories.get(folder, {}), "label")
            or front_text(front, "sidebar_label")
            or front_text(front, "title")
            or humanised(split_number(folder.name)[0])
        )

    def _key(self, file: PurePosixPath) -> tuple[tuple[bool, bool, float, str], ...]:
        steps = [self._folder_key(folder) for folder in reversed(file.parents) if folder.parts]
        front = self.fronts[file]
        position = self.routes.position(front)
        if position is None:
            position = number(self.routes.strip(file.stem, front)[1])
        return (*steps, _step(position, file.name, first=is_index(file)))

    def _folder_key(self, folder: PurePosixPath) -> tuple[bool, bool, float, str]:
        position = number(self.categories.get(folder, {}).get("position"))
        if position is None:
            position = self.routes.position(self.indexes.get(folder, {}))
        if position is None:
            position = number(split_number(folder.name)[1])
        return _step(position, folder.name)


def _step(
    position: float | None, name: str, *, first: bool = False
) -> tuple[bool, bool, float, str]:
    return not first, position is None, position or 0.0, name


def humanised(name: str) -> str:
    """Convert ``history-and-places`` to ``History and places``; keep ``M1``, ``rclcpp API``."""
    words = name.replace("_", "-").replace("-", " ").split()
    text = " ".join(words) or name
    return text[:1].upper() + text[1:]


# --- URLs -----------------------------------------------------------------------------------------


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
