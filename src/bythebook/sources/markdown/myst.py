"""MyST Markdown for the parser: directives, roles, targets, comments, maths and definition lists.

Directives and roles become tokens that the parser has anyway (``directive_open``, ``fence``,
``maths_block``, ``table_open``, text, …), so that blocks and visible words need no own rules.
Tokens with a MyST name (``:name:``) have it in ``meta["name"]``; targets are ``myst_target``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

from bythebook.interfaces.source import UnreadableFile
from bythebook.language.text import word_set
from bythebook.sources.markdown.elements import ADMONITIONS
from bythebook.sources.markdown.frontmatter import read_yaml
from bythebook.sources.markdown.parser_state import budget_of, line_text

_INTERRUPTS = ["paragraph", "reference", "blockquote", "list"]
_OPENING = re.compile(r"(`{3,}+|~{3,}+|:{3,}+) *+\{([\w:.+-]{1,64}+)\}[ \t]*+(.*+)\Z")
_OPTION = re.compile(r":([\w-]{1,64}+):(?:[ \t]++(.*+))?+\Z")
_ROLE = re.compile(r"\{([\w:.+-]{1,64}+)\}(`++)")
_LABEL = re.compile(r"[ \t]*+(?:\([^()]*+\)[ \t]*+)?+\Z")  # after the closing dollars
_AMSMATH = re.compile(r"\\begin\{(\w{1,20}\*?)\}")
_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")
_AMSMATH_NAMES = word_set(
    "equation equation* multline multline* gather gather* align align* alignat alignat* flalign "
    "flalign* matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix eqnarray eqnarray*"
)


# --- removal of cells -----------------------------------------------------------------------------


def shown_parts(tags: Sequence[str]) -> tuple[bool, bool]:
    """Return whether the code and the output of a cell with these tags are on the page."""
    removed = {tag.replace("_", "-") for tag in tags if tag.startswith(("remove", "skip"))}
    cell = bool(removed & {"remove-cell", "skip-cell"})
    return not (cell or "remove-input" in removed), not (cell or "remove-output" in removed)


def add_myst(
    parser: MarkdownIt, limit_depth: Callable[[RuleFuncBlockType], RuleFuncBlockType]
) -> None:
    """Add the syntax of MyST to a parser."""
    block, inline = parser.block.ruler, parser.inline.ruler
    block.before("fence", "myst_line", _line, {"alt": _INTERRUPTS})
    deflist_plugin(parser)
    block.at("deflist", limit_depth(_rule_of(parser, "deflist")), {"alt": _INTERRUPTS[:2]})
    block.before("directive", "myst_directive", limit_depth(_directive), {"alt": _INTERRUPTS})
    inline.before("backticks", "myst_role", _role)
    parser.core.ruler.after("block", "definitions", _definitions)
    parser.core.ruler.after("inline", "link_texts", _link_texts)


def add_notebook_maths(parser: MarkdownIt) -> None:
    """Add ``$$`` and LaTeX environments as MathJax and MyST read them."""
    block = parser.block.ruler
    block.at("maths_block", _maths_block, {"alt": _INTERRUPTS})
    block.before("maths_block", "amsmath", _amsmath, {"alt": _INTERRUPTS})


def _rule_of(parser: MarkdownIt, name: str) -> RuleFuncBlockType:
    return next(rule.fn for rule in parser.block.ruler.__rules__ if rule.name == name)


def _line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a line that shows nothing: ``(label)=``, ``% comment`` or ``+++``."""
    if state.is_code_block(start):
        return False
    text = line_text(state, start).rstrip()
    is_target = text.startswith("(") and text.endswith(")=") and len(text) > 3
    if not (is_target or text.startswith(("%", "+++"))):
        return False
    if not silent:
        token = state.push("myst_target" if is_target else "myst_comment", "", 0)
        token.content, token.map = text[1:-2] if is_target else "", [start, start + 1]
        state.line = start + 1
    return True


# --- directives -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Directive:
    name: str
    argument: str
    options: Mapping[str, object]
    start: int  # line of the opening fence
    first: int  # first line of the content
    last: int  # line after the content
    following: int  # line after the closing fence

    def option(self, name: str) -> str:
        value = self.options.get(name)
        return str(value) if isinstance(value, (str, int, float)) else ""

    @property
    def closed(self) -> bool:
        return self.following > self.last


def _directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
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
    found = _Directive(name, argument.strip(), options, start, first, last, following)
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


def _write(state: StateBlock, found: _Directive) -> None:
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
        _write_box(state, found, f"{title} ({found.argument})" if described else title)
    elif name in _UNTITLED:
        _write_box(state, found, "")
    elif name in _VERSIONS:
        _write_box(state, found, f"{_VERSIONS[name]} {found.argument}".strip())
    else:
        write = _WRITERS.get(name)
        if write is None:
            _write_box(state, found, found.argument)
        else:
            write(state, found)


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


