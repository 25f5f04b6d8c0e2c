"""Elements and text in, markup out. Text is escaped unless it is markup already: book text is not.

What comes out is well-formed as HTML and as XML.
"""

from __future__ import annotations

import re
from html import escape

from bythebook.book.letters import clean

_VOID = frozenset({"meta", "br", "line", "rect", "path", "circle"})
# Characters that XML does not have, and halves of surrogate pairs.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that has been made into markup."""

    __slots__ = ()


def text(content: str) -> Markup:
    return content if isinstance(content, Markup) else Markup(escape(clean(_bare(content))))


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """``class_`` is class and ``aria_label`` is aria-label; an attribute of None is left out."""
    start = name + "".join(
        f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None
    )
    if name in _VOID and not children:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{joined(*children)}</{name}>")


def joined(*parts: str) -> Markup:
    return Markup("".join(text(part) for part in parts))


def _bare(content: str) -> str:
    return _CONTROLS.sub("\ufffd", content)


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return text(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
