"""Write directives with a content of their own: code, maths, figures, tables and glossaries."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from bythebook.sources.markdown.myst.directive import (
    Directive,
    content_of,
    escaped,
    open_box,
    push_inline,
    push_paragraph,
    tokenize_inside,
    without_blank_start,
)
from bythebook.sources.markdown.parser_state import line_text


def shown_parts(tags: Sequence[str]) -> tuple[bool, bool]:
    """Return whether the code and the output of a cell with these tags are on the page."""
    removed = {tag.replace("_", "-") for tag in tags if tag.startswith(("remove", "skip"))}
    cell = bool(removed & {"remove-cell", "skip-cell"})
    return not (cell or "remove-input" in removed), not (cell or "remove-output" in removed)


def _write_code(state: StateBlock, found: Directive) -> None:
    language = found.argument.split(maxsplit=1)[0] if found.argument else ""
    _push_code(state, found, language, found.option("caption") or found.option("filename"))


def _write_code_cell(state: StateBlock, found: Directive) -> None:
    shows_code, _ = shown_parts(_tags(found.options.get("tags")))
    if shows_code:
        language = found.argument.split(maxsplit=1)[0] if found.argument else ""
        is_python = language.startswith(("ipython", "python"))
        language = "python" if is_python else language or state.env.get("kernel", "")
        _push_code(state, found, language, "")


def _tags(value: object) -> list[str]:
    if isinstance(value, str):
        value = value.strip("[] ").replace('"', "").replace("'", "").split(",")
    return [str(tag).strip() for tag in value] if isinstance(value, list) else []


def _push_code(state: StateBlock, found: Directive, language: str, title: str) -> None:
    found = without_blank_start(state, found)
    quote = "'" if '"' in title else '"'
    token = state.push("fence", "code", 0)
    titled = f" title={quote}{title.replace(quote, '’')}{quote}" if title else ""
    token.info, token.content = language + titled, content_of(state, found)
    token.map = [found.start, found.following]


def _write_unparsed(state: StateBlock, found: Directive) -> None:
    """Keep what another parser reads as it is written."""
    _push_code(state, found, {"eval-rst": "rst"}.get(found.name, found.name), "")
    state.tokens[-1].meta["unparsed"] = found.name == "eval-rst"


def _write_maths(state: StateBlock, found: Directive) -> None:
    content = content_of(state, without_blank_start(state, found))
    token = state.push("maths_block", "", 0)
    token.content = f"{found.argument}\n{content}".strip("\n")
    token.map = [found.start, found.following]


def _write_raw(state: StateBlock, found: Directive) -> None:
    if "html" in found.argument.split():
        token = state.push("html_block", "", 0)
        token.content, token.map = content_of(state, found), [found.start, found.following]


def _write_image(state: StateBlock, found: Directive) -> None:
    if found.option("alt"):
        push_paragraph(state, escaped(found.option("alt")), found.start)


def _write_figure(state: StateBlock, found: Directive) -> None:
    """Write the alternative text, the caption and the legend."""
    open_box(state, found, "")
    _write_image(state, found)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _write_rubric(state: StateBlock, found: Directive) -> None:
    push_paragraph(state, found.argument, found.start)
    tokenize_inside(state, found.first, found.last)


def _write_list_table(state: StateBlock, found: Directive) -> None:
    """Write a list of lists as a table; a list with anything but text in a cell stays a list."""
    open_box(state, found, found.argument)
    start = len(state.tokens)
    tokenize_inside(state, found.first, found.last)
    rows = _rows_of(state.tokens[start:])
    if rows:
        del state.tokens[start:]
        headers = found.option("header-rows")
        _push_table(state, found, rows, has_header=headers.isdigit() and int(headers) > 0)
    state.push("directive_close", "", -1)


def _rows_of(tokens: Sequence[Token]) -> list[list[str]]:
    """Return the texts of a list of lists, or [] if the tokens are anything else."""
    rows: list[list[str]] = []
    depth = 0
    for token in tokens:
        if token.type == "bullet_list_open":
            depth += 1
        elif token.type == "bullet_list_close":
            depth -= 1
        elif token.type == "list_item_open" and depth == 1:
            rows.append([])
        elif token.type == "list_item_open" and depth == 2:
            rows[-1].append("")
        elif token.type == "inline" and depth == 2:
            rows[-1][-1] = f"{rows[-1][-1]} {token.content}".strip().replace("\n", " ")
        elif token.type not in ("paragraph_open", "paragraph_close", "list_item_close"):
            return []
    return rows if all(rows) else []


def _write_csv_table(state: StateBlock, found: Directive) -> None:
    header = found.option("header")
    text = "\n".join(filter(None, (header, content_of(state, found))))
    try:
        separator = found.option("delim") or ","
        rows = list(csv.reader(text.splitlines(), delimiter=separator[0], skipinitialspace=True))
    except csv.Error:
        rows = [[line] for line in text.splitlines()]
    rows = [row for row in rows if row]
    open_box(state, found, found.argument)
    if rows:
        is_titled = bool(header) or found.option("header-rows") not in ("", "0")
        _push_table(state, found, rows, has_header=is_titled)
    state.push("directive_close", "", -1)


def _push_table(
    state: StateBlock, found: Directive, rows: list[list[str]], *, has_header: bool
) -> None:
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    state.push("table_open", "table", 1).map = [found.start, found.following]
    for number, row in enumerate(rows if has_header else [[""] * width, *rows]):
        kind = "td" if number else "th"
        state.push("tr_open", "tr", 1)
        for cell in row:
            state.push(f"{kind}_open", kind, 1)
            push_inline(state, cell, found.start)
            state.push(f"{kind}_close", kind, -1)
        state.push("tr_close", "tr", -1)
    state.push("table_close", "table", -1)


def _write_glossary(state: StateBlock, found: Directive) -> None:
    """Write each definition as a box with its terms as the title."""
    margin = state.sCount[found.start]
    line = found.first
    while line < found.last:
        terms, start = list[str](), line
        while line < found.last and not state.isEmpty(line) and state.sCount[line] <= margin:
            terms.append(line_text(state, line).strip())
            line += 1
        first = line
        while line < found.last and (state.isEmpty(line) or state.sCount[line] > margin):
            line += 1
        entry = replace(found, start=start, first=first, last=line, following=line)
        _write_definition(state, entry, ", ".join(terms))


def _write_definition(state: StateBlock, entry: Directive, terms: str) -> None:
    if terms:
        open_box(state, entry, terms)
    lines = [line for line in range(entry.first, entry.last) if not state.isEmpty(line)]
    if lines:
        tokenize_inside(state, entry.first, entry.last, state.sCount[lines[0]])
    if terms:
        state.push("directive_close", "", -1)


_Writer = Callable[[StateBlock, Directive], None]
_CODE = "code-block code sourcecode parsed-literal ipython prompt doctest testcode literal"
_KEPT_AS_CODE = "mermaid graphviz plot eval-rst jupyter-execute plantuml digraph"
WRITERS: Mapping[str, _Writer] = {
    **dict.fromkeys(_CODE.split(), _write_code),
    **dict.fromkeys(_KEPT_AS_CODE.split(), _write_unparsed),
    "code-cell": _write_code_cell,
    "math": _write_maths,
    "raw": _write_raw,
    "image": _write_image,
    "figure": _write_figure,
    "glue:figure": _write_figure,
    "figure-md": _write_figure,
    "rubric": _write_rubric,
    "list-table": _write_list_table,
    "csv-table": _write_csv_table,
    "glossary": _write_glossary,
}
