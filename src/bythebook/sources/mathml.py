"""Formulas of MathML as text like TeX: ``\\frac{a}{b}``, ``\\sqrt{n}``, ``x_i^2``.

The elements may be of the standard library or of lxml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from xml.etree.ElementTree import Element, SubElement

from bythebook.language.text import word_set

_DEEPEST = 60  # elements nested deeper are read as their text
_UNSEEN = word_set("annotation annotation-xml mphantom mprescripts none")
_WHOLE = word_set("mi mn mo ms mtext mglyph")
_INVISIBLE = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b\u2009"))
_OPENING, _CLOSING, _TIGHT = "([{⟨⌈⌊", ")]}⟩⌉⌋", "/|‖"
_AFTER = ",;:.!′″‴'%°"  # written without a blank before
_PRIMES = ("′", "″", "‴", "'")
_ACCENTS = {  # the signs as characters of their own, then as combining ones
    **dict.fromkeys("¯‾ˉ―\u0304\u0305", "bar"),
    **dict.fromkeys("^ˆ\u0302", "hat"),
    **dict.fromkeys("~˜\u0303", "tilde"),
    **dict.fromkeys("→⇀\u20d7", "vec"),
    **dict.fromkeys(".˙\u0307", "dot"),
    **dict.fromkeys("¨\u0308", "ddot"),
    **dict.fromkeys("_\u0332", "underline"),
    "⏞": "overbrace",
    "⏟": "underbrace",
}
_TEX_ENCODING = re.compile(r"tex(?![a-z])", re.I)
# A command, a script, or nothing longer than two letters.
_TEX = re.compile(r"\\[a-zA-Z]|\w[\^_]|\A(?:[^\W\d_]{1,2}+(?![^\W\d_])|[\W\d_])++\Z")
_FILE = re.compile(r"\w\.[a-z]{3,4}\Z")
_STARMATH = re.compile(r"\bsize \d+\s*\{|\} over \{|\br?[Ss](?:ub|up) \{")
_PLACEHOLDER = re.compile(
    r"(?:alternat\w+ text\b.*|(?:image|math\w*|formula|equation|figure|graphic)\W*\d*)?", re.I
)
_CELL = "\x1f"  # between the cells of a row, until the table is known to be a matrix
_COUNTS = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}


def tex_in(markup: str) -> str:
    """Return the source of the formula that the element ``<math>`` of a text of HTML is."""
    parser = _Parser()
    parser.feed(markup)
    found = parser.root.find("math")
    return "" if found is None else tex_of(found)


class _Parser(HTMLParser):
    """Parser of elements; lenient like a browser."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(SubElement(self._open[-1], tag, {name: v or "" for name, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if any(element.tag == tag for element in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        around = self._open[-1]
        if len(around):
            around[-1].tail = (around[-1].tail or "") + data
        else:
            around.text = (around.text or "") + data


def tex_of(element: Element) -> str:
    """Return TeX that the author or a converter has left, or else make it of the elements."""
    for annotation in element.iterfind(".//annotation"):
        text = (annotation.text or "").strip()
        if _TEX_ENCODING.search(annotation.get("encoding", "")) and not _STARMATH.search(text):
            return text
    alternative = " ".join(element.get("alttext", "").split())
    is_tex = _TEX.search(alternative) and not _FILE.search(alternative)
    if is_tex and not _STARMATH.search(alternative):
        return alternative
    made = " ".join(_row(list(_parts(element, 0))).replace(_CELL, " ").split())
    return made or ("" if _PLACEHOLDER.fullmatch(alternative) else alternative)


def _parts(element: Element, depth: int, *, is_fenced: bool = False) -> Iterator[str]:
    """Yield operands and operators. Elements that only group others have no braces."""
    tag = element.tag
    if tag in _UNSEEN or not isinstance(tag, str):
        return
    count = _COUNTS.get(tag, len(element))  # with another number of parts, it is a row
    write = _WRITERS.get(tag) if count == len(element) else None
    if tag in _WHOLE or depth > _DEEPEST:
        yield " ".join((element.get("alt") or _text(element)).translate(_INVISIBLE).split())
    elif tag == "mtable":
        yield _table([_row(parts) for _, parts in _inner(element, depth)], is_fenced=is_fenced)
    elif write is not None:
        yield write(element, [_row(parts) for _, parts in _inner(element, depth)])
    else:
        yield " ".join((element.text or "").split())
        for child, parts in _inner(element, depth):
            yield from parts
            yield " ".join((child.tail or "").split())
            if tag in ("semantics", "maction"):
                break  # the others are alternatives


