"""Translate validation errors into messages that name the field, the limit and the input.

Works on the error dictionaries of pydantic (``type``, ``loc``, ``input``, ``ctx``). Pydantic's
messages are never passed on. The input is echoed only if it is short and harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Detail = Mapping[str, Any]  # one pydantic error

_LONGEST_ECHO = 40
_LONGEST_FIELD = 60
_PUNCTUATION = frozenset(" .,:;+-_/@#!?()'")
_ORIGINS = ("body", "path", "query", "header", "cookie")  # FastAPI prefixes the field with one

# The expected value for each error type, in "<input> is not <this>"; web_address is our own type.
_WANTED = {
    kind: wanted
    for wanted, kinds in {
        "a text": "string_type string_sub_type bytes_type",
        "a whole number": "int_type int_parsing int_from_float",
        "a whole number of a usable size": "int_parsing_size",
        "a number": "float_type float_parsing decimal_type decimal_parsing",
        "a finite number": "finite_number",
        "true or false": "bool_type bool_parsing",
        "null": "none_required",
        "a list": "list_type tuple_type set_type frozen_set_type iterable_type",
        "an object": "dict_type mapping_type model_type model_attributes_type dataclass_type",
        "a UUID": "uuid_type uuid_parsing",
        "a date with a time, such as 2025-12-15T10:00:00Z": "datetime_type datetime_parsing "
        "datetime_from_date_parsing datetime_object_invalid",
        "a time with a time zone": "timezone_naive",
        "a time without a time zone": "timezone_aware",
        "a date, such as 2025-12-15": "date_type date_parsing date_from_datetime_parsing",
        "a time, such as 10:00:00": "time_type time_parsing",
        "an address": "url_type url_parsing url_syntax_violation",
        "an address of the web (http or https)": "url_scheme web_address",
        "a path": "path_type",
    }.items()
    for kind in kinds.split()
}
# The complete message of error types that need no input or limit.
_MESSAGES = {
    "missing": "is missing",
    "missing_argument": "is missing",
    "extra_forbidden": "is not known here",
    "unexpected_keyword_argument": "is not known here",
    "string_unicode": "holds characters that are not valid Unicode",
    "nul_character": "holds a NUL character (U+0000)",  # not a pydantic type
    "string_pattern_mismatch": "does not have the form that is needed",
    "json_invalid": "is not JSON",
    "json_type": "is not JSON",
    "url_too_long": "is too long for an address",
}
_LIMITS = {  # the key of the limit in ``ctx``, and its message
    "greater_than_equal": ("ge", "at least {} is needed"),
    "greater_than": ("gt", "more than {} is needed"),
    "less_than_equal": ("le", "at most {} is allowed"),
    "less_than": ("lt", "less than {} is allowed"),
    "multiple_of": ("multiple_of", "a multiple of {} is needed"),
}
_UNUSABLE = "cannot be used as it is"


def message_of(errors: Sequence[Detail], given: object = None) -> tuple[str, str]:
    """Return a message about the first error, and the name of its field.

    ``given`` is the validated data. For a union, the most deeply nested error is reported: it
    belongs to the type that was meant.
    """
    first = field_of(errors[0], given)
    below = [error for error in errors if field_of(error, given)[: len(first)] == first]
    error = max(below, key=lambda error: len(field_of(error, given)))
    field = _name(field_of(error, given))
    if error["type"] in ("value_error", "assertion_error"):  # raised by a contract's validator
        return f"{str(error['ctx']['error']).rstrip('.')}.", field
    problem = describe_error(error)
    return (f"{field}: {problem}." if field else f"The body {_of_body(error, problem)}."), field


def field_of(error: Detail, given: object = None) -> tuple[str | int, ...]:
    """Return the path of the field, without the parts that are not in the data.

    These are FastAPI's leading "body", and the type names of a union.
    """
    path = tuple(error["loc"])
    if path and path[0] in _ORIGINS:
        given = None if path[0] != "body" else given
        path = path[1:]
    if given is None:
        return path
    kept: list[str | int] = []
    for part in path:
        if isinstance(given, Mapping) and part in given:
            given = given[part]
        elif isinstance(given, Sequence) and not isinstance(given, str) and isinstance(part, int):
            given = given[part] if part < len(given) else None
        elif error["type"] != "missing" or part != path[-1]:
            continue
        kept.append(part)
    return tuple(kept)


def shown(value: object) -> str:
    """Format an input value for a message; only describe it if it is long or harmful."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value) if value.bit_length() < 100 else "a number of many digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return f'"{value}"' if is_harmless(value) else f"a text of {_counted(value)}"
    if isinstance(value, bytes):
        return "what was sent"
    return "a list" if isinstance(value, list | tuple | set | frozenset) else "an object"


