"""Minimal JavaScript scanner that skips expressions and reads literals; nothing is executed.

``skip_expression`` finds the end of ``{…}``; ``read_literal`` converts a literal to Python values,
with ``UNKNOWN`` for every value that is not a plain literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BRACKETS = re.compile(r"[{}()\[\]\"'`/]")
_SPACE = re.compile(r"\s+")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*'")
_TEMPLATE = re.compile(r"`(?:[^`\\]|\\[\s\S])*`")
_NUMBER = re.compile(r"-?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?![\w$])")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_TYPE_NOTE = re.compile(r"(?:satisfies|as)\s")
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])")
_PLAIN_ESCAPES = {**dict(zip("ntrbfv", "\n\t\r\b\f\v", strict=True)), "0": "", "\n": ""}
_OPENERS, _CLOSERS = "{([", "})]"
_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class _Unknown:
    def __bool__(self) -> bool:
        return False


UNKNOWN = _Unknown()


class Budget:
    """Budget of characters for failed scans, which keeps malformed input in linear time."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = 16 * size + 4096


def skip_expression(source: str, start: int, end: int, budget: Budget) -> int:
    """Return the offset after the ``}`` that closes the ``{`` at ``start``, or -1."""
    if budget.left <= 0:
        return -1
    close = skip_brackets(source, start, end)
    budget.left -= (close if close > 0 else end) - start
    return close


def skip_brackets(source: str, start: int, end: int) -> int:
    depth, place = 0, start
    unclosed: dict[str, int] = {}  # quote -> offset up to which it has no closing partner
    while True:
        found = _BRACKETS.search(source, place, end)
        if found is None:
            return -1
        place, sign = found.end(), found.group()
        if sign in _OPENERS:
            depth += 1
        elif sign in _CLOSERS:
            depth -= 1
            if depth <= 0:
                return place
        else:
            place = skip_quoted(source, found.start(), end, unclosed)
            if place < 0:
                return -1


def skip_quoted(source: str, start: int, end: int, unclosed: dict[str, int]) -> int:
    """Return the offset after the string, template or comment at ``start``.

    An unclosed quote is skipped as a single character.
    """
    sign = source[start]
    if sign == "/":
        return _skip_comment(source, start, end)
    if unclosed.get(sign, -1) > start:
        return start + 1
    pattern = _TEMPLATE if sign == "`" else _STRING
    found = pattern.match(source, start, end)
    if found is not None:
        return found.end()
    line_end = end if sign == "`" else source.find("\n", start, end)
    unclosed[sign] = end if line_end < 0 else line_end
    return start + 1


def _skip_comment(source: str, start: int, end: int) -> int:
    if source.startswith("/*", start):
        close = source.find("*/", start + 2, end)
        return close + 2 if close >= 0 else -1
    if source.startswith("//", start) and source[start - 1 : start] != ":":
        close = source.find("\n", start, end)
        return close if close >= 0 else end
    return start + 1


def is_comment(code: str) -> bool:
    """Return whether the code is empty or contains only comments."""
    return _skip_blank(code, 0) >= len(code)


def _skip_blank(source: str, place: int) -> int:
    while place < len(source):
        if found := _SPACE.match(source, place):
            place = found.end()
        elif source.startswith(("/*", "//"), place):
            after = _skip_comment(source, place, len(source))
            if after <= place + 1:
                return place
            place = after
        else:
            break
    return place


def unquote(string: str) -> str:
    """Return the text of a string or template literal."""
    return _ESCAPE.sub(_unescape, string[1:-1])


def _unescape(found: re.Match[str]) -> str:
    sign = found.group(1)
    if len(sign) > 1:
        point = int(sign.strip("ux{}"), 16)
        return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\ufffd"
    return _PLAIN_ESCAPES.get(sign, sign)


def read_literal(source: str) -> object:
    """Return the value of an expression, or UNKNOWN unless all of it is a literal."""
    value, place = read_value(source, 0)
    return value if _skip_blank(source, place) >= len(source) else UNKNOWN


