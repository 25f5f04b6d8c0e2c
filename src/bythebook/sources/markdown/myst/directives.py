"""Parse directives: fences of backticks or colons with a name in braces."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markdown_it.rules_block import StateBlock

from bythebook.interfaces.source import UnreadableFile
from bythebook.language.text import word_set
from bythebook.sources.markdown.frontmatter import read_yaml
from bythebook.sources.markdown.myst.directive import (
    Directive,
    open_box,
    push_paragraph,
    tokenize_inside,
    write_box,
)
from bythebook.sources.markdown.myst.writers import WRITERS
from bythebook.sources.markdown.parser_state import line_text
from bythebook.text.units import ADMONITIONS

_OPENING = re.compile(r"(`{3,}+|~{3,}+|:{3,}+) *+\{([\w:.+-]{1,64}+)\}[ \t]*+(.*+)\Z")
_OPTION = re.compile(r":([\w-]{1,64}+):(?:[ \t]++(.*+))?+\Z")
_WITHOUT_WORDS = word_set(
    "tableofcontents toctree contents bibliography index highlight currentmodule meta label "
    "thebe-button sectionauthor codeauthor default-role title list-of-figures embed iframe audio "
    "video youtube genindex footbibliography include"
)
_ADMONITION_TITLES = {
    "hint": "Hint",
    "attention": "Attention",
    "error": "Error",
    "seealso": "See also",
    "todo": "Todo",
}
_PROOFS = word_set(
    "theorem proof lemma definition corollary proposition criterion conjecture assumption axiom "
    "example remark observation algorithm property exercise solution"
)
_UNTITLED = word_set(
    "tab-set grid grid-item div container only epigraph pull-quote highlights centered "
    "exercise-start exercise-end solution-start solution-end compound block-break card-carousel"
)
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}


def directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    text = line_text(state, start)
    opening = _OPENING.match(text) if text[:1] in "`~:" else None
    if opening is None or state.is_code_block(start):
        return False
    fence, name, argument = opening.groups()
    if fence[0] == "`" and "`" in argument:
        return False
    if silent:
        return True
    last, following = _find_close(state, start, end, fence)
    options, first = _read_options(state, start + 1, last)
    found = Directive(name, argument.strip(), options, start, first, last, following)
    before = len(state.tokens)
    _write(state, found)
    if len(state.tokens) > before and found.option("name"):
        state.tokens[before].meta["name"] = found.option("name")
    state.line = following
    return True


def _find_close(state: StateBlock, start: int, end: int, fence: str) -> tuple[int, int]:
    """Return the line after the content and the line after the closing fence."""
    for line in range(start + 1, end):
        if state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return line, line
        text = line_text(state, line).rstrip(" \t")
        is_fence = len(text) >= len(fence) and not text.strip(fence[0])
        if is_fence and not state.is_code_block(line):
            return line, line + 1
    return end, end


def _read_options(state: StateBlock, line: int, last: int) -> tuple[Mapping[str, object], int]:
    """Return the options (``:name: value`` lines, or YAML between ---) and the line after them."""
    first = line
    while first < last and state.isEmpty(first):
        first += 1
    if first >= last:
        return {}, first
    if line_text(state, first).rstrip() == "---":
        return _yaml_options(state, first, last)
    options: dict[str, object] = {}
    while first < last and (option := _OPTION.match(line_text(state, first))):
        options[option[1]] = option[2] or ""
        first += 1
    return options, first


def _yaml_options(state: StateBlock, first: int, last: int) -> tuple[Mapping[str, object], int]:
    for line in range(first + 1, last):
        if line_text(state, line).rstrip() == "---":
            text = state.getLines(first + 1, line, state.sCount[first], True)
            try:
                value = read_yaml(text)
            except UnreadableFile:
                value = None
            options = value.items() if isinstance(value, dict) else ()
            return {str(name): item for name, item in options}, line + 1
    return {}, first


def _write(state: StateBlock, found: Directive) -> None:
    """Push the tokens of a directive. One that is not known keeps its argument and content."""
    name = found.name.removeprefix("prf:").removesuffix("*").casefold()
    if name in _WITHOUT_WORDS:
        state.push("myst_comment", "", 0).meta["unparsed"] = name in ("bibliography", "contents")
        return
    if name in _ADMONITION_TITLES or name in ADMONITIONS:
        _write_admonition(state, found, name)
    elif name in _PROOFS:
        title = name.capitalize()
        described = found.argument and name != "solution"
        write_box(state, found, f"{title} ({found.argument})" if described else title)
    elif name in _UNTITLED:
        write_box(state, found, "")
    elif name in _VERSIONS:
        write_box(state, found, f"{_VERSIONS[name]} {found.argument}".strip())
    else:
        write = WRITERS.get(name)
        if write is None:
            write_box(state, found, found.argument)
        else:
            write(state, found)


def _write_admonition(state: StateBlock, found: Directive, name: str) -> None:
    """Write a box that is titled by its kind; its argument is the first line of the content."""
    open_box(state, found, "" if name in ADMONITIONS else _ADMONITION_TITLES[name], kind=name)
    if found.argument:
        push_paragraph(state, found.argument, found.start)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)
