"""Reader of front matter (YAML 1.2) at the start of a file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from io import StringIO

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from bythebook.interfaces.source import UnreadableFile
from bythebook.language.text import clean, well_formed

MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 20
_MOST_OPEN = 10 * MAX_DEPTH  # brackets, also inside text: parsing time is quadratic in them

_TOO_DEEP = f"YAML is nested deeper than {MAX_DEPTH} levels"
_BRACKET = re.compile(r"[\[\]{}]")
_ELIXIR = re.compile(r"%\{\r?\n.*?^\}\s*^---[ \t]*(?:\r?\n|\Z)", re.M | re.S)
_STRING = re.compile(r'^[ \t]*(\w+):[ \t]*"([^"\n]+)"', re.M)
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_KINDS = ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in _KINDS}

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}\Z")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]{1,300}\Z|0x[0-9a-fA-F]{1,300}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: Mapping[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class UnreadableFrontMatter(UnreadableFile):
    """Reason why front matter is rejected, with the line of the text (from 1)."""


def read_front_matter(text: str) -> tuple[dict[str, object], int]:
    """Return the front matter and its number of lines, fences included."""
    if text.startswith("+++"):
        return _read_toml(text)
    if text.startswith("%{"):
        found = _ELIXIR.match(text[:MAX_CHARACTERS])
        return (dict(_STRING.findall(found[0])), found[0].count("\n")) if found else ({}, 0)
    head, lines = _split(text)
    if not lines:
        return {}, 0
    if len(head) > MAX_CHARACTERS:
        raise UnreadableFrontMatter("front matter is longer than 64 KiB", 1)
    value = read_yaml(head, first_line=2)
    if value is None:
        return {}, lines
    if not isinstance(value, dict):
        raise UnreadableFrontMatter("front matter is not a list of names and values", 2)
    return {str(key): item for key, item in value.items()}, lines


def _read_toml(text: str) -> tuple[dict[str, object], int]:
    """Read the front matter of Hugo. Other text after ``+++`` is part of the page."""
    lines = text[:MAX_CHARACTERS].splitlines()
    last = next((number for number, line in enumerate(lines) if number and line[:3] == "+++"), 0)
    try:
        return tomllib.loads("\n".join(lines[1:last])), last + 1 if last else 0
    except tomllib.TOMLDecodeError:
        return {}, 0


def front_text(front: Mapping[str, object], key: str) -> str | None:
    """Return a front matter value as a string; like Docusaurus, convert numbers."""
    value = front.get(key)
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return f"{value:g}" if value != value // 1 else str(int(value))


def read_yaml(text: str, *, first_line: int = 1) -> object:
    """Parse one YAML document to Python values. Reject aliases, tags and deep nesting."""
    _refuse_open_brackets(text, first_line)
    try:
        return _parse_yaml(text, first_line)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + first_line if mark is not None else None
        raise UnreadableFrontMatter(f"YAML: {error.problem or 'not readable'}", line) from None
    except (YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "not readable"
        raise UnreadableFrontMatter(f"YAML: {reason}", first_line) from None


def _refuse_open_brackets(text: str, first_line: int) -> None:
    """Reject texts with too many open brackets, before the parser's lookahead gets slow."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match[0] in "[{" else max(depth - 1, 0)
        if depth > _MOST_OPEN:
            line = text.count("\n", 0, match.start()) + first_line
            raise UnreadableFrontMatter(_TOO_DEEP, line)


def _split(text: str) -> tuple[str, int]:
    """Return the text between the fences, and the number of lines including the fences."""
    lines = (clean(match.group(1)) for match in _LINE.finditer(text))
    first = next(lines)
    if not first.startswith("---") or first.startswith("----"):
        return "", 0
    head: list[str] = []
    for line in lines:
        if line.startswith("---"):
            break
        head.append(line + "\n")
    else:
        return "", 0  # a horizontal rule at the top of a page without front matter
    language = first[3:].strip()
    if language and language not in ("yaml", "yml"):
        # gray-matter would execute `---js` as code.
        raise UnreadableFrontMatter(f"front matter in {language[:20]!r} is not read, only YAML", 1)
    return "".join(head), len(head) + 2


def _parse_yaml(text: str, first_line: int) -> object:
    events = YAML(typ="safe", pure=True).parse(StringIO(text))
    first = next((event for event in events if isinstance(event, NodeEvent)), None)
    return None if first is None else _value(first, events, 0, first_line)


def _value(event: Event, events: Iterator[Event], depth: int, first_line: int) -> object:
    """Return the value that begins with an event, and take the events of what is in it."""
    _refuse(event, depth, first_line)
    if isinstance(event, ScalarEvent):
        return _scalar(event)
    items: list[object] = []
    while not isinstance(inner := next(events), (MappingEndEvent, SequenceEndEvent)):
        items.append(_value(inner, events, depth + 1, first_line))
    if isinstance(event, SequenceStartEvent):
        return items
    keys = (str(key) if isinstance(key, (dict, list)) else key for key in items[::2])
    return dict(zip(keys, items[1::2], strict=True))


def _refuse(event: Event, depth: int, first_line: int) -> None:
    line = event.start_mark.line + first_line
    if isinstance(event, AliasEvent):
        raise UnreadableFrontMatter("YAML aliases (*name) are not allowed", line)
    if depth > MAX_DEPTH:
        raise UnreadableFrontMatter(_TOO_DEEP, line)
    tag = getattr(event, "tag", None)
    if tag is not None and str(tag) not in _TAGS:
        raise UnreadableFrontMatter(f"YAML tag {str(tag)[:40]!r} is not allowed", line)


def _scalar(event: ScalarEvent) -> object:
    is_text = event.style is not None or event.tag is not None  # quoted and block scalars
    return well_formed(event.value) if is_text else _plain_value(event.value)


def _plain_value(text: str) -> object:
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
