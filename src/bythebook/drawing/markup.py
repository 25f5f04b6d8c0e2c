"""Build markup that is well-formed as HTML and as XML.

Every string is escaped unless it is a ``Markup`` instance, so text from the book always is.
"""

from __future__ import annotations

import re
from html import escape

from bythebook.language.text import clean

_VOID = frozenset({"meta", "br", "line", "rect", "path", "circle"})
# Characters that are invalid in XML, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """String that is already markup and is not escaped again."""

    __slots__ = ()


def text(content: str) -> Markup:
    return content if isinstance(content, Markup) else Markup(escape(clean(_bare(content))))


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Build an element. ``class_`` means class, ``aria_label`` aria-label; None is omitted."""
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
