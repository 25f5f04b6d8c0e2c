"""MyST in plain Markdown: boxes, figures, code, tables, formulas, roles and comments.

The package with the format of Jupyter Book adds what needs a whole book.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.myst_blocks import myst_block_plugin

from bythebook.language.text import word_set
from bythebook.sources.markdown.block_rules import (
    Directive,
    WriteDirective,
    add_directives,
    budget_of,
    content_of,
    open_box,
    push_code,
    push_inline,
    push_paragraph,
    tokenize_inside,
    write_box,
)
from bythebook.text.units import ADMONITIONS

_ROLE = re.compile(r"\{([\w:.+-]{1,64}+)\}(`++)")
_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")


def add_myst(parser: MarkdownIt) -> None:
    """Add the syntax of MyST to a parser."""
    myst_block_plugin(parser)  # targets, comments and breaks
    add_directives(parser, _WRITERS)
    parser.inline.ruler.before("backticks", "myst_role", _role)


# --- directives -----------------------------------------------------------------------------------


def _write_nothing(state: StateBlock, found: Directive) -> None:
    state.push("myst_comment", "", 0)


def _write_admonition(state: StateBlock, found: Directive) -> None:
    """Write a box that is titled by its kind; its argument is the first line of the content."""
    name = found.name.casefold()
    open_box(state, found, _TITLES.get(name, ""), kind=name)
    if found.argument:
        push_paragraph(state, found.argument, found.start)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _write_untitled(state: StateBlock, found: Directive) -> None:
    write_box(state, found, "")


def _write_code(state: StateBlock, found: Directive) -> None:
    language = found.argument.split(maxsplit=1)[0] if found.argument else ""
    push_code(state, found, language, found.option("caption") or found.option("filename"))


def write_unparsed(state: StateBlock, found: Directive) -> None:
    """Keep what another program reads as it is written."""
    push_code(state, found, {"eval-rst": "rst"}.get(found.name, found.name))


def _write_maths(state: StateBlock, found: Directive) -> None:
    token = state.push("maths_block", "", 0)
    token.content = f"{found.argument}\n{content_of(state, found)}".strip("\n")
    token.map = [found.start, found.following]


def write_image(state: StateBlock, found: Directive) -> None:
    if found.option("alt"):
        text = _MARKUP.sub(r"\\\1", " ".join(found.option("alt").split()))
        push_paragraph(state, text, found.start)


def write_figure(state: StateBlock, found: Directive) -> None:
    """Write the alternative text, the caption and the legend."""
    open_box(state, found, "")
    write_image(state, found)
    tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def shown_parts(tags: Sequence[str]) -> tuple[bool, bool]:
    """Return whether the code and the output of a cell with these tags are on the page."""
    removed = {tag.replace("_", "-") for tag in tags if tag.startswith(("remove", "skip"))}
    cell = bool(removed & {"remove-cell", "skip-cell"})
    return not (cell or "remove-input" in removed), not (cell or "remove-output" in removed)


def _write_code_cell(state: StateBlock, found: Directive) -> None:
    shows_code, _ = shown_parts(_tags(found.options.get("tags")))
    if shows_code:
        language = found.argument.split(maxsplit=1)[0] if found.argument else ""
        is_python = language.startswith(("ipython", "python"))
        language = "python" if is_python else language or state.env.get("kernel", "")
        push_code(state, found, language)


def _tags(value: object) -> list[str]:
    if isinstance(value, str):
        value = value.strip("[] ").replace('"', "").replace("'", "").split(",")
    return [str(tag).strip() for tag in value] if isinstance(value, list) else []


def _write_proof(state: StateBlock, found: Directive) -> None:
    title = found.name.removeprefix("prf:").removesuffix("*").capitalize()
    described = found.argument and title != "Solution"
    write_box(state, found, f"{title} ({found.argument})" if described else title)


def _write_version(state: StateBlock, found: Directive) -> None:
    write_box(state, found, f"{_VERSIONS[found.name.casefold()]} {found.argument}".strip())


def _write_raw(state: StateBlock, found: Directive) -> None:
    if "html" in found.argument.split():
        token = state.push("html_block", "", 0)
        token.content, token.map = content_of(state, found), [found.start, found.following]


def _write_list_table(state: StateBlock, found: Directive) -> None:
    """Write a list of lists as a table; a list with anything but text in a cell stays a list."""
    open_box(state, found, found.argument)
    start = len(state.tokens)
    tokenize_inside(state, found.first, found.last)
    rows = _rows_of(state.tokens[start:])
    if rows:
        del state.tokens[start:]
        headers = found.option("header-rows")
        push_table(state, found, rows, has_header=headers.isdigit() and int(headers) > 0)
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


def push_table(
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


_PROOFS = (
    "theorem proof lemma definition corollary proposition criterion conjecture assumption axiom "
    "example remark observation algorithm property exercise solution"
)
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}
_TITLES = {
    "hint": "Hint",
    "attention": "Attention",
    "error": "Error",
    "seealso": "See also",
    "todo": "Todo",
}
_WITHOUT_WORDS = (
    "tableofcontents toctree contents bibliography index highlight currentmodule meta label "
    "thebe-button sectionauthor codeauthor default-role title list-of-figures embed iframe audio "
    "video youtube genindex footbibliography include"
)
_UNTITLED = (
    "tab-set grid grid-item div container only epigraph pull-quote highlights centered "
    "exercise-start exercise-end solution-start solution-end compound block-break card-carousel"
)
_CODE = "code-block code sourcecode parsed-literal ipython prompt doctest testcode literal"
_UNPARSED = ("mermaid", "graphviz", "plot", "plantuml", "digraph", "eval-rst")
_WRITERS: Mapping[str, WriteDirective] = {
    **dict.fromkeys(_WITHOUT_WORDS.split(), _write_nothing),
    **dict.fromkeys(_UNTITLED.split(), _write_untitled),
    **dict.fromkeys(_CODE.split(), _write_code),
    **dict.fromkeys(_UNPARSED, write_unparsed),
    **dict.fromkeys((*ADMONITIONS, *_TITLES), _write_admonition),
    **dict.fromkeys(_PROOFS.split(), _write_proof),
    **dict.fromkeys(_VERSIONS, _write_version),
    "code-cell": _write_code_cell,
    "list-table": _write_list_table,
    "math": _write_maths,
    "raw": _write_raw,
    "image": write_image,
    **dict.fromkeys(("figure", "figure-md"), write_figure),
}


# --- roles ----------------------------------------------------------------------------------------

_CODE_ROLES = word_set(
    "code kbd file samp command program option envvar literal func meth class mod attr data exc "
    "obj py const regexp makevar"
)
_DRAWN_ROLES = ("fa", "octicon", "material-", "icon")  # pictures
_COMPUTED_ROLES = ("glue", "eval")
_REFERENCES = word_set("ref doc numref eq term any download label prf:ref")


def _role(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "{":
        return False
    opening = _ROLE.match(state.src, state.pos, state.posMax)
    close = _closing_ticks(state, opening.end(), len(opening[2])) if opening else -1
    if opening is None or close < 0:
        return False
    if not silent:
        content = " ".join(state.src[opening.end() : close].split())
        _push_role(state, opening[1].casefold(), content)
    state.pos = close + len(opening[2])
    return True


def _closing_ticks(state: StateInline, start: int, size: int) -> int:
    """Return the offset of the next run of exactly this many backticks, or -1."""
    budget = budget_of(state.env, len(state.src))
    ticks, place = "`" * size, start
    while budget.left > 0 and (found := state.src.find(ticks, place, state.posMax)) >= 0:
        end = found + size
        while end < state.posMax and state.src[end] == "`":
            end += 1
        budget.left -= end - place
        if end - found == size:
            return found
        place = end
    budget.left -= state.posMax - start
    return -1


def _push_role(state: StateInline, name: str, content: str) -> None:
    kind = name.rpartition(":")[2]
    if kind == "math":
        token = state.push("maths_inline", "", 0)
        token.content, token.markup = content, "$"
    elif kind in _CODE_ROLES:
        state.push("code_inline", "code", 0).content = content
    elif kind.startswith(("cite", "footcite")):
        state.push("myst_role", "", 0).meta["role"] = "cite"
        state.push("text", "", 0).content = f"[{content}]"
    elif not name.startswith(_DRAWN_ROLES):
        computed = name.startswith(_COMPUTED_ROLES)
        shown = "…" if computed else _shown_role(state.env.get("labels", {}), kind, content)
        state.push("text", "", 0).content = shown


def _shown_role(labels: Mapping[str, str], kind: str, content: str) -> str:
    """Return the text of a role: the text before ``<target>``, or the title of the target."""
    text, _, target = content.rpartition("<")
    if text.strip() and target.endswith(">"):
        shown = text.strip()
    elif kind in _REFERENCES:
        shown = labels.get(content.removesuffix(".md"), content)
    else:
        shown = content
    if kind == "numref":
        shown = shown.replace("%s", "").replace("{number}", "").replace("{name}", "").strip()
    return f"({shown})" if kind == "eq" else shown
