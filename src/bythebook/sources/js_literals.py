"""Minimal JavaScript scanner that skips expressions and reads literals; nothing is executed.

``skip_expression`` finds the end of ``{…}``; ``read_literal`` converts a literal to Python values,
with ``UNKNOWN`` for every value that is not a plain literal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bythebook.language.text import well_formed

_BLANK = re.compile(r"(?:\s++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\n]*+)*+")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\[\s\S])*+\"|'(?:[^'\\\n]|\\[\s\S])*+'")
_TEMPLATE = re.compile(r"`(?:[^`\\]|\\[\s\S])*+`")
# A run of plain code, a string, a comment, or a single character: also a quote without its pair.
_PIECE = re.compile(
    rf"[^{{}}()\[\]\"'`/\\]++|\\[\s\S]|{_STRING.pattern}|{_TEMPLATE.pattern}"
    r"|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|(?<!:)//[^\n]*+|[\s\S]"
)
_NUMBER = re.compile(r"-?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?![\w$])")
_ROUNDED = re.compile(r"Math\.(round|floor|ceil)\(([^()]*)\)")
_BINARY = re.compile(r"([\w.$]+)\s*([-+*/])\s*([\w.$]+)")
_INSERTED = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_OBJECT = re.compile(r"(?:\A|=|\bdefault|\breturn|\()\s*(?=\{)")
_TYPE_NOTE = re.compile(r"(?:satisfies|as)\s")
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])")
_PLAIN_ESCAPES = {**dict(zip("ntrbfv", "\n\t\r\b\f\v", strict=True)), "0": "", "\n": ""}
_OPENERS, _CLOSERS = frozenset("{(["), frozenset("})]")
_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class _Unknown:
    def __bool__(self) -> bool:
        return False


UNKNOWN = _Unknown()


class ScanBudget:
    """ScanBudget of characters for failed scans, which keeps malformed input in linear time."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = 16 * size + 4096


def skip_expression(source: str, start: int, end: int, budget: ScanBudget) -> int:
    """Return the offset after the ``}`` that closes the ``{`` at ``start``, or -1."""
    if budget.left <= 0:
        return -1
    close = skip_brackets(source, start, end)
    budget.left -= (close if close > 0 else end) - start
    return close


def skip_brackets(source: str, start: int, end: int) -> int:
    """Return the offset after the bracket that closes the one at ``start``, or -1."""
    for piece, depth in pieces(source, start, end):
        if depth <= 0:
            return piece.end()
    return -1