def _write_admonition(state: StateBlock, found: _Directive, name: str) -> None:
    """Write a box that is titled by its kind; its argument is the first line of the content."""
    _open_box(state, found, "" if name in ADMONITIONS else _ADMONITION_TITLES[name], kind=name)
    if found.argument:
        _push_paragraph(state, found.argument, found.start)
    _tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _write_box(state: StateBlock, found: _Directive, title: str) -> None:
    _open_box(state, found, title)
    _tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _open_box(state: StateBlock, found: _Directive, title: str, *, kind: str = "myst") -> None:
    token = state.push("directive_open", "", 1)
    token.info, token.map = kind, [found.start, found.following]
    token.meta = {"closed": True}
    _push_inline(state, title, found.start)


def _push_inline(state: StateBlock, text: str, line: int) -> None:
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = text, [line, line + 1], []


def _push_paragraph(state: StateBlock, text: str, line: int) -> None:
    state.push("paragraph_open", "p", 1).map = [line, line + 1]
    _push_inline(state, text, line)
    state.push("paragraph_close", "p", -1)


def _tokenize_inside(state: StateBlock, start: int, end: int, indent: int | None = None) -> None:
    outer = state.lineMax, state.parentType, state.blkIndent
    state.lineMax, state.parentType = end, "container"
    state.blkIndent = state.blkIndent if indent is None else indent
    state.md.block.tokenize(state, start, end)
    state.lineMax, state.parentType, state.blkIndent = outer


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


# --- directives with a content of their own -------------------------------------------------------


def _content(state: StateBlock, found: _Directive) -> str:
    return state.getLines(found.first, found.last, state.sCount[found.start], True)


def _without_blank_start(state: StateBlock, found: _Directive) -> _Directive:
    first = found.first
    while first < found.last and state.isEmpty(first):
        first += 1
    return replace(found, first=first)


def _write_code(state: StateBlock, found: _Directive) -> None:
    language = found.argument.split(maxsplit=1)[0] if found.argument else ""
    _push_code(state, found, language, found.option("caption") or found.option("filename"))


def _write_code_cell(state: StateBlock, found: _Directive) -> None:
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


def _push_code(state: StateBlock, found: _Directive, language: str, title: str) -> None:
    found = _without_blank_start(state, found)
    quote = "'" if '"' in title else '"'
    token = state.push("fence", "code", 0)
    titled = f" title={quote}{title.replace(quote, '’')}{quote}" if title else ""
    token.info, token.content = language + titled, _content(state, found)
    token.map = [found.start, found.following]


def _write_unparsed(state: StateBlock, found: _Directive) -> None:
    """Keep what another parser reads as it is written."""
    _push_code(state, found, {"eval-rst": "rst"}.get(found.name, found.name), "")
    state.tokens[-1].meta["unparsed"] = found.name == "eval-rst"


def _write_maths(state: StateBlock, found: _Directive) -> None:
    content = _content(state, _without_blank_start(state, found))
    token = state.push("maths_block", "", 0)
    token.content = f"{found.argument}\n{content}".strip("\n")
    token.map = [found.start, found.following]


def _write_raw(state: StateBlock, found: _Directive) -> None:
    if "html" in found.argument.split():
        token = state.push("html_block", "", 0)
        token.content, token.map = _content(state, found), [found.start, found.following]


def _write_image(state: StateBlock, found: _Directive) -> None:
    if found.option("alt"):
        _push_paragraph(state, _escaped(found.option("alt")), found.start)


def _write_figure(state: StateBlock, found: _Directive) -> None:
    """Write the alternative text, the caption and the legend."""
    _open_box(state, found, "")
    _write_image(state, found)
    _tokenize_inside(state, found.first, found.last)
    state.push("directive_close", "", -1)


def _write_rubric(state: StateBlock, found: _Directive) -> None:
    _push_paragraph(state, found.argument, found.start)
    _tokenize_inside(state, found.first, found.last)


# --- tables and glossaries ------------------------------------------------------------------------


def _write_list_table(state: StateBlock, found: _Directive) -> None:
    """Write a list of lists as a table; a list with anything but text in a cell stays a list."""
    _open_box(state, found, found.argument)
    start = len(state.tokens)
    _tokenize_inside(state, found.first, found.last)
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


def _write_csv_table(state: StateBlock, found: _Directive) -> None:
    header = found.option("header")
    text = "\n".join(filter(None, (header, _content(state, found))))
    try:
        separator = found.option("delim") or ","
        rows = list(csv.reader(text.splitlines(), delimiter=separator[0], skipinitialspace=True))
    except csv.Error:
        rows = [[line] for line in text.splitlines()]
    rows = [row for row in rows if row]
    _open_box(state, found, found.argument)
    if rows:
        is_titled = bool(header) or found.option("header-rows") not in ("", "0")
        _push_table(state, found, rows, has_header=is_titled)
    state.push("directive_close", "", -1)


