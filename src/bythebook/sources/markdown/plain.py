"""Marks of Jekyll, Hugo, GitBook, MkDocs, R Markdown and MyST in a folder of Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

from bythebook.interfaces.blocks import LeftOut
from bythebook.sources.markdown.block_rules import INTERRUPTS, limit_depth, line_text
from bythebook.sources.markdown.maths import add_latex_maths
from bythebook.sources.markdown.mdx import GONE, ParseOptions
from bythebook.sources.markdown.myst import add_myst
from bythebook.sources.mathml import tex_in
from bythebook.text.units import ADMONITIONS

_MDX_SIGNS = re.compile(
    r"^(?:import\s[^\n]{0,200}\sfrom\s*['\"]|export\s+(?:const|default|function)\s)|^(?:#[^\n]*)?\{/\*",
    re.M,
)
_MYST_SIGNS = re.compile(
    r"^[ \t]*(?:`{3,}\{(?:code-cell|code-block|math|figure|image|prf:\w|admonition|note|tip|hint|"
    r"warning|important|seealso|exercise|solution|dropdown|list-table|tableofcontents)|:{3,} *\{\w)"
    r"[\w-]*\}",
    re.M,
)


def looks_like_mdx(text: str) -> bool:
    """Return whether a ``.md`` file of unknown origin has imports, exports or comments of MDX."""
    return _MDX_SIGNS.search(text) is not None


def plain_options(
    parsing: ParseOptions,
    text: str,
    front: Mapping[str, object],
    site_values: Mapping[str, object] | None,
) -> ParseOptions:
    """Return the options for a file. ``site_values`` are those of ``{{ … }}``; None: it stays."""
    values = site_values
    if values is not None:
        values = {**values, **{f"page.{name}": value for name, value in front.items()}}
    is_myst = _MYST_SIGNS.search(text) is not None
    return replace(
        parsing,
        plugins=(_add_plain, add_latex_maths, *([add_myst] if is_myst else []), add_definitions),
        notes_heading=False,
        rewrite=partial(without_templates, values=values),
        env={**parsing.env, "kramdown": values is not None or "{:" in text},
    )


def _add_plain(parser: MarkdownIt) -> None:
    parser.core.ruler.after("inline", "captions", _captions)
    parser.block.ruler.before("fence", "include", _include, {"alt": INTERRUPTS})


def _captions(state: StateCore) -> None:
    """Show the title of an image in place of its alternative text, which kramdown never shows."""
    for token in state.tokens:
        for child in token.children or ():
            title = str(child.attrs.get("title", "")) if child.type == "image" else ""
            if title or (child.type == "image" and state.env.get("kramdown")):
                child.children = [Token("text", "", 0, content=title)]


def _include(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse ``{* path ln[3:9] *}``, which shows a file of code, or some of its lines."""
    found = _INCLUDE.match(line_text(state, start))
    if found is None or state.is_code_block(start):
        return False
    if silent:
        return True
    path, first, last = found.groups()
    text, state.line = state.env["open_text"](f"./{path}"), start + 1
    if text is None:
        state.env["left_out"].append(LeftOut("included from outside the book's folder", path))
    else:
        token = state.push("fence", "code", 0)
        token.info, token.map = path.rpartition(".")[2], [start, start + 1]
        token.content = "\n".join(text.splitlines()[int(first or 1) - 1 : int(last or 10**9)])
    return True


def add_definitions(parser: MarkdownIt) -> None:
    """Parse definition lists as lists of "term: definition"."""
    deflist_plugin(parser)
    ruler = parser.block.ruler
    rule = next(rule.fn for rule in ruler.__rules__ if rule.name == "deflist")
    ruler.at("deflist", limit_depth(rule), {"alt": INTERRUPTS[:2]})
    parser.core.ruler.after("block", "definitions", _definitions)


def _definitions(state: StateCore) -> None:
    if any(token.type == "dl_open" for token in state.tokens):
        state.tokens = list(_as_items(state.tokens))


def _as_items(tokens: Sequence[Token]) -> Iterator[Token]:
    terms, term = list[str](), ""  # the term that the next text begins with
    for before, token in pairwise((Token("", "", 0), *tokens)):
        kind = token.type
        if kind == "dt_open":
            terms = terms if before.type == "dt_close" else []
        elif before.type == "dt_open":
            terms.append(token.content)
        elif kind in ("dl_open", "dl_close", "dd_open", "dd_close"):
            kind = kind.replace("dl", "bullet_list").replace("dd", "list_item")
            yield replace(token, type=kind)
            term = ", ".join(terms) if kind == "list_item_open" else ""
        elif kind != "dt_close":
            if term and kind == "inline":
                token.content = f"{term}: {token.content}"
            elif term and kind != "paragraph_open":
                yield Token("inline", "", 0, content=term, children=[], map=token.map)
            term = term if kind == "paragraph_open" else ""
            yield token


