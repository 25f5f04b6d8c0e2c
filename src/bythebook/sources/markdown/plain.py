"""Plain Markdown for a site that is not known: Jekyll, Hugo, GitBook, R Markdown or MyST."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

from bythebook.sources.markdown.maths import add_latex_maths
from bythebook.sources.markdown.mdx import ParseOptions
from bythebook.sources.markdown.myst import add_myst
from bythebook.sources.markdown.rules import INTERRUPTS, limit_depth
from bythebook.sources.markdown.templates import without_templates

_MDX_SIGNS = re.compile(
    r"^(?:import\s[^\n]{0,200}\sfrom\s*['\"]|export\s+(?:const|default|function)\s)|^\{/\*", re.M
)
_MYST_SIGNS = re.compile(
    r"^[ \t]*(?:`{3,}|:{3,})\{(?:code-cell|code-block|math|figure|image|prf:\w|admonition|note|"
    r"tip|warning|important|hint|seealso|exercise|solution|dropdown|list-table|tableofcontents)"
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
        plugins=(_add_captions, add_latex_maths, *([add_myst] if is_myst else []), add_definitions),
        notes_heading=False,
        rewrite=partial(without_templates, values=values),
        env={**parsing.env, "kramdown": values is not None or "{:" in text},
    )


def _add_captions(parser: MarkdownIt) -> None:
    parser.core.ruler.after("inline", "captions", _captions)


def _captions(state: StateCore) -> None:
    """Show the title of an image in place of its alternative text, which kramdown never shows."""
    for token in state.tokens:
        for child in token.children or ():
            title = str(child.attrs.get("title", "")) if child.type == "image" else ""
            if title or (child.type == "image" and state.env.get("kramdown")):
                child.children = [Token("text", "", 0, content=title)]


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
