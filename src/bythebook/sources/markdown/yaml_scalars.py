"""Fast reader for the YAML subset of most front matter, without a YAML parser.

The subset: names with a plain or quoted scalar, a ``[list]``, or a list on the following lines.
Everything else is left to the full parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# No Unicode line ends, no control characters, nothing that a YAML parser may reject.
_ORDINARY = re.compile("[\n -~\u00a1-\u1fff\u2010-\u2027\u2030-\ud7ff]*")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,60}):(?: +|\Z)")
_ITEM = re.compile(r"( *)- +")
_PLAIN = re.compile(r"[A-Za-z0-9](?:[^:#]|:(?=[A-Za-z0-9/]))*\Z")
_QUOTES = r"(?:\"[^\"\\]*\"|'[^']*') *"
_QUOTED = re.compile(rf"{_QUOTES}\Z")
_LISTED = rf"(?:{_QUOTES}|[A-Za-z0-9][^\[\]{{}}:#,\"']*)"
_LIST = re.compile(rf"\[ *(?:{_LISTED}(?:, *{_LISTED})*)?\] *\Z")
_IN_LIST = re.compile(_LISTED)

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}\Z")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]{1,300}\Z|0x[0-9a-fA-F]{1,300}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: Mapping[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _TooMuch(Exception):
    """The text needs the full parser."""


def plain_value(text: str) -> object:
    """Return the value of an unquoted scalar by the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        return int(text)
    if _OCTAL_OR_HEX.match(text):
        return int(text, 0)
    if len(text) < 400 and _FLOAT.match(text):
        return float(text)
    return text


def read_simple(text: str) -> dict[object, object] | None:
    """Return the names and values, or None if the text is outside the subset."""
    if not text or not _ORDINARY.fullmatch(text):
        return None
    try:
        return _read_lines(text.removesuffix("\n").split("\n"))
    except _TooMuch:
        return None


def _read_lines(lines: list[str]) -> dict[object, object]:
    values: dict[object, object] = {}
    key: object = None
    items: list[object] | None = None  # of a list that may follow on the next lines
    indent = ""
    for line in lines:
        if name := _NAME.match(line):
            key, rest = plain_value(name.group(1)), line[name.end() :]
            values[key], items = (_value(rest), None) if rest else (None, [])
        elif items is not None and (item := _ITEM.match(line)):
            indent = indent if items else item.group(1)
            if item.group(1) != indent:
                raise _TooMuch
            items.append(_scalar(line[item.end() :]))
            values[key] = items
        else:
            raise _TooMuch
    return values


def _value(text: str) -> object:
    if text[0] != "[":
        return _scalar(text)
    if not _LIST.match(text):
        raise _TooMuch
    return [_scalar(item) for item in _IN_LIST.findall(text)]


def _scalar(text: str) -> object:
    if _PLAIN.match(text):
        return plain_value(text.rstrip(" "))
    if _QUOTED.match(text):
        return text.rstrip(" ")[1:-1]
    raise _TooMuch