# --- marks of site generators that a reader does not see ------------------------------------------
#
# Liquid tags and Hugo shortcodes disappear, and the text between a pair of them stays; hints, tabs
# and blocks of MkDocs become boxes. Attribute lists, comments and end-of-block marks of kramdown
# disappear; the ids that they give to headings are kept. MathML becomes TeX. Of code for Twoslash,
# a site shows neither the directives nor what is above a cut.

_SIGNS = (
    *["{%", "{{", "{:", "{.", "{#", "<table", "<math", "///"],
    *("{ #", "\n^", "\n*[", "size 1", "twoslash"),
)
_INCLUDE = re.compile(r"\{\*[ \t]+(\S+)(?:[ \t]+(?:ln\[(\d{1,9}):(\d{1,9})\]|\S+))*[ \t]+\*\}\s*\Z")
_TWOSLASH = re.compile(
    r"\A.*^[ \t]*// ---cut(?:-before)?---[^\n]*\n"
    r"|^[ \t]*//[ \t]*(?:@(?!ts-|filename\b)\w+(?=:|[ \t]*\n)|\^[?|]|---cut-\w+---)[^\n]*\n",
    re.M | re.S | re.I,
)
_SLASHES = re.compile(r"([ \t]*)(/{3,})[ \t]*([\w-]*)[ \t|]*([^\n]*?)[ \t]*$", re.M)
_TAG = r"\{(?:%|\{[<%])[^{}]{1,2000}?[>%]\}\}?"
_LIST = r"\{:(?:[^{}\"'\n]|\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'){0,400}+\}"
_BRACES = r"\{[^{}\n]*+\}"
for _ in range(6):  # deeper formulas of StarMath are rare
    _BRACES = rf"\{{(?:[^{{}}\n]|{_BRACES})*+\}}"
# No alternative but the first runs past the next mark of its kind: the scan takes linear time.
_MARK = re.compile(
    r"(?=[`~{<^*#>\s+\ds!/-])(?:"  # the first characters of all marks: rejects most others at once
    r"(?P<code>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[^\n]*(?:\n.*?(?:^[ \t>]*\2"
    r"[`~]*[ \t]*$|\Z)|\Z)|(`+)(?!`)[^\n]{1,400}?(?<!`)\3(?!`))"
    r"|\{%-?\s*raw\s*-?%\}(?P<raw>(?:(?!\{%-?\s*(?:end)?raw).)*+)\{%-?\s*endraw\s*-?%\}"
    rf"|(?P<starmath> ?size \d+{_BRACES} ?\{{\}})"  # the source of a formula, beside MathML
    r"|(?P<gone>\{%-?\s*comment\s*-?%\}(?:(?!\{%-?\s*(?:end)?comment).)*+\{%-?\s*endcomment\s*-?%\}"
    r"|\{::comment\}(?:(?!\{:[:/]).)*+\{:/(?:comment)?\}|\{:[:/]\w{0,20}[^}\n]{0,200}\}|^\^[ \t]*$"
    r"|(?:^[ \t]*(?:[-*+]|\d\.)[ \t][^\n]{0,80}\n)?^[ \t]*\{:[ \t]*toc\b[^}\n]{0,200}\}"
    r"|^\*\[[^\]\n]{1,100}\]:[^\n]*$|^[ \t]*\{[.#][\w:.-]+[^{}\n]{0,200}\}[ \t]*$)"
    r"|(?P<image>!\[[^\[\]\n]*+\]\([^()<>\n\"]* [^()<>\n\"]*?(?=[ ]\"|\)))"
    rf"|(?P<heading>^\#{{1,6}}[ \t](?:[^\n{{]|\{{(?![ ]?[\#:]))*"
    rf"(?:\{{[ ]?\#[^{{}}\n]*\}}|\n?{_LIST})[ \t]*$)|"
    r"(?P<slashes>^[ \t]*/{3,}(?:[ \t]*$"
    r"|[ \t]+[A-Za-z][\w-]*[ \t]*(?:\|[^\n]*)?$(?:\n {4}\w+:[^\n]*)*))|"
    rf"(?P<list>(?<=\s){_LIST} ?|{_LIST})|^(?P<block>[ \t]*{_TAG})[ \t]*$|(?P<tag>{_TAG})"
    r"|\{\{-?\s*(?P<value>[^{}]{1,300}?)\s*-?\}\}|(?P<table><table\b(?:(?!</?table\b).)*+</table)"
    r"|(?P<maths><math\b(?:(?!</?math\b).)*+</math>(?:\n[ \t]*\n(?=[ \t]*[a-z,.;:)]))?))",
    re.M | re.S,
)
_NAME = re.compile(r"([ \t]*)\{[{<%\s-]*+(/|end(?=\w))?\s*+([\w-]++)(.*)[>%]\}", re.S)
_PARAMETER = re.compile(r"(?<![\w-])([\w-]++)\s*+=\s*(?:\"([^\"]*)\"|'([^']*)'|(\S+))|\"([^\"]*)\"")
_ID = re.compile(r"\{(?: |:[^{}\n]*?[\s:])?#([\w:.-]+)|\{:#([\w:.-]+)")
_ATTRIBUTES = re.compile(r"\n?\{ ?[#:]")
_INDENT = re.compile(r"\n[ \t]{4,}")
_BOXES = {
    **dict.fromkeys((*ADMONITIONS, "hint", "notice", "alert", "callout"), ":::"),
    "tab": "::::::",
}


