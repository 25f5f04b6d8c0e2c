"""Directives of MyST that only books of Jupyter have: cells, tables, proofs and glossaries."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from bythebook.sources.markdown.block_rules import (
    Directive,
    WriteDirective,
    add_directives,
    content_of,
    line_text,
    open_box,
    push_paragraph,
    tokenize_inside,
)
from bythebook.sources.markdown.maths import add_latex_maths
from bythebook.sources.markdown.myst import add_myst, push_table, write_figure, write_unparsed
from bythebook.sources.markdown.plain import add_definitions


def add_jupyter_book(parser: MarkdownIt) -> None:
    """Add the syntax of the pages of a Jupyter Book to a parser."""
    add_latex_maths(parser)
    add_myst(parser)
    add_definitions(parser)
    add_directives(parser, _WRITERS)
    parser.core.ruler.after("inline", "link_texts", _link_texts)


def _link_texts(state: StateCore) -> None:
    """Give links without text, ``[](label)``, the title of their target."""
    labels: Mapping[str, str] = state.env.get("labels", {})
    for token in state.tokens:
        for opening, closing in pairwise(list(token.children or ())):
            if opening.type == "link_open" and closing.type == "link_close":
                target = str(opening.attrs.get("href", "")).removeprefix("#").removesuffix(".md")
                shown = labels.get(target, "")
                assert token.children is not None
                if shown:
                    place = next(i for i, child in enumerate(token.children) if child is closing)
                    token.children.insert(place, Token("text", "", 0, content=shown))


def _write_unparsed(state: StateBlock, found: Directive) -> None:
    """Keep what another parser reads as it is written."""
    write_unparsed(state, found)
    state.tokens[-1].meta["unparsed"] = found.name == "eval-rst"


def _write_list_of_others(state: StateBlock, found: Directive) -> None:
    """Leave out a list that is made of the whole book."""
    state.push("myst_comment", "", 0).meta["unparsed"] = True


def _write_rubric(state: StateBlock, found: Directive) -> None:
    push_paragraph(state, found.argument, found.start)
    tokenize_inside(state, found.first, found.last)


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
        push_table(state, found, rows, has_header=is_titled)
    state.push("directive_close", "", -1)


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


_WRITERS: Mapping[str, WriteDirective] = {
    **dict.fromkeys(("bibliography", "contents"), _write_list_of_others),
    **dict.fromkeys(("eval-rst", "jupyter-execute"), _write_unparsed),
    "glue:figure": write_figure,
    "rubric": _write_rubric,
    "csv-table": _write_csv_table,
    "glossary": _write_glossary,
}