def _push_table(
    state: StateBlock, found: _Directive, rows: list[list[str]], *, has_header: bool
) -> None:
    width = max(map(len, rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    state.push("table_open", "table", 1).map = [found.start, found.following]
    for number, row in enumerate(rows if has_header else [[""] * width, *rows]):
        kind = "td" if number else "th"
        state.push("tr_open", "tr", 1)
        for cell in row:
            state.push(f"{kind}_open", kind, 1)
            _push_inline(state, cell, found.start)
            state.push(f"{kind}_close", kind, -1)
        state.push("tr_close", "tr", -1)
    state.push("table_close", "table", -1)


def _write_glossary(state: StateBlock, found: _Directive) -> None:
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


def _write_definition(state: StateBlock, entry: _Directive, terms: str) -> None:
    if terms:
        _open_box(state, entry, terms)
    lines = [line for line in range(entry.first, entry.last) if not state.isEmpty(line)]
    if lines:
        _tokenize_inside(state, entry.first, entry.last, state.sCount[lines[0]])
    if terms:
        state.push("directive_close", "", -1)


_Writer = Callable[[StateBlock, _Directive], None]
_CODE = "code-block code sourcecode parsed-literal ipython prompt doctest testcode literal"
_KEPT_AS_CODE = "mermaid graphviz plot eval-rst jupyter-execute plantuml digraph"
_WRITERS: Mapping[str, _Writer] = {
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


def _definitions(state: StateCore) -> None:
    """Turn definition lists into boxes with the term as title."""
    if any(token.type == "dl_open" for token in state.tokens):
        state.tokens = list(_as_boxes(state.tokens))


def _as_boxes(tokens: Sequence[Token]) -> Iterator[Token]:
    is_open: list[bool] = []  # for each open definition list: whether a box is open
    for token in tokens:
        if token.type == "dl_open":
            is_open.append(False)
        elif token.type in ("dt_open", "dl_close"):
            if is_open[-1]:
                yield Token("directive_close", "", -1)
            if token.type == "dl_close":
                is_open.pop()
            else:
                is_open[-1] = True
                meta = {"closed": True}
                yield Token("directive_open", "", 1, info="myst", map=token.map, meta=meta)
        elif token.type not in ("dt_close", "dd_open", "dd_close"):
            yield token


# --- roles and links ------------------------------------------------------------------------------


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


_CODE_ROLES = word_set(
    "code kbd file samp command program option envvar literal func meth class mod attr data exc "
    "obj py const regexp makevar"
)
_DRAWN_ROLES = ("fa", "octicon", "material-", "icon")  # pictures
_COMPUTED_ROLES = ("glue", "eval")
_REFERENCES = word_set("ref doc numref eq term any download label prf:ref")


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


# --- maths ----------------------------------------------------------------------------------------


def _maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``$$ … $$``, on one line or several, with an optional ``(label)`` at the end."""
    text = line_text(state, start)
    if not text.startswith("$$") or text.startswith("$$$") or state.is_code_block(start):
        return False
    found = _maths_end(state, start, end, text[2:])
    if found is None:
        return False
    if silent:
        return True
    content, state.line = found
    token = state.push("maths_block", "", 0)
    token.content, token.map = content, [start, state.line]
    return True


def _maths_end(state: StateBlock, start: int, end: int, rest: str) -> tuple[str, int] | None:
    budget = budget_of(state.env, len(state.src))
    lines: list[str] = []
    for line in range(start, end):
        text = line_text(state, line) if line > start else rest
        if budget.left <= 0 or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return None
        budget.left -= len(text) + 1
        before, dollars, after = text.partition("$$")
        if dollars:
            content = "\n".join([*lines, before]).strip("\n ")
            return (content, line + 1) if content and _LABEL.match(after) else None
        lines.append(text)
    return None


def _amsmath(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    opening = _AMSMATH.match(line_text(state, start))
    if opening is None or opening[1] not in _AMSMATH_NAMES or state.is_code_block(start):
        return False
    budget = budget_of(state.env, len(state.src))
    for line in range(start, end):
        text = line_text(state, line)
        if budget.left <= 0 or (state.sCount[line] < state.blkIndent and not state.isEmpty(line)):
            return False
        budget.left -= len(text) + 1
        if text.rstrip().endswith(f"\\end{{{opening[1]}}}"):
            if not silent:
                token = state.push("maths_block", "", 0)
                token.content = state.getLines(start, line + 1, state.sCount[start], False).strip()
                token.map, state.line = [start, line + 1], line + 1
            return True
    return False
