"""Describe the fields of a JSON schema in text: types, limits, defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_BOUNDS = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"))

Name = Callable[[str], str]


def resolve(described: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema, or the one that it refers to."""
    name = name_of(schema)
    resolved: dict[str, Any] = described["components"]["schemas"][name] if name else schema
    return resolved


def name_of(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def type_of(described: dict[str, Any], schema: dict[str, Any], named: Name = str) -> str:
    """Return the type and limits of a field; ``named`` formats the name of another schema."""
    kind = ", ".join(_type(described, schema, named))
    return f"{kind}: {schema['description']}" if schema.get("description") else kind


def _type(described: dict[str, Any], schema: dict[str, Any], named: Name) -> list[str]:
    if "anyOf" in schema:
        return [" or ".join(type_of(described, option, named) for option in schema["anyOf"])]
    name = name_of(schema)
    schema = resolve(described, schema)
    if "enum" in schema:
        return ["one of " + ", ".join(map(str, schema["enum"]))]
    if "const" in schema:
        return [f"always {schema['const']}"]
    if schema.get("type") == "array":
        return [f"list of {type_of(described, schema['items'], named)}"]
    kind = named(name) if name else schema.get("format") or schema.get("type", "anything")
    return [kind, *_bounds(schema)]


def _bounds(schema: dict[str, Any]) -> list[str]:
    bounds = [
        f"{schema.get(low, 0):.10g}–{schema[high]:.10g}{unit}"
        for low, high, unit in _BOUNDS
        if high in schema
    ]
    if schema.get("minimum") is not None and "maximum" not in schema:
        bounds.append(f"at least {schema['minimum']:.10g}")
    return bounds


def default_of(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return "" if default is None else json.dumps(default, ensure_ascii=False)
