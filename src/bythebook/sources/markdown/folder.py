"""Folder of plain Markdown or MDX, as a site of Jekyll, Hugo, GitBook, or one that is not known.

Each has its own URLs and order of pages. Of a site that is not known, the URL of a page is the path
of its file.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

from bythebook.interfaces.source import (
    SITE_URL,
    Report,
    SiteOptions,
    SourceFiles,
    SourcePage,
    UnreadableFile,
)
from bythebook.sources.inventory import MARKDOWN
from bythebook.sources.markdown.frontmatter import front_text, read_yaml
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.page_tree import Fronts, PageSite, PageTree, Routes, read_tree
from bythebook.sources.markdown.pages import Labels

_HUGO = ("hugo.{}", "config.{}", "config/_default/hugo.{}", "config/_default/config.{}")
_READERS: Mapping[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "yaml": read_yaml,
    "yml": read_yaml,
    "json": json.loads,
}
_PLACEHOLDER = re.compile(r":(\w+)")
_FAR = 1e15  # position of pages without one

_LINK = re.compile(
    r"^(\s*)(?:(?:[-*+]|\d{1,9}[.)])\s+)?(?:\{:[^{}]*\}\s*)?"
    r"\[([^\]]*)\]\(<?([^)>#\s]*)>?(?:#[^)\s]*+)?(?:\s++\"[^\"]*+\")?\)\s*$"
)
_PART = re.compile(r"#{1,2}\s+(.+)")
_ESCAPE = re.compile(r"\\([^\w\s])")


class MarkdownFolder:
    def detects(self, path: Path, files: SourceFiles) -> bool:
        return files.has_folder(path) or (path.suffix.lower() in MARKDOWN and files.has_file(path))

    def read(
        self, path: Path, files: SourceFiles, options: SiteOptions, report: Report
    ) -> Iterator[SourcePage]:
        found = find_site(files, path if files.has_folder(path) else path.parent, options)
        site = PageSite(
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


@dataclass(frozen=True, slots=True)
class MarkdownRoutes(Routes):
    """URLs by the rules of a site generator."""

    kind: str = ""  # "jekyll", "hugo", "gitbook", or "" if it is not known
    ending: str = ""  # of the path of a page: ".html", "/" or ""
    folder: str = ""  # of the pages, below the site

    def url(self, file: PurePosixPath, front: Mapping[str, object]) -> str:
        if self.kind == "docusaurus":
            return Routes.url(self, file, front)
        path = posixpath.join("/", self.base_url, self.route_base_path, self._path(file, front))
        return self.origin.rstrip("/") + quote(self._with_slash(path), safe="/%:@!$&'()*+,;=~-._")

    def _path(self, file: PurePosixPath, front: Mapping[str, object]) -> str:
        parts = PurePosixPath(self.folder, file).parent.parts
        folder = "".join(f"{part.removeprefix('_')}/" for part in parts)  # _name: a collection
        name, indexes = file.stem, ("index", "readme")
        if self.kind == "hugo":
            folder, name = (text.lower().replace(" ", "-") for text in (folder, name))
            name, indexes = front_text(front, "slug") or name, ("index", "_index")
        given = front_text(front, {"jekyll": "permalink", "hugo": "url"}.get(self.kind, ""))
        if given:
            names = {"path": folder.rstrip("/"), "output_ext": ".html"}
            return _PLACEHOLDER.sub(lambda found: names.get(found[1], name), given).lstrip("/")
        return folder if file.stem.lower() in indexes else f"{folder}{name}{self.ending}"


@dataclass(frozen=True, slots=True)
class MarkdownSite:
    root: Path  # folder of the pages
    routes: MarkdownRoutes
    config: Mapping[str, object]
    listed: Mapping[PurePosixPath, Labels]  # pages of SUMMARY.md

    @property
    def values(self) -> Mapping[str, object] | None:
        """Return the values of ``{{ site.name }}``; None if the site has no such tags."""
        is_jekyll = self.routes.kind == "jekyll"
        return {f"site.{key}": value for key, value in self.config.items()} if is_jekyll else None

    @property
    def exclude(self) -> tuple[str, ...]:
        names = [str(name).strip("/") for name in self.names("exclude")]
        return (*names, *(f"{name}/**" for name in names), *(["SUMMARY.md"] if self.listed else []))

    def names(self, key: str) -> list[object]:
        value = self.config.get(key)
        return list(value) if isinstance(value, (list, dict)) else []

    def arrange(
        self, ids: Mapping[PurePosixPath, str], fronts: Fronts
    ) -> dict[PurePosixPath, Labels | None]:
        """Return pages, given in the order of their paths, in the order of the site."""
        pages = {file: fronts[file] for file in ids}
        titles = {file: front_text(front, "title") or file.stem for file, front in pages.items()}
        above = dict(_parents(pages, {title: file for file, title in titles.items()}))
        place = {file: (float(number), "") for number, file in enumerate(pages)}
        if any(above.values()):
            numbers = {file: self.routes.position(front) for file, front in pages.items()}
            place = {
                file: (_FAR if number is None else number, titles[file].lower())
                for file, number in numbers.items()
            }
        found: dict[PurePosixPath, Labels | None] = {
            file: labels for file, labels in self.listed.items() if file in pages
        }
        for file in sorted(pages, key=lambda file: [place[step] for step in (*above[file], file)]):
            names = [titles[step] for step in above[file]]
            found.setdefault(file, Labels(names[0], names[-1]) if names else None)
        return found


def _parents(
    pages: Fronts, named: Mapping[str, PurePosixPath]
) -> Iterator[tuple[PurePosixPath, list[PurePosixPath]]]:
    """Yield each page with those above it by the titles in ``parent``, outermost first."""
    for file in pages:
        chain = [file]
        while (parent := named.get(front_text(pages[chain[0]], "parent") or "")) is not None:
            if parent in chain:
                break
            chain.insert(0, parent)
        yield file, chain[:-1]


def find_site(files: SourceFiles, path: Path, options: SiteOptions) -> MarkdownSite:
    """Find the site that a folder of pages belongs to."""
    sites = (site for home in (path, *path.parents[:2]) for site in _configs(files, home))
    home, kind, config = next(sites, (path, "", {}))
    content = home / _content(config)
    root = content if kind == "hugo" and path == home and files.has_folder(content) else path
    top = content if kind == "hugo" and content in (root, *root.parents) else home
    listed: dict[PurePosixPath, Labels] = {}
    if files.has_file(root / "SUMMARY.md"):
        with suppress(UnreadableFile):  # reading it as a page reports it
            chapters = read_summary(files.read(root, PurePosixPath("SUMMARY.md")))
            listed = {one.file: Labels(one.part or one.above, one.above) for one in chapters}
    kind = kind or ("gitbook" if listed else "")
    address = str(config.get("url" if kind == "jekyll" else "baseURL", ""))
    found = SITE_URL.match(address)
    base = f"{address[found.end() :] if found else ''}/{config.get('baseurl') or ''}"
    origin = found.group().rstrip("/") if found else ""
    routes = MarkdownRoutes(
        origin=origin if options.url is None else options.url,
        base_url=options.base_url or "/" + posixpath.normpath(base).strip("/"),
        route_base_path=options.route_base_path or "",
        trailing_slash=options.trailing_slash,
        positions=("sidebar_position", "weight", "nav_order", "order"),
        kind=kind,
        ending=_ending(kind, config, is_old=files.has_file(root / "book.json")),
        folder=str(root.relative_to(top)),
    )
    if not kind and (root.name == "docs" or options.route_base_path is not None):
        # The folder's name, or the author's route, is that of Docusaurus.
        routes = replace(
            routes, kind="docusaurus", route_base_path=options.route_base_path or "docs"
        )
    return MarkdownSite(root, routes, config, listed)


def _content(config: Mapping[str, object]) -> str:
    """Return the folder of the pages of a Hugo site, in its main language."""
    languages = config.get("languages")
    main = (
        languages.get(config.get("defaultContentLanguage", "en"))
        if isinstance(languages, dict)
        else None
    )
    return str({**config, **(main if isinstance(main, dict) else {})}.get("contentDir", "content"))


def _configs(files: SourceFiles, home: Path) -> Iterator[tuple[Path, str, dict[str, object]]]:
    names = {"_config.yml": "jekyll", **{n.format(e): "hugo" for n in _HUGO for e in _READERS}}
    for name, kind in names.items():
        if not files.has_file(home / name) or files.has_file(home / "_toc.yml"):
            continue  # `_toc.yml`: a Jupyter Book
        try:
            config = _READERS[name.rpartition(".")[2]](files.read(home, PurePosixPath(name)))
        except (UnreadableFile, ValueError, RecursionError):
            config = {}
        if isinstance(config, dict) and (kind == "jekyll" or "baseURL" in config):
            yield home, kind, config


def _ending(kind: str, config: Mapping[str, object], *, is_old: bool) -> str:
    if kind == "hugo":
        return ".html" if config.get("uglyURLs") is True else "/"
    if kind == "jekyll":
        style = str(config.get("permalink") or "none")
        is_page = style in ("none", "date", "ordinal") or style.endswith(":output_ext")
        return ".html" if is_page else "/" if style == "pretty" or style[-1] == "/" else ""
    return ".html" if kind == "gitbook" and is_old else ""


# --- SUMMARY.md of GitBook and mdBook -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chapter:
    file: PurePosixPath  # relative to the folder of the summary
    title: str
    part: str | None  # the summary's heading above it
    above: str | None  # the outermost chapter it belongs to


def read_summary(text: str) -> Iterator[Chapter]:
    """Yield the chapters that have a file, in reading order, each file once."""
    part: str | None = None
    outermost: str | None = None
    seen: set[str] = set()
    first_heading = True
    for line in text.splitlines():
        heading = _PART.match(line)
        if heading:
            title = heading[1].strip().rstrip("#").rstrip()
            part = None if first_heading else title or None  # the first is "Summary"
            first_heading = False
        link = _LINK.match(line)
        if link is None:
            continue
        indent, title, target = link.groups()
        title = _ESCAPE.sub(r"\1", title)
        outermost = outermost if indent else title
        path = posixpath.normpath(unquote(target))
        if target and path not in seen:
            seen.add(path)
            yield Chapter(PurePosixPath(path), title, part, outermost)
