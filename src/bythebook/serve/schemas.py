"""Readable names for the schemas of the description: the contract's name, then the class's.

Pydantic names a class by its module where two have the same name, so that a new class in one
contract would rename one of another. Here a name depends on its own contract alone.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bythebook.serve.contracts import agent, book, chat, envelope, openai, plain

_REF = "#/components/schemas/"
_PREFIXES: dict[ModuleType, str] = {
    book: "Query",
    agent: "Agent",
    envelope: "Envelope",
    plain: "Plain",
    chat: "Chat",
    openai: "OpenAI",
}
# The events of a stream in their order: how often each comes, and what its data is.
EVENTS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("session", "once, first", chat.SessionTold),
    ("retrieval", "once, before the first delta", chat.ConfidenceMetrics),
    ("delta", "any number", chat.DeltaTold),
    ("citation", "any number, after the last delta", chat.CitationTold),
    ("done", "once, last, unless the answer failed", chat.DoneTold),
    ("error", "once, last, instead of done", chat.ChatError),
)


def name_of(name: str, home: ModuleType | None = None) -> str:
    """The readable name of a schema that Pydantic named; ``home`` is its likely module."""
    path, _, bare = name.rpartition("__")
    named = path.replace("__", ".")
    homes = [m for m in _PREFIXES if _defines(m, bare) and named in ("", m.__name__)]
    if not homes:
        return name  # of what all share: Level, NearbyTopic, Health …
    if home in homes:
        homes = [home]
    [found] = homes
    prefix = _PREFIXES[found]
    bare = bare.replace("Told", "Event")
    return bare if bare.startswith(prefix) else prefix + bare


def _defines(module: ModuleType, name: str) -> bool:
    return getattr(vars(module).get(name), "__module__", None) == module.__name__


def events() -> list[dict[str, Any]]:
    """The events of a stream, each with a reference to the schema of its data."""
    return [
        {"event": event, "occurs": occurs, "data": {"$ref": _REF + name_of(kind.__name__, chat)}}
        for event, occurs, kind in EVENTS
    ]


def renamed(described: dict[str, Any]) -> dict[str, Any]:
    """The description with readable names, and with the schemas of a stream's events."""
    schemas = described["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    names = {name: name_of(name) for name in schemas}
    told = models_json_schema(
        [(kind, "serialization") for _, _, kind in EVENTS], ref_template=_REF + "{model}"
    )[1]["$defs"]
    named = _named(told, {name: name_of(name, chat) for name in told}) | _named(schemas, names)
    components = {**described["components"], "schemas": dict(sorted(named.items()))}
    return {**described, "paths": _pointed(described["paths"], names), "components": components}


def _named(schemas: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {
        names[name]: _pointed(schema, names) | {"title": names[name]}
        for name, schema in schemas.items()
    }


def _pointed(tree: Any, names: dict[str, str]) -> Any:
    """The same tree, with every reference to a schema by its new name."""
    if isinstance(tree, list):
        return [_pointed(value, names) for value in tree]
    if not isinstance(tree, dict):
        return tree
    copy = {key: _pointed(value, names) for key, value in tree.items()}
    target = copy.get("$ref")
    if isinstance(target, str) and target.startswith(_REF):
        copy["$ref"] = _REF + names[target.removeprefix(_REF)]
    return copy