def _inner(element: Element, depth: int) -> Iterator[tuple[Element, list[str]]]:
    """Yield the children with their parts. A table is a matrix if it is in brackets."""
    before: Element | None = None
    for child in element:
        is_fenced = element.tag == "mfenced" or (
            child.tag == "mtable"
            and before is not None
            and _text(before).strip().endswith(("(", "[", "{", "|", "‖", "⟨"))
        )
        yield child, list(_parts(child, depth + 1, is_fenced=is_fenced))
        before = child


def _text(element: Element) -> str:
    return "".join(map(str, element.itertext()))


def _row(parts: Sequence[str]) -> str:
    text, is_prefix = "", True
    before = ""
    for part in filter(None, parts):
        text += _gap(before, part, is_prefix=is_prefix) + part
        is_prefix = not before or before[-1] in _OPENING or _is_operator(before)
        before = part
    return text


def _gap(before: str, part: str, *, is_prefix: bool) -> str:
    """Return the blank between two parts. ``is_prefix``: no operand stands left of ``before``."""
    if not before or part[0] in _CLOSING + _AFTER + _TIGHT or before[-1] in _OPENING + _TIGHT:
        return ""
    if _is_operator(before):
        return "" if is_prefix and before in "+-−–±∓¬∇∂" else " "
    if part[0] in _OPENING:
        return " " if before in _AFTER else ""
    return "" if before.isdecimal() and len(part) == 1 and part.isalpha() else " "


def _is_operator(part: str) -> bool:
    is_symbol = not any(map(str.isalnum, part)) and part[0] not in "∞∅⊤⊥…⋯⋮"
    return is_symbol and part[0] not in _OPENING + _CLOSING + _AFTER + _TIGHT


def _braced(text: str) -> str:
    return text if len(text) == 1 else f"{{{text}}}"


def _scripts(base: str, below: str, above: str) -> str:
    is_simple = " " not in base or base[-1] in _CLOSING
    text = base if is_simple else f"{{{base}}}"
    if above in _PRIMES:
        text, above = text + above, ""
    return text + (below and f"_{_braced(below)}") + (above and f"^{_braced(above)}")


def _scripted(element: Element, parts: Sequence[str]) -> str:
    base, below, above = (*parts, "")[:3]
    if element.tag in ("msup", "mover"):
        below, above = "", below
    name = _ACCENTS.get(above or below)
    if name and base and element.tag in ("mover", "munder"):
        return f"\\{name}{{{base}}}"
    return _scripts(base, below, above)


def _multiscripts(element: Element, parts: Sequence[str]) -> str:
    tags = [child.tag for child in element]
    end = tags.index("mprescripts") if "mprescripts" in tags else len(parts)
    texts = [
        _scripts("", *pair)
        for some in (parts[end + 1 :], parts[1:end])
        for pair in zip_longest(some[::2], some[1::2], fillvalue="")
    ]
    left = (len(parts[end + 1 :]) + 1) // 2
    return "".join((*texts[:left], *parts[:1], *texts[left:]))


def _fraction(element: Element, parts: Sequence[str]) -> str:
    above, below = parts
    if element.get("linethickness", "").startswith("0"):
        return f"{{{above} \\atop {below}}}"
    return f"\\frac{{{above}}}{{{below}}}"


def _fenced(element: Element, parts: Sequence[str]) -> str:
    sign = (element.get("separators", ",").split() or [""])[0]
    inner = f"{sign} ".join(parts)
    return element.get("open", "(") + inner + element.get("close", ")")


def _table(parts: Sequence[str], *, is_fenced: bool) -> str:
    """Return the rows of a matrix, or else the lines of an aligned formula."""
    lines = " \\\\ ".join(parts).replace(_CELL, " & " if is_fenced else " ")
    if not is_fenced:
        return lines
    return f"\\begin{{matrix}} {lines} \\end{{matrix}}"


_WRITERS: dict[str, Callable[[Element, Sequence[str]], str]] = {
    "mfrac": _fraction,
    "msqrt": lambda _, parts: f"\\sqrt{{{_row(parts)}}}",
    "mroot": lambda _, parts: f"\\sqrt[{parts[1]}]{{{parts[0]}}}",
    **dict.fromkeys(("msub", "msup", "msubsup", "munder", "mover", "munderover"), _scripted),
    "mmultiscripts": _multiscripts,
    "mfenced": _fenced,
    **dict.fromkeys(("mtr", "mlabeledtr"), lambda _, parts: _CELL.join(parts)),
}
