"""Read the JSON of a notebook (nbformat 3 and 4) into cells. Wrong types read as empty values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bythebook.interfaces.source import UnreadableFile
from bythebook.language.text import well_formed
from bythebook.sources.markdown.myst import shown_parts

MAX_BYTES = 64 * 1024 * 1024
MAX_CELLS = 20_000
_MAX_OUTPUTS = 1_000  # of one cell
_LANGUAGE = re.compile(r"[\w+#.-]+", re.A)
_CELL_ID = re.compile(r"[\w-]{1,64}\Z", re.A)
# nbformat 3 names the data of an output by these keys.
_OLD_KEYS = {
    "text": "text/plain",
    "html": "text/html",
    "latex": "text/latex",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "svg": "image/svg+xml",
    "json": "application/json",
    "javascript": "application/javascript",
    "pdf": "application/pdf",
}
_LANGUAGES = {"ipython": "python", "ipython3": "python", "ipython2": "python"}


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a code cell: its texts by MIME type, and the types of all its data."""

    kind: str  # "stream", "error", or "data"
    texts: Mapping[str, str]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    kind: str  # "markdown", "code" or "raw"
    text: str
    id: str = ""  # in the page that nbconvert makes
    language: str = ""
    format: str = ""  # MIME type of a raw cell
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True, slots=True)
class Notebook:
    cells: tuple[Cell, ...]
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_notebook(content: bytes) -> Notebook:
    """Return the cells that are shown, or raise UnreadableFile."""
    value = _load(content)
    version, minor = _number(value.get("nbformat")), _number(value.get("nbformat_minor"))
    if version not in (3, 4):
        raise UnreadableFile(f"is not a notebook of nbformat 3 or 4 (`nbformat` is {version})")
    metadata = _mapping(value.get("metadata"))
    cells = _cells(value, version)
    has_ids = (version, minor) >= (4, 5)
    language = _language(metadata)
    shown = (_cell(cell, language, has_ids=has_ids) for cell in cells)
    title = metadata.get("title")
    return Notebook(
        cells=tuple(cell for cell in shown if cell is not None),
        title=" ".join(well_formed(title).split()) if isinstance(title, str) else "",
        metadata=metadata,
    )


def _load(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_BYTES:
        raise UnreadableFile(f"larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableFile("not valid UTF-8", line) from None
    try:
        value = json.loads(text, parse_int=_read_int, parse_float=_read_float)
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"is not JSON: {error.msg}", error.lineno) from None
    except RecursionError:
        raise UnreadableFile("is nested too deeply") from None
    if not isinstance(value, dict):
        raise UnreadableFile("is not a notebook: its JSON is not an object")
    return value


def _read_int(digits: str) -> int:
    """Convert a number; one with very many digits, which Python refuses, is 0."""
    return int(digits) if len(digits) < 20 else 0


def _read_float(digits: str) -> float:
    return float(digits) if len(digits) < 400 else 0.0


def _cells(value: Mapping[str, Any], version: int) -> list[Mapping[str, Any]]:
    sheets = _list(value.get("worksheets")) if version == 3 else [value]
    lists = [sheet["cells"] for sheet in sheets if isinstance(sheet, dict) and "cells" in sheet]
    lists = [cells for cells in lists if isinstance(cells, list)]
    if not lists:
        raise UnreadableFile("is not a notebook: it has no list of cells")
    if sum(map(len, lists)) > MAX_CELLS:
        raise UnreadableFile(f"has more than {MAX_CELLS:,} cells")
    return [cell for cells in lists for cell in cells if isinstance(cell, dict)]


def _cell(cell: Mapping[str, Any], language: str, *, has_ids: bool) -> Cell | None:
    """Return a cell without what its tags remove, or None if nothing of it is shown."""
    metadata = _mapping(cell.get("metadata"))
    tags = [tag for tag in _list(metadata.get("tags")) if isinstance(tag, str)]
    shows_code, shows_output = shown_parts(tags)
    if not (shows_code or shows_output):
        return None
    name = cell.get("id") if has_ids else None
    cell_id = name if isinstance(name, str) and _CELL_ID.match(name) else ""
    source = text_of(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "markdown":
            return Cell("markdown", source, cell_id)
        case "heading":  # nbformat 3
            level = min(max(_number(cell.get("level")), 1), 6)
            return Cell("markdown", f"{'#' * level} {' '.join(source.split())}", cell_id)
        case "raw":
            kind = metadata.get("format", metadata.get("raw_mimetype", ""))
            return Cell("raw", source, cell_id, format=kind if isinstance(kind, str) else "")
        case "code":
            own = cell.get("language")
            return Cell(
                "code",
                source if shows_code else "",
                cell_id,
                language=_known(own) if isinstance(own, str) else language,
                outputs=tuple(_outputs(cell.get("outputs"))) if shows_output else (),
            )
    return None


def _language(metadata: Mapping[str, Any]) -> str:
    info, kernel = _mapping(metadata.get("language_info")), _mapping(metadata.get("kernelspec"))
    names = (info.get("name"), kernel.get("language"), kernel.get("name"))
    return _known(next((name for name in names if isinstance(name, str) and name), ""))


def _known(language: str) -> str:
    name = "".join(_LANGUAGE.findall(language[:40])).lower()
    return _LANGUAGES.get(name, name)


def _outputs(value: object) -> Iterator[Output]:
    """Yield the outputs of a cell; texts of one stream that follow each other are one output."""
    stream: list[str] = []
    for output in _list(value)[:_MAX_OUTPUTS]:
        if not isinstance(output, dict):
            continue
        if output.get("output_type") == "stream":
            stream.append(text_of(output.get("text")))
            continue
        if stream:
            yield Output("stream", {"text/plain": "".join(stream)})
            stream = []
        yield _output(output)
    if stream:
        yield Output("stream", {"text/plain": "".join(stream)})


def _output(output: Mapping[str, Any]) -> Output:
    if output.get("output_type") in ("error", "pyerr"):
        lines = [line for line in _list(output.get("traceback")) if isinstance(line, str)]
        text = "\n".join(map(well_formed, lines))
        named = f"{text_of(output.get('ename'))}: {text_of(output.get('evalue'))}"
        return Output("error", {"text/plain": text or named})
    data = output.get("data")
    if not isinstance(data, dict):
        data = {_OLD_KEYS[key]: item for key, item in output.items() if key in _OLD_KEYS}
    texts = {str(kind): text_of(item) for kind, item in data.items() if kind.startswith("text/")}
    return Output("data", texts, tuple(map(str, data)))


def text_of(value: object) -> str:
    """Return a text that is written as a string or as a list of lines."""
    parts: Sequence[object] = value if isinstance(value, list) else [value]
    return well_formed("".join(part for part in parts if isinstance(part, str)))


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
