"""Formulas of MathML as text like TeX: ``\\frac{a}{b}``, ``\\sqrt{n}``, ``x_i^2``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from bythebook.language.text import word_set
from bythebook.sources.html.tree import Element, all_text

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
_CELL = "\x1f"  # between the cells of a row, until the table is known to be a matrix
_COUNTS = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}


def tex_of(element: Element) -> str:
    """Return a formula, or a part of one, on one line."""
    return " ".join(_row(list(_parts(element, 0))).replace(_CELL, " ").split())


def _parts(element: Element, depth: int) -> Iterator[str]:
    """Yield operands and operators. Elements that only group others have no braces."""
    tag = element.tag
    if tag in _UNSEEN or not isinstance(tag, str):
        return
    count = _COUNTS.get(tag, len(element))  # with another number of parts, it is a row
    write = _WRITERS.get(tag) if count == len(element) else None
    if tag in _WHOLE or depth > _DEEPEST:
        yield " ".join((element.get("alt") or all_text(element)).translate(_INVISIBLE).split())
    elif write is not None:
        yield write(element, [_row(list(_parts(child, depth + 1))) for child in element])
    else:
        yield " ".join((element.text or "").split())
        for child in element:
            yield from _parts(child, depth + 1)
            yield " ".join((child.tail or "").split())
            if tag in ("semantics", "maction"):
                break  # the others are alternatives


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


def _table(element: Element, parts: Sequence[str]) -> str:
    """Return the rows of a matrix, or else the lines of an aligned formula."""
    before, parent = element.getprevious(), element.getparent()
    is_fenced = before is not None and all_text(before).strip()[-1:] in tuple("([{|‖⟨")
    is_fenced = is_fenced or (parent is not None and parent.tag == "mfenced")
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
    "mtable": _table,
    **dict.fromkeys(("mtr", "mlabeledtr"), lambda _, parts: _CELL.join(parts)),
}