def read_value(source: str, place: int, depth: int = 0) -> tuple[object, int]:
    """Read one value; return it and the offset after it. Containers may hold UNKNOWN values."""
    value, place = _read_term(source, _skip_blank(source, place), depth)
    while True:
        place = _skip_blank(source, place)
        if not source.startswith("+", place):
            break
        more, place = _read_term(source, _skip_blank(source, place + 1), depth)
        value = value + more if isinstance(value, str) and isinstance(more, str) else UNKNOWN
    rest = source[place : place + 1]
    if rest and rest not in ",;}])\n" and not _NAME.match(source, place):
        value = UNKNOWN  # `'a' ? b : c`, `'a'.repeat(3)`: not a plain literal
    return value, place


def _read_term(source: str, place: int, depth: int) -> tuple[object, int]:
    if depth > _MAX_DEPTH or place >= len(source):
        return UNKNOWN, len(source)
    sign = source[place]
    if sign in "{[(":
        read = {"{": _read_object, "[": _read_list, "(": _read_group}[sign]
        return read(source, place + 1, depth + 1)
    if found := _STRING.match(source, place) or _TEMPLATE.match(source, place):
        computed = sign == "`" and "${" in found.group()
        return (UNKNOWN if computed else unquote(found.group())), found.end()
    if found := _NUMBER.match(source, place):
        return _number(found.group()), found.end()
    if found := _NAME.match(source, place):
        names = {"true": True, "false": False, "null": None, "undefined": None}
        if found.group() in names and not source.startswith((".", "("), found.end()):
            return names[found.group()], found.end()
    return UNKNOWN, _skip_value(source, place)


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _skip_value(source: str, place: int) -> int:
    """Skip any value, up to the comma or bracket that ends it."""
    end = len(source)
    unclosed: dict[str, int] = {}
    while place < end and source[place] not in ",}])":
        sign = source[place]
        if sign in _OPENERS:
            place = skip_brackets(source, place, end)
        elif sign in "\"'`/":
            place = skip_quoted(source, place, end, unclosed)
        else:
            found = _BRACKETS.search(source, place + 1, end)
            stop = found.start() if found else end
            comma = source.find(",", place + 1, stop)
            place = comma if comma >= 0 else stop
        if place < 0:
            return end
    return place


def _read_group(source: str, place: int, depth: int) -> tuple[object, int]:
    """Read ``({…})``, common in configurations: `/** @type … */ ({docs: …})`."""
    value, after = read_value(source, place, depth)
    after = _skip_blank(source, after)
    return (value, after + 1) if source.startswith(")", after) else (UNKNOWN, len(source))


def _read_list(source: str, place: int, depth: int) -> tuple[object, int]:
    values: list[object] = []
    while (place := _skip_blank(source, place)) < len(source):
        if source[place] == "]":
            return values, place + 1
        if source[place] == ",":
            place += 1
            continue
        value, after = _read_member(source, place, depth)
        values.append(value)
        if after <= place:
            break
        place = after
    return UNKNOWN, len(source)


def _read_object(source: str, place: int, depth: int) -> tuple[object, int]:
    values: dict[str, object] = {}
    while (place := _skip_blank(source, place)) < len(source):
        if source[place] == "}":
            return values, place + 1
        if source[place] == ",":
            place += 1
            continue
        key, after = _read_key(source, place)
        if key is None:
            after = _skip_value(source, place)  # a spread, a method, a shorthand
        else:
            values[key], after = _read_member(source, after, depth)
        if after <= place:
            break
        place = after
    return UNKNOWN, len(source)


def _read_member(source: str, place: int, depth: int) -> tuple[object, int]:
    value, after = read_value(source, place, depth)
    after = _skip_blank(source, after)
    if _TYPE_NOTE.match(source, after):  # TypeScript: `{…} satisfies Options`
        return value, _skip_value(source, after)
    if after < len(source) and source[after] not in ",}]":
        return UNKNOWN, _skip_value(source, after)
    return value, after


def _read_key(source: str, place: int) -> tuple[str | None, int]:
    found = _STRING.match(source, place) or _NAME.match(source, place)
    if found is None:
        return None, place
    after = _skip_blank(source, found.end())
    if not source.startswith(":", after):
        return None, place
    key = found.group()
    return (unquote(key) if key[0] in "\"'" else key), after + 1