def without_templates(text: str, values: Mapping[str, object] | None) -> str:
    """Return a text as its site shows it. ``values`` are those of ``{{ … }}``; None: it stays."""

    def shown(mark: re.Match[str]) -> str:
        kind = mark.lastgroup or ""
        if kind == "value":
            result = mark.group() if values is None else str(values.get(mark["value"], ""))
        else:
            result = _SHOWN[kind](mark) if kind in _SHOWN else ""
        kept = result.count("\n") + result.count(GONE)
        return result + GONE * (mark.group().count("\n") - kept)

    return (
        _MARK.sub(shown, text.replace(GONE, " ")) if any(map(text.__contains__, _SIGNS)) else text
    )


def _heading(mark: re.Match[str]) -> str:
    """Write the id of a heading, from its own line or the next, as ``{#id}``."""
    name = _ID.search(mark.group())
    text = _ATTRIBUTES.split(mark.group())[0].rstrip()
    return text + (f" {{#{name[1] or name[2]}}}" if name else "")


def _code(mark: re.Match[str]) -> str:
    opening, end, rest = mark.group().partition("\n")
    return opening + end + (_TWOSLASH.sub("", rest) if "twoslash" in opening else rest)


def _slashes(mark: re.Match[str]) -> str:
    """Write the edge of a block of MkDocs as that of a directive."""
    indent, fence, name, title = (_SLASHES.match(mark.group()) or mark).groups()
    if not name and f"{fence} " not in mark.string:
        return mark.group()
    return indent + ":" * len(fence) + name.lower() + f"[{title}]" * bool(title)


def _block(mark: re.Match[str]) -> str:
    """Write a tag that stands alone: the edge of a box, of code, or the caption of a figure."""
    found = _NAME.match(mark["block"])
    if found is None:
        return ""
    indent, closing, name, rest = found.groups()
    given = _parameters(rest)
    if given.get("file"):
        return f"{indent}{{* {given['file']} *}}"
    words = (name, *given.values(), *rest.split())
    kind = next((word for word in map(str.lower, words) if word in ADMONITIONS), name)
    title = given.get("title") or given.get("name") or ""
    is_paired = any(f"{end}{name}" in mark.string for end in ("end", "/", "/ ", "end "))
    if name == "highlight":
        return f"{indent}~~~~~~" + ("" if closing else rest.split()[0] if rest.split() else "")
    if name in _BOXES and is_paired:
        title = "" if closing or title.lower() == kind else f"[{title}]"
        return indent + _BOXES[name] + ("" if closing else kind + title)
    return indent + (given.get("caption") or given.get("content") or given.get("text") or "")


def _parameters(text: str) -> dict[str, str]:
    return {key or "title": a or b or c or d for key, a, b, c, d in _PARAMETER.findall(text)}


def _tag(mark: re.Match[str]) -> str:
    """Write the text that a tag within a line shows: a term, or the words of a heading."""
    found = _NAME.match(mark["tag"])
    given = _parameters(found[4]) if found and mark["tag"].startswith("{{") else {}
    line = mark.string[mark.string.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    title = given.get("title", "") if line.startswith("#") else ""
    return given.get("text") or given.get("term_id", "").replace("-", " ") or title


def _table(mark: re.Match[str]) -> str:
    """Remove the indentation, which would turn cells after a blank line into code."""
    return "<" + _INDENT.sub("\n", without_templates(mark.group()[1:], None))


def _maths(mark: re.Match[str]) -> str:
    tex = " ".join(tex_in(mark.group()).replace("$", r"\$").split())
    return f"${tex}$" * bool(tex) + " " * mark.group().endswith("\n")


def _image(mark: re.Match[str]) -> str:
    """Put the name of a file into angle brackets: kramdown takes blanks in it."""
    text, _, target = mark.group().rpartition("](")
    return f"{text}](<{target.strip()}>"


_SHOWN: Mapping[str, Callable[[re.Match[str]], str]] = {
    "code": _code,
    "raw": lambda mark: mark["raw"],
    "image": _image,
    "heading": _heading,
    "block": _block,
    "slashes": _slashes,
    "tag": _tag,
    "table": _table,
    "maths": _maths,
}
