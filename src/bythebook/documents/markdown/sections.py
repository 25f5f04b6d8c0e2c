"""Convert the text of a section to Markdown that is read back as the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bythebook.text.section_blocks import Block, Item, Items, Prose, Rows, Whole, blocks_of
from bythebook.text.section_text import Joined
from bythebook.text.units import NOTE, cells_of, row_of

_HARD_BREAK = "  "

_MATHS = re.compile(
    r"(?<!\$)(?:\$(?![\s$])[^$]+(?<!\s)\$(?![\d$])|\$\$(?!\$)(?:[^$]|\$(?!\$))+\$\$(?!\$))"
)
_SPECIAL = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # an escape
    r"|`"
    r"|\*+|_+|~{2,}"  # emphasis
    r"|<(?=[A-Za-z/!?>])"  # a tag or an address
    r"|[\[\]]"  # a link or a footnote
    r"|&(?=#?\w+;)"  # an entity
    r"|\{(?=#)"  # the id of a heading
)
_LINK_END = re.compile(r"\][(\[:]")
_BLOCK_START = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[+*-](?=\s|$)|:::|(?P<rule>[-=_*])(?P=rule)*\s*$)|(?P<number>\d{1,9})[.)](?=\s|$)"
)


def escape(text: str, *, in_link: bool = False) -> str:
    """Escape the characters of a line that Markdown would take for markup; maths stay as is.

    In the text of a link, all brackets are escaped.
    """
    parts, done = [], 0
    for maths in _MATHS.finditer(text):
        parts += [_escape_words(text[done : maths.start()], in_link), maths.group()]
        done = maths.end()
    return "".join([*parts, _escape_words(text[done:], in_link)])


def _escape_words(text: str, in_link: bool) -> str:
    has_link = _LINK_END.search(text) is not None

    def escaped(found: re.Match[str]) -> str:
        signs, start, end = found.group(), found.start(), found.end()
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        if signs in "[]" and not (in_link or (signs == "[" and (has_link or after == "^"))):
            return signs
        if signs[0] in "*_" and _is_harmless(signs[0], before, after):
            return signs
        return "".join(f"\\{sign}" for sign in signs)

    return _SPECIAL.sub(escaped, text)


def _is_harmless(sign: str, before: str, after: str) -> bool:
    """Return whether a sign cannot start or end emphasis: ``a * b``, ``snake_case``."""
    alone = not (before.strip() or after.strip())
    return alone or (sign == "_" and before.isalnum() and after.isalnum())


def escape_line(text: str) -> str:
    """Escape a line of a paragraph, also what would start another block."""
    start = _BLOCK_START.match(text)
    if start is None:
        return escape(text)
    if (number := start["number"]) is not None:
        return f"{number}\\{escape(text[len(number) :])}"
    return f"\\{text[0]}{escape(text[1:])}"


def escape_heading(text: str) -> str:
    """Escape a heading, also the signs that would close it."""
    line = escape(" ".join(text.split()))
    return re.sub(r"(?:^| )(#+)$", lambda closing: closing.group().replace("#", "\\#"), line)


def section_markdown(section: Joined) -> str:
    """Return the section as Markdown, without its heading."""
    return "\n\n".join(map(_block_markdown, blocks_of(section)))


def _block_markdown(block: Block) -> str:
    if not isinstance(block, Prose):
        return "\n".join(_list(block.items) if isinstance(block, Items) else _lines(block))
    first, *rest = (escape_line(line.text.strip()) for line in block.lines)
    if NOTE.fullmatch(first):
        first = f"**{first}**"
    text = f"{_HARD_BREAK}\n".join((first, *rest))
    if block.below is None:
        return text
    gap = "\n" if isinstance(block.below, Whole) else "\n\n"
    return f"{text}{gap}{_block_markdown(block.below)}"


def _lines(block: Whole | Rows) -> list[str]:
    if isinstance(block, Whole):
        return block.source.split("\n")
    if block.header is None:
        text = f"{_HARD_BREAK}\n".join(escape_line(row.text.strip()) for row in block.rows)
        return text.split("\n")
    header, *rows = (
        row_of([escape(cell) for cell in cells_of(row.text)]) for row in (block.header, *block.rows)
    )
    return [header, block.rule, *rows]


def _list(items: Sequence[Item]) -> list[str]:
    written: list[str] = []
    for item in items:
        marker = f"{'-' if item.mark == '•' else item.mark} "
        indent = max(0, item.indent - items[0].indent)
        written += [""] * item.after_blank
        written.append(f"{' ' * indent}{marker}{escape_line(item.line.text)}".rstrip())
        column, after_prose = indent + len(marker), True
        for block in item.blocks:
            below = block.below if isinstance(block, Prose) else block
            for line in block.lines if isinstance(block, Prose) else ():
                text = line.text.strip()
                at = column
                if line.text[0] == " ":
                    at = max(0, len(line.text) - len(line.text.lstrip()) - items[0].indent)
                if at < column or not after_prose:  # a line of an outer item, or a paragraph
                    written.append("")
                else:
                    written[-1] += _HARD_BREAK
                written.append(" " * at + escape_line(text))
                after_prose = True
            if isinstance(below, Whole | Rows):
                written += [""] * isinstance(below, Rows)
                written += [" " * column + part if part else part for part in _lines(below)]
                after_prose = False
    return written
