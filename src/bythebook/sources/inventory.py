"""List the files of a book's folder by kind, and say which of them were not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bythebook.errors import SourceError
from bythebook.interfaces.source import Problem, SourceFiles
from bythebook.sources.files import FileProbe, ProbeKind

MARKDOWN = (".md", ".mdx", ".markdown", ".rmd", ".qmd")
HTML = (".html", ".htm", ".xhtml")
# Formats that a tool must build first, and the command that does it.
UNBUILT = {
    ".rst": "sphinx-build -b html SOURCE BUILD",
    ".adoc": "asciidoctor -D BUILD '**/*.adoc'",
    ".asciidoc": "asciidoctor -D BUILD '**/*.asciidoc'",
}
# Formats of the package bythebook-formats, which is asked only about these files or folders with
# them. The order is that of detection: a built site comes before its sources.
OF_PACKAGE = {
    "epub": (".epub",),
    "html": HTML,
    "jupyter-book": ("_toc.yml", "myst.yml"),
    "notebook": (".ipynb",),
    "pdf": (".pdf",),
}
_BOOKS = (
    *(".epub", ".pdf", ".docx", ".odt", ".rtf", ".doc", ".pptx", ".odp", ".ppt"),
    *(".mobi", ".azw3", ".fb2", ".djvu", ".ps", ".txt"),
)
_TEXTS = (*MARKDOWN, *HTML, *UNBUILT, ".ipynb", ".tex", ".org", ".textile", ".wiki", ".typ")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".bmp", ".tif", ".tiff")
# About a repository rather than in the book.
_ABOUT = (
    "readme",
    "license",
    "licence",
    "contributing",
    "changelog",
    "code_of_conduct",
    "security",
    "requirements",
    "robots",
    "notice",
)
READABLE = (*MARKDOWN, *HTML, ".ipynb", ".epub", ".pdf")
_FORMATS = {
    "markdown": MARKDOWN,
    "html": HTML,
    "mixed": READABLE,
}
_OWN_FOLDERS = ("docusaurus",)  # the configuration names the folders: blogs and versions are others
_FRONT_MATTER = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_BODY = re.compile(rb"<(?:body|h1|p|script|style)\b", re.IGNORECASE)
_HEAD = 8192  # bytes of a page that are searched for signs of a template


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """File of the book's folder that is in no page."""

    file: str
    kind: str  # the ending of its name
    reason: str
    lost: bool = False  # its text should be in the book


@dataclass(frozen=True, slots=True)
class Unread:
    """What was left out of a folder: files with text, and the number of images."""

    files: tuple[UnreadFile, ...] = ()
    images: int = 0


def is_hidden(file: PurePosixPath) -> bool:
    return any(part.startswith(("_", ".")) or part == "node_modules" for part in file.parts)


def is_template(content: bytes) -> bool:
    """Return whether an HTML file is a template: Liquid, Jinja or Go's braces before its text."""
    head = _BODY.split(content[:_HEAD], maxsplit=1)[0]
    return _FRONT_MATTER.match(head) is not None or b"{%" in head or b"{{" in head


def pages_by_kind(root: Path, files: SourceFiles) -> tuple[list[str], list[str]]:
    """Return the names, without ending, of HTML pages and of Markdown pages that have no such."""
    found = list(_walk(root, files, (*HTML, *MARKDOWN)))
    built = {str(file.with_suffix("")) for file in found if file.suffix.lower() in HTML}
    stems = [str(file.with_suffix("")) for file in found if file.suffix.lower() in MARKDOWN]
    source = [name for name in stems if not built & {name, f"{name}/index"} and not _is_about(name)]
    return sorted(built), source


def find_unread(
    root: Path,
    files: SourceFiles,
    seen: Mapping[FileProbe, str],
    problems: Iterable[Problem],
    pages: Set[str],
    name: str,
) -> Unread:
    """Return the files below ``root`` that the format ``name`` has not opened."""
    if not files.has_folder(root):
        return Unread()
    reads = (ProbeKind.READ, ProbeKind.READ_BINARY)
    opened = {f"{look.root}/{look.path}" for look in seen if look.act in reads}
    told = {each.file: each for each in problems if each.file not in pages}
    read = {str(PurePosixPath(page).with_suffix("")) for page in pages}
    unread, images = [], 0
    for file in _walk(root, files, (*_TEXTS, *_BOOKS, *_IMAGES)):
        kind = file.suffix.lower()
        if kind in _IMAGES:
            images += 1
        elif str(root / file) not in opened or str(file) in told:
            problem = told.get(str(file))
            is_lost = problem.fatal if problem else kind not in READABLE and kind != ".txt"
            is_lost = is_lost and str(file.with_suffix("")) not in read
            reason = problem.reason if problem else _reason(kind, name)
            if kind != ".txt" or not _is_about(str(file)):
                unread.append(UnreadFile(str(file), kind, reason, is_lost))
    return Unread(tuple(unread), images)


def check_choice(
    root: Path, files: SourceFiles, unread: Unread, problems: Iterable[Problem], name: str
) -> None:
    """Raise SourceError if a detected format silently leaves out most files with text."""
    told = {problem.file for problem in problems}
    texts = [file for file in _walk(root, files, _TEXTS) if not _is_about(str(file))]
    silent = {str(file) for file in texts} - told
    left_out = [each for each in unread.files if each.file in silent]
    if name in _OWN_FOLDERS or 2 * len(left_out) <= len(texts):
        return
    found = Counter(file.suffix.lower() for file in texts)
    counts = {way: sum(found[kind] for kind in kinds) for way, kinds in _FORMATS.items()}
    listed = ", ".join(f"{way} ({count} files)" for way, count in counts.items() if count)
    kinds = ", ".join(
        f"{count} {kind}" for kind, count in Counter(each.kind for each in left_out).items()
    )
    raise SourceError(
        f"Read as {name}, {root.name!r} loses {len(left_out)} of {len(texts)} files with text "
        f"({kinds}).",
        hint=f"Choose with --format: {name} all the same, or {listed or 'none reads these files'}.",
    )


def _walk(root: Path, files: SourceFiles, kinds: tuple[str, ...]) -> Iterable[PurePosixPath]:
    def wanted(file: PurePosixPath) -> bool:
        return file.suffix.lower() in kinds and not is_hidden(file)

    return files.walk(root, wanted, lambda _file, _reason: None)


def _is_about(name: str) -> bool:
    return PurePosixPath(name).stem.lower() in _ABOUT


def _reason(kind: str, name: str) -> str:
    if kind in UNBUILT:
        return f"has to be built first: {UNBUILT[kind]}"
    if kind in READABLE:
        return f"not in the book, read as {name}"
    return f"{kind} files are not read"
