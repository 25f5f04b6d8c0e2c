"""Registry of book formats, and detection of the one that reads a folder or file.

Another package adds a format with an entry point in the group ``bythebook.sources`` whose value is
a class (or function without arguments) that makes a ``Source``. It is imported when it is asked.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from bythebook.errors import SourceError
from bythebook.interfaces.source import Source, SourceFiles
from bythebook.sources.inventory import OF_PACKAGE

GROUP = "bythebook.sources"

_SPECIFIC = (
    EntryPoint("mdbook", "bythebook.sources.mdbook:MdBookSource", GROUP),
    EntryPoint("docusaurus", "bythebook.sources.docusaurus:DocusaurusSource", GROUP),
)
_GENERAL = (
    EntryPoint("mixed", "bythebook.sources.mixed:MixedFolder", GROUP),
    EntryPoint("markdown", "bythebook.sources.markdown.folder:MarkdownFolder", GROUP),
)
INSTALL_FORMATS = 'pip install "bythebook[formats]"'


def registered_sources() -> dict[str, EntryPoint]:
    """Return the formats by name, in the order of detection. Those of any folder are last."""
    installed = {entry.name: entry for entry in _installed(tuple(sys.path))}
    built_in = {entry.name for entry in (*_SPECIFIC, *_GENERAL)}
    first = [installed[name] for name in OF_PACKAGE if name in installed]
    others = [entry for name, entry in installed.items() if name not in {*built_in, *OF_PACKAGE}]
    return {entry.name: entry for entry in (*first, *_SPECIFIC, *others, *_GENERAL)}


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> list[EntryPoint]:
    """Return the formats of other packages; a mixed folder asks once for each file."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def needs_formats(name: str) -> bool:
    """Return whether reading a file needs the package bythebook-formats, which is not installed."""
    entries = registered_sources()
    return any(
        name.lower().endswith(endings) and format_ not in entries
        for format_, endings in OF_PACKAGE.items()
    )


def _without_formats(what: str) -> SourceError:
    return SourceError(f"Reading {what} needs the package bythebook-formats.", hint=INSTALL_FORMATS)


def load_source(entry: EntryPoint) -> Source:
    """Import a format and make its source."""
    try:
        factory = entry.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise _broken(entry, f"cannot be imported ({error})") from error
    source = factory() if callable(factory) else None
    if not isinstance(source, Source):
        raise _broken(entry, "does not make a source with the methods `detects` and `read`")
    return source


def _broken(entry: EntryPoint, reason: str) -> SourceError:
    package = entry.dist.name if entry.dist else "bythebook"
    return SourceError(
        f"The book format {entry.name!r} of the package {package!r} {reason}.",
        hint=f"Update or uninstall {package}.",
    )


def find_source(path: Path, files: SourceFiles, name: str | None = None) -> Source:
    """Return the source of this name, or else the first that detects its format."""
    entries = registered_sources()
    name = name or detect_format(path, files)
    if name in OF_PACKAGE and name not in entries:
        raise _without_formats(f"the format {name}")
    if name not in entries:
        raise SourceError(
            f"There is no book format {name!r}.", hint=f"Known are: {', '.join(entries)}."
        )
    return load_source(entries[name])


def detect_format(path: Path, files: SourceFiles) -> str:
    """Return the name of the first format that detects itself."""
    entries = registered_sources()
    names = files.names(path) if files.has_folder(path) else [path.name]
    if "jupyter-book" not in entries and not set(names).isdisjoint(OF_PACKAGE["jupyter-book"]):
        raise _without_formats("a Jupyter Book")
    for name, entry in entries.items():
        is_possible = name not in OF_PACKAGE or any(
            each.lower().endswith(OF_PACKAGE[name]) for each in names
        )
        if is_possible and load_source(entry).detects(path, files):
            return name
    raise SourceError(
        f"No installed format reads {path.name!r}.",
        hint=f"Name the book's folder or file. Known formats are: {', '.join(entries)}.",
    )
