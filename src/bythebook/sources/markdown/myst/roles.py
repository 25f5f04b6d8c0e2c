"""Roles, definition lists and links without text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bythebook.language.text import word_set
from bythebook.sources.markdown.parser_state import budget_of

_ROLE = re.compile(r"\{([\w:.+-]{1,64}+)\}(`++)")


def definitions(state: StateCore) -> None:
    """Turn definition lists into lists of "term: definition"."""
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


def role(state: StateInline, silent: bool) -> bool:
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


def link_texts(state: StateCore) -> None:
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
