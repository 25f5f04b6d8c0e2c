"""Expansion of ``{include}`` and ``{literalinclude}``, and titles of the labels of a page."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

_MAX_INCLUDED = 2 * 1024 * 1024  # characters of all includes in one page
_MAX_DEPTH = 5
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}+|~{3,}+|:{3,}+)[ \t]*+(.*+)")
_DIRECTIVE = re.compile(r"\{([\w:.+-]{1,64}+)\}[ \t]*+(.*+)")
_OPTION = re.compile(r"[ \t]*+:([\w-]{1,64}+):[ \t]*+(.*+)")
_TICKS = re.compile(r"`{3,}")
_TARGET = re.compile(r"\(([^()]{1,200}+)\)=[ \t]*+\Z")
_HEADING = re.compile(r"#{1,6}+[ \t]++(.++)")
_RANGE = re.compile(r"(\d{0,9})(-?)(\d{0,9})\Z")
_INCLUDED = ("include", "literalinclude")
_AS_TEXT = ("code", "code-block", "code-cell", "raw", "eval-rst", "math", "mermaid")

OpenText = Callable[[PurePosixPath], str | None]


def with_includes(text: str, folder: PurePosixPath, open_text: OpenText) -> str:
    """Put the text of included files in place of the directives."""
    if not any(f"{{{name}}}" in text for name in _INCLUDED):
        return text
    return _Expansion(open_text).expand(text, folder, 0)


class _Expansion:
    def __init__(self, open_text: OpenText) -> None:
        self._open = open_text
        self._left = _MAX_INCLUDED

    def expand(self, text: str, folder: PurePosixPath, depth: int) -> str:
        lines = text.split("\n")
        done: list[str] = []
        at = 0
        while at < len(lines):
            fence = _FENCE.match(lines[at])
            directive = _DIRECTIVE.match(fence[2]) if fence else None
            name = directive[1] if directive else ""
            after = at + 1
            if fence and (not directive or name in (*_INCLUDED, *_AS_TEXT)):
                is_block = fence[1][0] != ":" or directive is not None
                after = _after_fence(lines, at, fence[1]) if is_block else after
            part = lines[at:after]
            if directive and name in _INCLUDED:
                part = self._include(part, name, directive[2].strip(), folder, depth)
            done += part
            at = after
        return "\n".join(done)

    def _include(
        self, part: list[str], name: str, path: str, folder: PurePosixPath, depth: int
    ) -> list[str]:
        """Return the lines of an included file, or the directive if it cannot be read."""
        file = posixpath.normpath(posixpath.join(str(folder), path))
        if path.startswith("/"):
            file = posixpath.normpath(path.lstrip("/"))
        is_below = path and not file.startswith(("..", "/"))
        text = self._open(PurePosixPath(file)) if is_below and depth < _MAX_DEPTH else None
        if text is None or len(text) > self._left:
            return part
        self._left -= len(text)
        options = dict(_options(part[1:]))
        text = _selected(text.replace("\r\n", "\n"), options)
        if name == "include":
            return self.expand(text, PurePosixPath(file).parent, depth + 1).split("\n")
        return _as_code(text, options)


def _as_code(text: str, options: dict[str, str]) -> list[str]:
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    caption = [f":caption: {options['caption']}"] if options.get("caption") else []
    body = text.removesuffix("\n").split("\n")
    return [f"{fence}{{code-block}} {options.get('language', '')}", *caption, "", *body, fence]


def _after_fence(lines: Sequence[str], start: int, fence: str) -> int:
    for at in range(start + 1, len(lines)):
        text = lines[at].strip()
        if len(text) >= len(fence) and not text.strip(fence[0]):
            return at + 1
    return start + 1  # never closed: not taken as a block


def _options(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        option = _OPTION.match(line)
        if option:
            yield option[1], option[2].strip()


def _selected(text: str, options: dict[str, str]) -> str:
    """Return the part of a file that ``lines``, ``start-after`` and ``end-before`` select."""
    if options.get("start-after"):
        text = text.partition(options["start-after"])[2]
    if options.get("end-before"):
        text = text.partition(options["end-before"])[0]
    if options.get("lines"):
        lines = text.split("\n")
        text = "\n".join(line for part in options["lines"].split(",") for line in _cut(lines, part))
    return text


def _cut(lines: Sequence[str], part: str) -> Sequence[str]:
    found = _RANGE.match(part.strip())
    if found is None or not (found[1] or found[3]):
        return ()
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else len(lines) if found[2] else first
    return lines[max(first - 1, 0) : last]


def labels_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the labels before headings, each with the text of its heading, and "" with the H1."""
    waiting: list[str] = []
    has_title = False
    for line in text.split("\n"):
        target = _TARGET.match(line)
        heading = _HEADING.match(line)
        if target:
            waiting.append(target[1])
        elif heading:
            shown = heading[1].rstrip(" \t#").replace("`", "").replace("*", "")
            yield from ((label, shown) for label in waiting)
            if not has_title and line.startswith(("# ", "#\t")):
                has_title = True
                yield "", shown
            waiting = []
        elif line.strip():
            waiting = []