def is_harmless(text: str) -> bool:
    """Return whether a text may be echoed: short, on one line, and without markup."""
    return len(text) <= _LONGEST_ECHO and _is_plain(text)


def _is_plain(text: str) -> bool:
    return all(char in _PUNCTUATION or (char.isalnum() and char.isprintable()) for char in text)


def describe_error(error: Detail) -> str:
    """Return what is wrong with one value, without the field name and the full stop."""
    kind, sent = error["type"], error.get("input")
    tell = _SPECIAL.get(kind)
    if tell is not None:
        return tell(error)
    if kind in _WANTED:
        return f"{shown(sent)} is not {_WANTED[kind]}"
    if kind in _LIMITS:
        name, rule = _LIMITS[kind]
        return f"is {shown(sent)}; {rule.format(_limit(error['ctx'][name]))}"
    return _MESSAGES.get(kind, _UNUSABLE)


def _too_short(error: Detail) -> str:
    least = error["ctx"]["min_length"]
    return f"has {_length(error)}; at least {least} {_are(least)} needed"


def _too_long(error: Detail) -> str:
    most = error["ctx"]["max_length"]
    return f"has {_length(error)}; at most {most} {_are(most)} allowed"


def _length(error: Detail) -> str:
    """Return the length of the input as text; a string is trimmed first."""
    sent = error.get("input")
    if not isinstance(sent, str):
        count = error["ctx"].get("actual_length")
        return "more entries" if count is None else _several(count, "entr", "y", "ies")
    trimmed = sent.strip()
    note = "" if trimmed == sent else " (after trimming)"
    return f"{_counted(trimmed)}{note}"


def _counted(text: str) -> str:
    return _several(len(text), "character", "", "s")


def _several(count: int, word: str, one: str, more: str) -> str:
    return f"{count} {word}{one if count == 1 else more}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _limit(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _other_version(error: Detail) -> str:
    wanted = error["ctx"]["expected_version"]
    return f"{shown(_plain(error.get('input')))} is not a UUID of version {wanted}"


def _not_one_of(error: Detail) -> str:
    expected = str(error["ctx"]["expected"]).replace("'", '"')
    return f"{shown(_plain(error.get('input')))} is not allowed; use {expected}"


def _plain(value: object) -> object:
    """Return a UUID as the text that it was sent as; other values unchanged."""
    known = (str, int, float, bool, list, tuple, Mapping, bytes)
    return value if value is None or isinstance(value, known) else str(value)


_SPECIAL: Mapping[str, Callable[[Detail], str]] = {
    "string_too_short": _too_short,
    "string_too_long": _too_long,
    "bytes_too_short": _too_short,
    "bytes_too_long": _too_long,
    "too_short": _too_short,
    "too_long": _too_long,
    "uuid_version": _other_version,
    "enum": _not_one_of,
    "literal_error": _not_one_of,
}


def _of_body(error: Detail, problem: str) -> str:
    if error["type"] == "missing":
        return "is missing; send a JSON object"
    if _WANTED.get(error["type"]) == "an object":
        return f"is {_kind(error.get('input'))}; send a JSON object"
    return problem if error["type"] in _MESSAGES else _UNUSABLE


def _kind(sent: object) -> str:
    return "a text" if isinstance(sent, str | bytes) else shown(sent)


def _name(path: Sequence[str | int]) -> str:
    name = ".".join(map(str, path))
    return name if len(name) <= _LONGEST_FIELD and _is_plain(name) else "a field"
