"""Folders and front matter in, the reading order of the pages and the names of folders out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bythebook.book.files import Files, UnreadableFile
from bythebook.book.frontmatter import UnreadableFrontMatter, read_yaml
from bythebook.book.routes import Routes, front_text, is_index, split_number
from bythebook.book.sidebars import Sidebars

CATEGORY_FILES = ("_category_.json", "_category_.yml", "_category_.yaml")

Front = Mapping[str, object]
Warn = Callable[[str, int | None, str], None]  # file, line, reason


@dataclass(frozen=True, slots=True)
class Category:
    label: str | None = None
    position: float | None = None


def read_category(files: Files, root: Path, folder: PurePosixPath, warn: Warn) -> Category:
    """What ``_category_.json`` or ``.yml`` says of a folder."""
    for name in CATEGORY_FILES:
        file = folder / name
        if not files.has_file(root / file):
            continue
        try:
            text = files.read(root, file)
            value = json.loads(text) if name.endswith("json") else read_yaml(text)
        except (UnreadableFile, UnreadableFrontMatter) as error:
            warn(str(file), error.line, error.reason)
        except (ValueError, RecursionError):
            warn(str(file), None, "not readable as JSON")
        else:
            front = value if isinstance(value, dict) else {}
            return Category(front_text(front, "label"), _number(front.get("position")))
    return Category()


class Shelf:
    """The pages of one folder tree, ordered by its sidebars, and where these say nothing as
    Docusaurus' generated sidebar orders them.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        pages: Mapping[PurePosixPath, Front],
        routes: Routes,
        warn: Warn,
    ) -> None:
        self._pages = pages
        self._routes = routes
        folders = {parent for file in pages for parent in file.parents if parent.parts}
        self._categories = {
            folder: read_category(files, root, folder, warn) for folder in sorted(folders)
        }
        self._indexes = {
            file.parent: file
            for file in sorted(pages, reverse=True)
            if is_index(file) and file.parent.parts
        }

    def ordered(self, sidebars: Sidebars) -> list[PurePosixPath]:
        return sidebars.order({file: self._id(file) for file in sorted(self._pages, key=self._key)})

    def _id(self, file: PurePosixPath) -> str:
        """The name by which a sidebar calls a page."""
        front = self._pages[file]
        folders = (self._routes.strip(part, front)[0] for part in file.parent.parts)
        return "/".join((*folders, self._routes.base_id(file, front)))

    def label(self, folder: PurePosixPath) -> str:
        """The folder's name in the sidebar; without one, its own name made readable."""
        front = self._pages.get(self._indexes.get(folder, PurePosixPath()), {})
        return (
            self._categories[folder].label
            or front_text(front, "sidebar_label")
            or front_text(front, "title")
            or humanised(split_number(folder.name)[0])
        )

    def _key(self, file: PurePosixPath) -> tuple[tuple[bool, bool, float, str], ...]:
        steps = [self._folder_key(folder) for folder in reversed(file.parents) if folder.parts]
        front = self._pages[file]
        position = _number(front.get("sidebar_position"))
        if position is None:
            position = _number(self._routes.strip(file.stem, front)[1])
        return (*steps, _step(position, file.name, first=is_index(file)))

    def _folder_key(self, folder: PurePosixPath) -> tuple[bool, bool, float, str]:
        position = self._categories[folder].position
        if position is None and folder in self._indexes:
            position = _number(self._pages[self._indexes[folder]].get("sidebar_position"))
        if position is None:
            position = _number(split_number(folder.name)[1])
        return _step(position, folder.name)


def _step(
    position: float | None, name: str, *, first: bool = False
) -> tuple[bool, bool, float, str]:
    return not first, position is None, position or 0.0, name


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e15 else None


def humanised(name: str) -> str:
    """``history-and-places`` -> ``History and places``; ``M1`` and ``rclcpp API`` stay."""
    words = name.replace("_", "-").replace("-", " ").split()
    text = " ".join(words) or name
    return text[:1].upper() + text[1:]
