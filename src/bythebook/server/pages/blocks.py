"""Convert a section's text to HTML; each sentence, item, row and code block has an id."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from bythebook.server.html import (
    ALLOWED_TAGS,
    UNIT,
    Renderer,
    clean_html,
    make_cleaner,
    make_grammar,
    render,
    with_own_links,
    without_signs,
)
from bythebook.text.markdown import in_order, markdown
from bythebook.text.section_text import Joined, Marked
from bythebook.text.units import NOTE
from bythebook.types import Mark, MarkKind, UnitKind

_ID_DIGITS = 10
_UNIT_SIGN = re.compile(f"{UNIT}([0-9]+)\\.")
_ANY_SIGN = re.compile(f"{UNIT}[0-9]*[.!]")
_BLOCK_SIGN = re.compile(f"{UNIT}([0-9]+)!")
_WHOLE = (UnitKind.CODE, UnitKind.MATHS)
_WITH_DIRECTION = {
    f"{name}_open" for name in ("paragraph", "list_item", "th", "td", "blockquote", "heading")
}
_PAGE_TAGS = ALLOWED_TAGS | {"aside", "div", "figcaption", "figure"}
_PAGE_ATTRIBUTES = {
    "*": {"id", "class", "dir", "data-unit", "data-words"},
    "a": {"href"},
    "div": {"tabindex", "role", "aria-label"},
    "img": {"src", "alt", "loading"},
    "ol": {"start"},
    "th": {"scope"},
}


def unit_id(passage_id: str, number: int) -> str:
    """Return the HTML id of a unit, which is also the fragment of its URL."""
    return f"u{passage_id[:_ID_DIGITS]}-{number}"


def section_html(section: Joined) -> str:
    source, shown = _with_signs(section)
    return clean_html(render(source, _grammar(), {"shown": shown}), _cleaner())


def words_html(section: Joined) -> str:
    """Convert inline only: for a section that consists of its heading."""
    source, shown = _with_signs(section)
    return clean_html(_grammar().renderInline(source, {"shown": shown}), _cleaner())


@dataclass(frozen=True, slots=True)
class _Shown:
    """Section that is rendered: its units, by the lines where whole blocks and rows begin."""

    section: Joined
    blocks: dict[int, int] = field(default_factory=dict)

    def id(self, number: int) -> str:
        unit = self.section.units[number]
        return unit_id(unit.passage, unit.number)

    def mark(self, number: int) -> dict[str, str | int | float]:
        return {"id": self.id(number), "data-unit": ""}

    def parts(self, number: int) -> Sequence[int]:
        """Return the unit, and those that continue its block."""
        units, end = self.section.units, number + 1
        while end < len(units) and units[end].continues:
            end += 1
        return range(number, end)

    def text(self, unit: Marked) -> str:
        return self.section.text[unit.start : unit.end]


def _with_signs(section: Joined) -> tuple[str, _Shown]:
    """Return the Markdown of a section with signs where units start and end."""
    text = without_signs(section.text) if UNIT in section.text else section.text
    starts, ends = [], []
    for number, unit in enumerate(section.units):
        if unit.continues:
            continue
        is_block = unit.kind in (*_WHOLE, UnitKind.ROW)
        sign = f"{UNIT}{number}{'!' if is_block else '.'}"
        place = section.text.rfind("\n", 0, unit.start) + 1 if is_block else unit.start
        starts.append(Mark(place, place, MarkKind.INSERTED, sign))
        if not is_block:
            ends.append(Mark(unit.end, unit.end, MarkKind.INSERTED, f"{UNIT}."))
    lines = markdown(text, in_order((*ends, *with_own_links(section.marks), *starts))).split("\n")
    shown = _Shown(section)
    for number, line in enumerate(lines):
        if (found := _BLOCK_SIGN.search(line)) is not None:
            shown.blocks[number] = int(found[1])
            lines[number] = line.replace(found[0], "")
    return "\n".join(lines), shown


# --- tokens to HTML -------------------------------------------------------------------------------


@cache
def _grammar() -> MarkdownIt:
    parser = make_grammar(_PageRenderer)
    parser.inline.ruler.before("backticks", "unit", _unit)
    parser.inline.add_terminator_char(UNIT)
    return parser


def _unit(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != UNIT:
        return False
    found = _UNIT_SIGN.match(state.src, state.pos)
    if not silent:
        token = state.push("unit_open" if found else "unit_close", "span", 1 if found else -1)
        token.meta["unit"] = int(found[1]) if found else -1
    state.pos = found.end() if found else state.pos + 2
    return True


class _PageRenderer(Renderer):
    """Renders blocks with the ids of their units, and puts frames around code, tables and notes."""

    def render(self, tokens: Sequence[Token], options: OptionsDict, env: EnvType) -> str:
        return super().render(list(_arranged(tokens, env["shown"])), options, env)

    def unit_open(
        self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType
    ) -> str:
        token, shown = tokens[at], env["shown"]
        token.attrs = shown.mark(token.meta["unit"])
        close = next((n for n in range(at, len(tokens)) if tokens[n].type == "unit_close"), at)
        if any(each.type == "maths_inline" for each in tokens[at:close]):
            # The text of rendered maths differs from that quoted in a citation.
            token.attrs["data-words"] = shown.text(shown.section.units[token.meta["unit"]])
        return self.renderToken(tokens, at, options, env)

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[at]
        language = token.info.strip().partition(" ")[0]
        named = f'<span class="language">{escape(language)}</span>' if language else ""
        title = self.renderInline(token.children, options, env) if token.children else ""
        titled = f'<span class="name">{title}</span>' if title else ""
        caption = f"<figcaption>{titled}{named}</figcaption>" if titled or named else ""
        code = _scroll("Code", super().fence(tokens, at, options, env))
        return _framed("figure", token, env, f"{caption}{code}", {"class": "code", "dir": "ltr"})

    def maths_block(
        self, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType
    ) -> str:
        html = super().maths_block(tokens, at, options, env)
        words = tokens[at].content.strip()
        return _framed("div", tokens[at], env, html, {"class": "maths", "data-words": words})

    def table_open(self, *_: object) -> str:
        return f"{_SCROLL.format('Table')}<table>"

    def table_close(self, *_: object) -> str:
        return "</table></div>"


_SCROLL = '<div class="scroll" tabindex="0" role="group" aria-label="{}">'


def _scroll(name: str, html: str) -> str:
    """Wrap a wide block in a container that scrolls, by keyboard, too."""
    return f"{_SCROLL.format(name)}{html}</div>"


def _framed(tag: str, token: Token, env: EnvType, html: str, attributes: dict[str, str]) -> str:
    """Return code or maths; a citation of any part of it links to the whole block."""
    shown: _Shown = env["shown"]
    number = shown.blocks.get(token.map[0] if token.map else -1)
    ids = [shown.id(part) for part in shown.parts(number)] if number is not None else []
    marks = [f'id="{each}" data-unit=""' for each in ids] or [""]
    given = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    outer = "".join(f"<div {mark}>" for mark in reversed(marks[1:]))
    return f"{outer}<{tag} {marks[0]}{given}>{html}</{tag}>{'</div>' * len(marks[1:])}\n"


def _arranged(tokens: Sequence[Token], shown: _Shown) -> Iterator[Token]:
    """Yield the tokens with directions and ids of rows, and titles of code in their captions."""
    notes: list[bool] = []  # of the open quotations, whether they are notes
    skipped = 0
    for at, token in enumerate(tokens):
        if at < skipped:
            continue
        if token.type in _WITH_DIRECTION:
            token.attrSet("dir", "auto")
        match token.type:
            case "th_open":
                token.attrSet("scope", "col")
            case "tr_open" if token.map and token.map[0] in shown.blocks:
                token.attrs.update(shown.mark(shown.blocks[token.map[0]]))
            case "paragraph_open" if _is_title(tokens, at):
                tokens[at + 3].children = tokens[at + 1].children
                skipped = at + 3
                continue
            case "blockquote_open":
                title = tokens[at + 2].content.replace("*", "") if len(tokens) > at + 2 else ""
                note = NOTE.fullmatch(_ANY_SIGN.sub("", title))
                notes.append(note is not None)
                if note is not None:
                    token.tag = "aside"
                    token.attrs = {"class": f"note {note[1].lower()}"}
                    tokens[at + 1].attrSet("class", "title")
            case "blockquote_close" if notes.pop():
                token.tag = "aside"
        yield token


def _is_title(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a paragraph is right above code, without an empty line between them."""
    if at + 3 >= len(tokens) or tokens[at + 3].type != "fence" or tokens[at].hidden:
        return False
    above, code = tokens[at].map or [], tokens[at + 3].map or []
    return above[1:] == code[:1]


@cache
def _cleaner() -> nh3.Cleaner:
    return make_cleaner(_PAGE_TAGS, _PAGE_ATTRIBUTES)