def pieces(source: str, start: int, end: int) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the pieces of code, each with the number of brackets that are open after it."""
    depth = 0
    for piece in _PIECE.finditer(source, start, end):
        text = piece.group()
        depth += (text in _OPENERS) - (text in _CLOSERS)
        yield piece, depth


def is_comment(code: str) -> bool:
    """Return whether the code is empty or contains only comments."""
    return _skip_blank(code, 0) >= len(code)


def _skip_blank(source: str, offset: int) -> int:
    match = _BLANK.match(source, offset)
    return match.end() if match else offset


def unquote(string: str) -> str:
    """Return the text of a string or template literal."""
    return well_formed(_ESCAPE.sub(_unescape, string[1:-1]))


def _unescape(match: re.Match[str]) -> str:
    char = match.group(1)
    if len(char) > 1:
        point = int(char.strip("ux{}"), 16)
        return chr(point) if point < 0x110000 else "\ufffd"
    return _PLAIN_ESCAPES.get(char, char)


def read_literal(source: str) -> object:
    """Return the value of an expression, or UNKNOWN unless all of it is a literal."""
    value, offset = read_value(source, 0)
    return value if _skip_blank(source, offset) >= len(source) else UNKNOWN


def evaluate(code: str, values: Mapping[str, object]) -> object:
    """Return the value of a literal, a name in ``values``, or a template or sum of those."""
    code = code.strip()
    if code in values:
        return values[code]
    if found := _ROUNDED.fullmatch(code):
        number = evaluate(found[2], values)
        shift = {"round": 0.5, "floor": 0.0, "ceil": 0.0}[found[1]]
        rounded = math.ceil if found[1] == "ceil" else math.floor
        return rounded(number + shift) if isinstance(number, (int, float)) else UNKNOWN
    if found := _BINARY.fullmatch(code):
        left, right = evaluate(found[1], values), evaluate(found[3], values)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            if found[2] == "/":
                return left / right if right else UNKNOWN
            return {"+": left + right, "-": left - right, "*": left * right}[found[2]]
    if _TEMPLATE.fullmatch(code) and "${" in code:
        inner = [evaluate(part, values) for part in _INSERTED.findall(code)]
        is_known = all(isinstance(part, (str, int, float)) for part in inner)
        texts = iter(inner)
        return unquote(_INSERTED.sub(lambda _: str(next(texts)), code)) if is_known else UNKNOWN
    return read_literal(code)


def read_objects(source: str) -> Iterator[Mapping[str, object]]:
    """Yield the objects that a program assigns, exports or returns, without those inside them."""
    offset = 0
    while (match := _OBJECT.search(source, offset)) is not None:
        value, after = read_value(source, match.end())
        offset = match.end()
        if isinstance(value, dict):
            offset = max(offset, after)
            yield value


def read_value(source: str, offset: int, depth: int = 0) -> tuple[object, int]:
    """Read one value; return it and the offset after it. Containers may hold UNKNOWN values."""
    value, offset = _read_term(source, _skip_blank(source, offset), depth)
    while True:
        offset = _skip_blank(source, offset)
        if not source.startswith("+", offset):
            break
        more, offset = _read_term(source, _skip_blank(source, offset + 1), depth)
        value = value + more if isinstance(value, str) and isinstance(more, str) else UNKNOWN
    rest = source[offset : offset + 1]
    if rest and rest not in ",;}])\n" and not _NAME.match(source, offset):
        value = UNKNOWN  # `'a' ? b : c`, `'a'.repeat(3)`: not a plain literal
    return value, offset


def _read_term(source: str, offset: int, depth: int) -> tuple[object, int]:
    if depth > _MAX_DEPTH or offset >= len(source):
        return UNKNOWN, len(source)
    char = source[offset]
    if char in "{[(":
        read = {"{": _read_object, "[": _read_list, "(": _read_group}[char]
        return read(source, offset + 1, depth + 1)
    if match := _STRING.match(source, offset) or _TEMPLATE.match(source, offset):
        computed = char == "`" and "${" in match.group()
        return (UNKNOWN if computed else unquote(match.group())), match.end()
    if match := _NUMBER.match(source, offset):
        text = match.group()
        return (float(text) if "." in text else int(text)), match.end()
    if match := _NAME.match(source, offset):
        names = {"true": True, "false": False, "null": None, "undefined": None}
        if match.group() in names and not source.startswith((".", "("), match.end()):
            return names[match.group()], match.end()
    return UNKNOWN, _skip_value(source, offset)


def _skip_value(source: str, offset: int) -> int:
    """Skip any value, up to the comma or bracket that ends it."""
    for piece, depth in pieces(source, offset, len(source)):
        if depth < 0:
            return piece.start()
        comma = piece.group().find(",")
        if depth == 0 and comma >= 0 and piece.group()[0] not in "\"'`/":
            return piece.start() + comma
    return len(source)


def _read_group(source: str, offset: int, depth: int) -> tuple[object, int]:
    """Read ``({…})``, common in configurations: `/** @type … */ ({docs: …})`."""
    value, after = read_value(source, offset, depth)
    after = _skip_blank(source, after)
    return (value, after + 1) if source.startswith(")", after) else (UNKNOWN, len(source))


def _read_list(source: str, offset: int, depth: int) -> tuple[object, int]:
    values: list[object] = []
    while (offset := _skip_blank(source, offset)) < len(source):
        if source[offset] == "]":
            return values, offset + 1
        if source[offset] == ",":
            offset += 1
            continue
        value, after = _read_member(source, offset, depth)
        values.append(value)
        if after <= offset:
            break
        offset = after
    return UNKNOWN, len(source)


def _read_object(source: str, offset: int, depth: int) -> tuple[object, int]:
    values: dict[str, object] = {}
    while (offset := _skip_blank(source, offset)) < len(source):
        if source[offset] == "}":
            return values, offset + 1
        if source[offset] == ",":
            offset += 1
            continue
        key, after = _read_key(source, offset)
        if key is None:
            after = _skip_value(source, offset)  # a spread, a method, a shorthand
        else:
            values[key], after = _read_member(source, after, depth)
        if after <= offset:
            break
        offset = after
    return UNKNOWN, len(source)


def _read_member(source: str, offset: int, depth: int) -> tuple[object, int]:
    value, after = read_value(source, offset, depth)
    after = _skip_blank(source, after)
    if _TYPE_NOTE.match(source, after):  # TypeScript: `{…} satisfies Options`
        return value, _skip_value(source, after)
    if after < len(source) and source[after] not in ",}]":
        return UNKNOWN, _skip_value(source, after)
    return value, after


def _read_key(source: str, offset: int) -> tuple[str | None, int]:
    match = _STRING.match(source, offset) or _NAME.match(source, offset)
    if match is None:
        return None, offset
    after = _skip_blank(source, match.end())
    if not source.startswith(":", after):
        return None, offset
    key = match.group()
    return (unquote(key) if key[0] in "\"'" else key), after + 1
